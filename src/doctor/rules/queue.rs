//! The queue and its dead-letter queue: time enough to work, and nothing that expires unseen.

use super::{Rule, Trouble, trouble};
use crate::doctor::{Deployment, Queue};

/// 14 days, the longest retention SQS has.
const LONGEST_RETENTION: u64 = 1_209_600;

pub(super) const RULES: &[Rule] = &[
    Rule::error("visibility-covers-retries", visibility_covers_retries),
    Rule::error("enough-receives", enough_receives),
    Rule::error("dead-letter-queue", dead_letter_queue),
    Rule::error("dead-letters-kept-longest", dead_letters_kept_longest),
    Rule::error("dead-letters-outlive-orders", dead_letters_outlive_orders),
    Rule::error("dead-letter-queue-type", dead_letter_queue_type),
    Rule::error("queues-retained", queues_retained),
    Rule::warning("queues-encrypted", queues_encrypted),
    Rule::warning("queues-demand-tls", queues_demand_tls),
];

/// Lambda keeps retrying a throttled batch while the clock of its messages runs: six timeouts are its own advice.
fn visibility_covers_retries(d: &Deployment) -> Option<Trouble> {
    let (queue, function) = (d.queue.known()?, d.function.known()?);
    let window = d.mappings().map(|mapping| mapping.window.unwrap_or(0)).max()?;
    let needed = function.timeout.saturating_mul(6).saturating_add(window);
    trouble(
        queue.visibility < needed,
        format!(
            "orders reappear after {} s, while a batch may still be worked on for {needed} s",
            queue.visibility
        ),
        format!("sam deploy --parameter-overrides VisibilityTimeout={needed}"),
    )
}

fn enough_receives(d: &Deployment) -> Option<Trouble> {
    let count = d.queue.known()?.max_receive_count?;
    trouble(
        count < 5,
        format!("{count} receives can be used up by throttling, so that an order goes to the DLQ untried"),
        "sam deploy --parameter-overrides MaxReceiveCount=10",
    )
}

fn dead_letter_queue(d: &Deployment) -> Option<Trouble> {
    let no_redrive = d.queue.known().is_some_and(|queue| queue.max_receive_count.is_none());
    trouble(
        d.dead_letters.is_absent() || no_redrive,
        "an order that can never be charged is retried until it expires, and then it is gone",
        "give the queue a RedrivePolicy with deadLetterTargetArn and maxReceiveCount",
    )
}

fn dead_letters_kept_longest(d: &Deployment) -> Option<Trouble> {
    let dead_letters = d.dead_letters.known()?;
    trouble(
        dead_letters.retention != LONGEST_RETENTION,
        format!("dead letters are dropped after {} s, before anybody has looked", dead_letters.retention),
        "set MessageRetentionPeriod: 1209600 on the DLQ",
    )
}

/// On a standard queue the clock of a dead letter started when the order was first sent.
fn dead_letters_outlive_orders(d: &Deployment) -> Option<Trouble> {
    let (queue, dead_letters) = (d.queue.known()?, d.dead_letters.known()?);
    trouble(
        queue.retention >= LONGEST_RETENTION.min(dead_letters.retention),
        format!("an order may wait {} s and then has no time left in the DLQ", queue.retention),
        "sam deploy --parameter-overrides SourceRetentionSeconds=345600",
    )
}

fn dead_letter_queue_type(d: &Deployment) -> Option<Trouble> {
    let (queue, dead_letters) = (d.queue.known()?, d.dead_letters.known()?);
    trouble(
        dead_letters.fifo != queue.fifo,
        "SQS moves messages only to a dead-letter queue of the same type",
        "make both queues FIFO, or neither",
    )
}

fn queues_retained(d: &Deployment) -> Option<Trouble> {
    trouble(
        queues(d).any(|queue| queue.retained == Some(false)),
        "deleting or replacing the stack deletes waiting orders",
        "set DeletionPolicy: Retain and UpdateReplacePolicy: Retain on both queues",
    )
}

fn queues_encrypted(d: &Deployment) -> Option<Trouble> {
    trouble(
        queues(d).any(|queue| !queue.encrypted),
        "orders lie unencrypted",
        "set SqsManagedSseEnabled: true or KmsMasterKeyId on both queues",
    )
}

fn queues_demand_tls(d: &Deployment) -> Option<Trouble> {
    trouble(
        queues(d).any(|queue| queue.tls_only == Some(false)),
        "orders may travel without TLS",
        "give each queue a policy that denies sqs:* where aws:SecureTransport is false",
    )
}

fn queues(d: &Deployment) -> impl Iterator<Item = &Queue> {
    [d.queue.known(), d.dead_letters.known()].into_iter().flatten()
}
