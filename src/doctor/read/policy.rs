//! What policies say: what a role may do, and whether a queue refuses calls without TLS.

use serde_json::Value;

use crate::doctor::{
    Resource, Role, Scope, Statement,
    resource::{document, items, text, texts},
};

/// What the function's role may do, by policies written into it and by those among the resources that are attached
/// to it. `None` if the role is not among them.
pub(super) fn role(resources: &[Resource], function: &Resource) -> Option<Role> {
    let arn = text(function.at("/Role")?);
    let role = resources.iter().find(|one| one.kind == "AWS::IAM::Role" && one.arn == arn)?;
    let inline = items(role.at("/Policies")).iter().map(|policy| document(policy.get("PolicyDocument")));
    let attached = resources
        .iter()
        .filter(|policy| is_attached(policy, role))
        .map(|policy| document(policy.at("/PolicyDocument")));
    let documents: Vec<Value> = inline.chain(attached).collect();
    let statements = || documents.iter().flat_map(|policy| items(policy.get("Statement")));
    Some(Role {
        allows: statements().filter(|it| has_effect(it, "Allow")).map(read_statement).collect(),
        denies: statements().filter(|it| denies_always(it)).map(read_statement).collect(),
    })
}

/// The role may name the policy, or the policy the role, as the CDK writes it.
fn is_attached(policy: &Resource, role: &Resource) -> bool {
    let names_role = |property: &str| {
        let own_name = role.at("/RoleName").map(text);
        texts(policy.at(property))
            .iter()
            .any(|name| *name == role.reference || Some(name) == own_name.as_ref())
    };
    match policy.kind.as_str() {
        "AWS::IAM::Policy" => names_role("/Roles"),
        "AWS::IAM::RolePolicy" => names_role("/RoleName"),
        "AWS::IAM::ManagedPolicy" => {
            texts(role.at("/ManagedPolicyArns")).contains(&policy.reference) || names_role("/Roles")
        }
        _ => false,
    }
}

fn has_effect(statement: &Value, effect: &str) -> bool {
    statement.get("Effect").is_some_and(|own| own == effect)
}

/// A condition mostly spares the function, as one about TLS does.
fn denies_always(statement: &Value) -> bool {
    has_effect(statement, "Deny") && statement.get("Condition").is_none()
}

fn read_statement(statement: &Value) -> Statement {
    let scope = |name: &str, all_but: &str| match statement.get(all_but) {
        Some(except) => Scope { named: vec!["*".to_owned()], except: texts(Some(except)) },
        None => Scope { named: texts(statement.get(name)), except: Vec::new() },
    };
    Statement { actions: scope("Action", "NotAction"), resources: scope("Resource", "NotResource") }
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
    has_effect(statement, "Deny")
        && matches!(actions.as_slice(), [all] if all.eq_ignore_ascii_case("sqs:*"))
        && insecure.is_some_and(|value| text(value) == "false")
}
