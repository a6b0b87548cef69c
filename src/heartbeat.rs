//! Keeps received messages hidden, from the moment of receive, while they are worked on or wait for it.
//!
//! The lease on an order is renewed where it is held, see [`charge`](crate::charge).

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior};

use crate::{
    queue::{EntryError, MAX_BATCH, Queue, QueueError, VisibilityChange},
    record::{MessageId, ReceiptHandle},
    telemetry::ErrorChain,
};

/// A timeout is extended three times before it would end, so that one extension may fail.
const BEATS: u32 = 3;

/// The messages of one receive whose result is not known yet.
#[derive(Debug)]
pub struct Heartbeat {
    held: Mutex<HashMap<MessageId, Hold>>,
    /// Held while an extension is under way.
    extending: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Kept,
    /// Another consumer may have the message by now; it is not extended any more.
    Lost,
}

impl Heartbeat {
    /// For messages that were received just now.
    pub fn new(ids: impl IntoIterator<Item = MessageId>) -> Self {
        let held = ids.into_iter().map(|id| (id, Hold::Kept)).collect();
        Self { held: Mutex::new(held), extending: tokio::sync::Mutex::default() }
    }

    /// Extends every held message to `timeout` from now, each third of it; runs until it is dropped.
    ///
    /// `newest` names the newest delivery of a message: the same one may have been received again meanwhile.
    pub async fn beat(
        &self,
        queue: &impl Queue,
        url: &str,
        timeout: Duration,
        newest: impl Fn(&MessageId) -> Option<ReceiptHandle> + Send + Sync,
    ) -> Infallible {
        let every = timeout.checked_div(BEATS).unwrap_or_default().max(Duration::from_millis(1));
        let start = Instant::now();
        let mut ticks = tokio::time::interval_at(start.checked_add(every).unwrap_or(start), every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.extend(queue, url, timeout, &newest).await;
        }
    }

    async fn extend(
        &self,
        queue: &impl Queue,
        url: &str,
        timeout: Duration,
        newest: &(impl Fn(&MessageId) -> Option<ReceiptHandle> + Send + Sync),
    ) {
        let _under_way = self.extending.lock().await;
        let seconds = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        let kept: Vec<MessageId> =
            self.held().iter().filter(|(_, hold)| **hold == Hold::Kept).map(|(id, _)| id.clone()).collect();
        for ids in kept.chunks(MAX_BATCH) {
            let (ids, changes): (Vec<&MessageId>, Vec<VisibilityChange>) = ids
                .iter()
                .filter_map(|id| Some((id, VisibilityChange { receipt_handle: newest(id)?, seconds })))
                .unzip();
            if !changes.is_empty() {
                let answer = queue.change_visibility(url, &changes).await;
                self.note(&ids, answer);
            }
        }
    }

    fn note(&self, ids: &[&MessageId], answer: Result<Vec<Result<(), EntryError>>, QueueError>) {
        let results = match answer {
            Ok(results) => results,
            Err(error) => {
                tracing::warn!(error = %ErrorChain(&error), "visibility timeouts were not extended");
                return;
            }
        };
        for (id, result) in ids.iter().zip(results) {
            let Err(error) = result else { continue };
            let lost = is_lost(&error);
            tracing::warn!(message_id = id.as_str(), error = %ErrorChain(&error), lost, "a visibility timeout was not extended");
            // What is not held any more has its result; it is gone from the queue, not lost.
            if lost && let Some(hold) = self.held().get_mut(*id) {
                *hold = Hold::Lost;
            }
        }
    }

    /// The result is known: the message is not extended from now on.
    pub fn stop(&self, id: &MessageId) {
        self.held().remove(id);
    }

    /// Whether another consumer may have the message by now.
    pub fn has_lost(&self, id: &MessageId) -> bool {
        self.held().get(id) == Some(&Hold::Lost)
    }

    /// Waits until no extension is under way: one that overtook a change for a stopped message would undo it.
    pub async fn rest(&self) {
        let _none_under_way = self.extending.lock().await;
    }

    fn held(&self) -> MutexGuard<'_, HashMap<MessageId, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the refusal concerns the delivery itself; trying again cannot help then.
fn is_lost(error: &EntryError) -> bool {
    // `InvalidParameterValue` is what SQS says of an outdated handle, and of more than 12 h since the receive.
    ["ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue"].contains(&error.code.as_str())
}
