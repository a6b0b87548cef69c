//! The function's role: enough to work, and nothing that could lose a record or a message.

use super::{Rule, Trouble, trouble};
use crate::doctor::{Deployment, Role, Scope, Statement};

pub(super) const RULES: &[Rule] = &[
    Rule::error("own-role", own_role),
    Rule::error("role-reads-orders", role_reads_orders),
    Rule::error("role-hides-orders", role_hides_orders),
    Rule::error("role-writes-ledger", role_writes_ledger),
    Rule::error("role-never-deletes-records", role_never_deletes_records),
    Rule::error("role-sends-dead-letters", role_sends_dead_letters),
    Rule::error("role-reads-secret", role_reads_secret),
    Rule::error("role-narrow", role_narrow),
];

fn own_role(d: &Deployment) -> Option<Trouble> {
    trouble(
        d.role.is_absent(),
        "SAM then attaches managed policies that reach every queue of the account",
        "give the function a Role of its own",
    )
}

fn role_reads_orders(d: &Deployment) -> Option<Trouble> {
    let (role, queue) = (d.role.known()?, d.queue.known()?);
    let actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
    let breaks = "the mapping polls with the function's role and cannot receive or delete orders";
    needs(role, &actions, &queue.arn, breaks)
}

fn role_hides_orders(d: &Deployment) -> Option<Trouble> {
    let (role, queue) = (d.role.known()?, d.queue.known()?);
    let breaks = "no retry can be delayed or hastened: each waits for the whole visibility timeout";
    needs(role, &["sqs:ChangeMessageVisibility"], &queue.arn, breaks)
}

fn role_writes_ledger(d: &Deployment) -> Option<Trouble> {
    let (role, ledger) = (d.role.known()?, d.ledger.known()?);
    needs(role, &["dynamodb:UpdateItem"], &ledger.arn, "no order can be begun")
}

/// What makes the past forgotten. A record is the memory of what was sent, a message the only copy of its order;
/// nothing in the function needs to forget either.
const FORGETFUL: [&str; 7] = [
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:DeleteTable",
    "dynamodb:PutItem",
    "dynamodb:PartiQLDelete",
    "sqs:PurgeQueue",
    "sqs:DeleteQueue",
];

fn role_never_deletes_records(d: &Deployment) -> Option<Trouble> {
    let role = d.role.known()?;
    let held = |action: &str| {
        role.allows.iter().any(|grant| {
            grant.actions.named.iter().any(|own| own.eq_ignore_ascii_case(action))
                && !grant.resources.named.iter().all(|resource| denied(role, action, resource))
        })
    };
    let held: Vec<&str> = FORGETFUL.into_iter().filter(|action| held(action)).collect();
    trouble(
        !held.is_empty(),
        format!(
            "the role may {}: a record that is deleted or overwritten lets its order be charged again, and orders \
             of a purged queue are lost",
            held.join(", ")
        ),
        "allow only dynamodb:UpdateItem and dynamodb:GetItem, and of SQS what the mapping needs",
    )
}

fn role_sends_dead_letters(d: &Deployment) -> Option<Trouble> {
    let (role, dead_letters) = (d.role.known()?, d.dead_letters.known()?);
    if d.function.known()?.variable("POISON_MODE") != Some("dlq") {
        return None;
    }
    let breaks = "poison orders cannot be sent to the DLQ and block their group instead";
    needs(role, &["sqs:SendMessage"], &dead_letters.arn, breaks)
}

fn role_reads_secret(d: &Deployment) -> Option<Trouble> {
    let (role, secret) = (d.role.known()?, d.function.known()?.variable("GATEWAY_SECRET_ARN")?);
    let (action, breaks) =
        ("secretsmanager:GetSecretValue", "the function cannot read the provider's key and does not start");
    // A secret may be named without its ARN; then only the action can be looked for.
    if secret.starts_with("arn:") {
        return needs(role, &[action], secret, breaks);
    }
    let reads = role.allows.iter().any(|grant| includes(&grant.actions, action));
    trouble(!reads, breaks, format!("allow {action} on {secret}"))
}

fn role_narrow(d: &Deployment) -> Option<Trouble> {
    let wide = |grant: &Statement| {
        let actions = &grant.actions.named;
        let touches_data = |action: &&String| action.starts_with("sqs:") || action.starts_with("dynamodb:");
        let any_resource = grant.resources.named.iter().any(|resource| resource == "*");
        let any_action = actions.iter().any(|action| action == "*");
        let data: Vec<&String> = actions.iter().filter(touches_data).collect();
        let reads_all =
            |action: &&String| action.contains('*') || ["dynamodb:Scan"].contains(&action.as_str());
        any_action || (any_resource && !data.is_empty()) || data.iter().any(reads_all)
    };
    trouble(
        d.role.known()?.allows.iter().any(wide),
        "the role reaches more queues, tables or actions than the function uses",
        "name each action, and each resource by its ARN",
    )
}

/// Trouble if the role lacks one of the actions, because nothing allows it or something denies it.
fn needs(role: &Role, actions: &[&str], resource: &str, breaks: &str) -> Option<Trouble> {
    let denied: Vec<&str> = actions.iter().copied().filter(|action| denied(role, action, resource)).collect();
    if !denied.is_empty() {
        return trouble(true, breaks, format!("remove the Deny of {} on {resource}", denied.join(", ")));
    }
    let allowed = |action: &&str| role.allows.iter().any(|grant| covers(grant, action, resource));
    trouble(!actions.iter().all(allowed), breaks, format!("allow {} on {resource}", actions.join(", ")))
}

fn denied(role: &Role, action: &str, resource: &str) -> bool {
    role.denies.iter().any(|denial| covers(denial, action, resource))
}

fn covers(statement: &Statement, action: &str, resource: &str) -> bool {
    includes(&statement.actions, action) && includes(&statement.resources, resource)
}

fn includes(scope: &Scope, name: &str) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    any(&scope.named) && !any(&scope.except)
}

/// Whether a pattern with at most a trailing `*` covers a name. Actions are compared as AWS writes them.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}
