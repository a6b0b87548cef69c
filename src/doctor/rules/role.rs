//! The function's role: enough to work, and nothing that could lose a record or a message.

use super::{Rule, Trouble, trouble};
use crate::doctor::{Deployment, Grant};

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
    trouble(
        !actions.iter().all(|action| grants(role, action, &queue.arn)),
        "the mapping polls with the function's role and cannot receive or delete orders",
        format!("allow {} on {}", actions.join(", "), queue.arn),
    )
}

fn role_hides_orders(d: &Deployment) -> Option<Trouble> {
    let (role, queue) = (d.role.known()?, d.queue.known()?);
    trouble(
        !grants(role, "sqs:ChangeMessageVisibility", &queue.arn),
        "no retry can be delayed or hastened: each waits for the whole visibility timeout",
        format!("allow sqs:ChangeMessageVisibility on {}", queue.arn),
    )
}

fn role_writes_ledger(d: &Deployment) -> Option<Trouble> {
    let (role, ledger) = (d.role.known()?, d.ledger.known()?);
    trouble(
        !grants(role, "dynamodb:UpdateItem", &ledger.arn),
        "no order can be begun",
        format!("allow dynamodb:UpdateItem on {}", ledger.arn),
    )
}

/// A record is the memory of what was sent; nothing in the function needs to forget.
fn role_never_deletes_records(d: &Deployment) -> Option<Trouble> {
    let forgetful =
        ["dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteTable", "dynamodb:PutItem"];
    let role = d.role.known()?;
    trouble(
        role.iter().flat_map(|grant| &grant.actions).any(|action| forgetful.contains(&action.as_str())),
        "a record that is deleted or overwritten lets its order be charged again",
        "allow only dynamodb:UpdateItem and dynamodb:GetItem",
    )
}

fn role_sends_dead_letters(d: &Deployment) -> Option<Trouble> {
    let (role, dead_letters) = (d.role.known()?, d.dead_letters.known()?);
    trouble(
        d.function.known()?.variable("POISON_MODE") == Some("dlq")
            && !grants(role, "sqs:SendMessage", &dead_letters.arn),
        "poison orders cannot be sent to the DLQ and block their group instead",
        format!("allow sqs:SendMessage on {}", dead_letters.arn),
    )
}

fn role_reads_secret(d: &Deployment) -> Option<Trouble> {
    let (role, secret) = (d.role.known()?, d.function.known()?.variable("GATEWAY_SECRET_ARN")?);
    // A secret may be named without its ARN; then only the action can be looked for.
    let is_arn = secret.starts_with("arn:");
    let reads = role.iter().any(|grant| {
        grant.actions.iter().any(|own| covers(own, "secretsmanager:GetSecretValue"))
            && (!is_arn || grant.resources.iter().any(|own| covers(own, secret)))
    });
    trouble(
        !reads,
        "the function cannot read the provider's key and does not start",
        format!("allow secretsmanager:GetSecretValue on {secret}"),
    )
}

fn role_narrow(d: &Deployment) -> Option<Trouble> {
    let wide = |grant: &Grant| {
        let touches_data = |action: &&String| action.starts_with("sqs:") || action.starts_with("dynamodb:");
        let any_resource = grant.resources.iter().any(|resource| resource == "*");
        let any_action = grant.actions.iter().any(|action| action == "*");
        let data: Vec<&String> = grant.actions.iter().filter(touches_data).collect();
        let reads_all =
            |action: &&String| action.contains('*') || ["dynamodb:Scan"].contains(&action.as_str());
        any_action || (any_resource && !data.is_empty()) || data.iter().any(reads_all)
    };
    trouble(
        d.role.known()?.iter().any(wide),
        "the role reaches more queues, tables or actions than the function uses",
        "name each action, and each resource by its ARN",
    )
}

fn grants(role: &[Grant], action: &str, resource: &str) -> bool {
    role.iter().any(|grant| {
        grant.actions.iter().any(|own| covers(own, action))
            && grant.resources.iter().any(|own| covers(own, resource))
    })
}

/// Whether a pattern with at most a trailing `*` covers a name. Actions are compared as AWS writes them.
fn covers(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}
