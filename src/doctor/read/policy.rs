//! What policies say: the grants of a role, and whether a queue refuses calls without TLS.

use serde_json::Value;

use crate::doctor::{
    Grant, Resource,
    resource::{document, items, text, texts},
};

/// What the function's role grants, by policies written into it and by managed ones that are among the resources.
/// `None` if the role is not among them.
pub(super) fn grants(resources: &[Resource], function: &Resource) -> Option<Vec<Grant>> {
    let arn = text(function.at("/Role")?);
    let role = resources.iter().find(|one| one.kind == "AWS::IAM::Role" && one.arn == arn)?;
    let inline = items(role.at("/Policies")).iter().map(|policy| document(policy.get("PolicyDocument")));
    let attached = texts(role.at("/ManagedPolicyArns"));
    let managed = resources
        .iter()
        .filter(|one| one.kind == "AWS::IAM::ManagedPolicy" && attached.contains(&one.reference))
        .map(|policy| document(policy.at("/PolicyDocument")));
    Some(inline.chain(managed).flat_map(|policy| allowed(&policy)).collect())
}

fn allowed(policy: &Value) -> Vec<Grant> {
    items(policy.get("Statement"))
        .iter()
        .filter(|statement| statement.get("Effect").is_some_and(|effect| effect == "Allow"))
        .map(|statement| Grant {
            actions: texts(statement.get("Action")),
            resources: texts(statement.get("Resource")),
        })
        .collect()
}

/// Whether a policy of the queue denies everything that comes without TLS.
pub(super) fn demands_tls(resources: &[Resource], queue_url: &str) -> bool {
    let is_of_queue = |policy: &&Resource| match policy.kind.as_str() {
        "AWS::SQS::QueuePolicy" => texts(policy.at("/Queues")).iter().any(|one| one == queue_url),
        "AWS::SQS::QueueInlinePolicy" => policy.at("/Queue").is_some_and(|one| one == queue_url),
        _ => false,
    };
    resources
        .iter()
        .filter(is_of_queue)
        .any(|policy| items(document(policy.at("/PolicyDocument")).get("Statement")).iter().any(denies))
}

/// SQS gives actions back in the case of its own choosing.
fn denies(statement: &Value) -> bool {
    let insecure = statement.pointer("/Condition/Bool/aws:SecureTransport");
    let actions = texts(statement.get("Action"));
    statement.get("Effect").is_some_and(|effect| effect == "Deny")
        && matches!(actions.as_slice(), [all] if all.eq_ignore_ascii_case("sqs:*"))
        && insecure.is_some_and(|value| text(value) == "false")
}
