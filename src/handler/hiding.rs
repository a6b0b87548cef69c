//! Visibility changes, made while the rest of the batch is still at work: the answer waits for the last call at most.

use std::sync::{Mutex, PoisonError};

use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    backoff::Random,
    batch::{Judged, Pace},
    clock::{Clock, Timestamp},
    deadline::ANSWER,
    decision::RetryReason,
    queue::{Queue, VisibilityChange},
    record::Record,
    telemetry::ErrorChain,
    visibility::{Drawn, VisibilityRules},
};

/// SQS takes so many entries in one call.
const ENTRIES: usize = 10;
/// So many calls run at once: a batch of 10,000 records makes 1,000, each is a connection, and a process has few.
const CALLS: usize = 32;

/// Hears of each record that is decided about, and passes on how long its message is to be hidden.
pub(super) struct Hiding<'a> {
    rules: &'a VisibilityRules,
    random: &'a Random,
    clock: &'a Clock,
    drawn: Mutex<Drawn>,
    changes: UnboundedSender<VisibilityChange>,
}

impl<'a> Hiding<'a> {
    /// With where the changes come out; they end when it is dropped.
    pub(super) fn new(
        rules: &'a VisibilityRules,
        random: &'a Random,
        clock: &'a Clock,
    ) -> (Self, UnboundedReceiver<VisibilityChange>) {
        let (changes, out) = unbounded_channel();
        (Self { rules, random, clock, drawn: Mutex::default(), changes }, out)
    }
}

impl Pace for Hiding<'_> {
    type Place = ();

    async fn place(&self, _record: &Record) -> Result<(), RetryReason> {
        Ok(())
    }

    fn decided(&self, judged: &Judged) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(change) = drawn.change(judged, self.rules, self.random, self.clock.now()) {
            // The other end stays until this one is gone.
            let _ = self.changes.send(change);
        }
    }
}

/// The calls that make the changes. What fails falls back to the queue's own timeout and is only counted.
pub(super) struct Calls<'a, Q> {
    pub(super) queue: &'a Q,
    pub(super) url: Option<&'a str>,
    pub(super) clock: &'a Clock,
    pub(super) deadline: Timestamp,
}

impl<Q: Queue> Calls<'_, Q> {
    /// Makes changes, ten in a call, until no more come; how many of them failed.
    pub(super) async fn make(&self, mut changes: UnboundedReceiver<VisibilityChange>) -> usize {
        let changes = stream::poll_fn(move |context| changes.poll_recv(context));
        let Some(url) = self.url else {
            let failed = changes.count().await;
            if failed > 0 {
                tracing::warn!(
                    "the queue's URL is not known, so failed messages wait for its own timeout; set QUEUE_URL"
                );
            }
            return failed;
        };
        let failed =
            changes.chunks(ENTRIES).map(|chunk| self.call(url, chunk).boxed()).buffer_unordered(CALLS);
        failed.fold(0, |all, failed| async move { usize::saturating_add(all, failed) }).await
    }

    /// One call; how many of its changes failed.
    async fn call(&self, url: &str, changes: Vec<VisibilityChange>) -> usize {
        let time = self.deadline.minus(ANSWER).since(self.clock.now());
        match tokio::time::timeout(time, self.queue.change_visibility(url, &changes)).await {
            Ok(Ok(results)) => {
                let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
                for error in &failed {
                    tracing::warn!(error = %ErrorChain(error), "a visibility change was refused");
                }
                failed.len()
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %ErrorChain(&error), "visibility changes failed");
                changes.len()
            }
            Err(_elapsed) => {
                tracing::warn!("no time was left for visibility changes");
                changes.len()
            }
        }
    }
}

#[cfg(test)]
mod tests;
