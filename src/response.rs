//! Decisions -> the answer to Lambda. What is not listed is deleted, so the list is made of identifiers that were
//! seen in the event, each once.

use std::collections::HashSet;

use aws_lambda_events::sqs::SqsBatchResponse;

use crate::{batch::Judged, order::OrderId, record::MessageId};

/// A record failed that has no identifier, so it cannot be listed: only failing the invocation keeps it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "records without a messageId failed and cannot be listed (positions {positions:?}); the whole batch is returned, \
     orders that were charged are recognised when they come again"
)]
pub struct UnnamedFailure {
    /// Their places in the batch, from 0.
    pub positions: Vec<usize>,
}

/// The answer for a batch.
///
/// # Errors
/// A record that cannot be named has failed.
pub fn answer(judged: &[Judged]) -> Result<SqsBatchResponse, UnnamedFailure> {
    let done: HashSet<(&MessageId, &OrderId)> =
        judged.iter().filter(|one| one.outcome.decision.is_ack()).filter_map(named_order).collect();
    let mut listed = HashSet::new();
    let mut positions = Vec::new();
    let mut response = SqsBatchResponse::default();
    for one in judged.iter().filter(|one| !one.outcome.decision.is_ack()) {
        let Some(id) = &one.record.message_id else {
            positions.push(one.record.position);
            continue;
        };
        // The same message twice in one batch: if its order ended well once, the message may go.
        let ended_well = named_order(one).is_some_and(|key| done.contains(&key));
        if !ended_well && listed.insert(id) {
            response.add_failure(id.as_str());
        }
    }
    if positions.is_empty() { Ok(response) } else { Err(UnnamedFailure { positions }) }
}

fn named_order(judged: &Judged) -> Option<(&MessageId, &OrderId)> {
    Some((judged.record.message_id.as_ref()?, judged.order.as_ref()?.id()))
}
