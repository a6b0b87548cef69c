//! Tells the queue what was decided, ten messages in a call, while nobody waits for it.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{Monitor, hand::Hand};
use crate::{
    backoff::{Backoff, Random},
    heartbeat::Heartbeat,
    queue::{MAX_BATCH, Queue, VisibilityChange},
    record::{MessageId, ReceiptHandle},
    telemetry::ErrorChain,
};

/// How long a call waits to be filled, at most: it leaves at once when no result is to come that could join it.
const LINGER: Duration = Duration::from_millis(20);
/// How often a delete is tried; after that the message comes again and its order is found to be charged.
const DELETE_TRIES: u32 = 5;
const DELETE_BACKOFF: Backoff = Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(5) };

/// Where results go. When the last clone is dropped, the tasks send what they have and end.
#[derive(Clone, Debug)]
pub(super) struct Settler {
    deletes: UnboundedSender<MessageId>,
    changes: UnboundedSender<Change>,
}

/// A message that stays in the queue.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) id: MessageId,
    pub(super) seconds: u32,
    /// What kept the message hidden so far.
    pub(super) heartbeat: Arc<Heartbeat>,
}

/// What the calls need.
#[derive(Debug)]
pub(super) struct Calls<Q> {
    pub(super) queue: Arc<Q>,
    pub(super) url: String,
    pub(super) hand: Arc<Hand>,
    pub(super) monitor: Arc<Monitor>,
    pub(super) random: Random,
}

impl Settler {
    /// Starts the two tasks.
    pub(super) fn start<Q: Queue + 'static>(calls: Calls<Q>, tasks: &mut JoinSet<()>) -> Self {
        let calls = Arc::new(calls);
        let (deletes, to_delete) = unbounded_channel();
        let (changes, to_change) = unbounded_channel();
        let of_deletes = Arc::clone(&calls);
        let hand = Arc::clone(&calls.hand);
        tasks.spawn(pump(to_delete, Arc::clone(&hand), move |ids| Arc::clone(&of_deletes).delete(ids)));
        tasks.spawn(pump(to_change, hand, move |batch| Arc::clone(&calls).change(batch)));
        Self { deletes, changes }
    }

    /// The message may go.
    pub(super) fn delete(&self, id: MessageId) {
        // The task outlives every sender.
        let _ = self.deletes.send(id);
    }

    /// The message stays and is hidden as long as was decided.
    pub(super) fn change(&self, change: Change) {
        let _ = self.changes.send(change);
    }
}

/// Makes a call of every ten things, or of fewer that nothing follows; ends when all calls of the last have.
async fn pump<T, F>(mut things: UnboundedReceiver<T>, hand: Arc<Hand>, call: impl Fn(Vec<T>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut calls = JoinSet::new();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            () = fill(&mut things, &hand, &mut batch) => {
                if batch.is_empty() {
                    break;
                }
                calls.spawn(call(std::mem::take(&mut batch)));
            }
            Some(_done) = calls.join_next() => {}
        }
    }
    calls.join_all().await;
}

/// Fills the batch; it stays empty only if nothing will come any more. What was taken survives a drop.
async fn fill<T>(things: &mut UnboundedReceiver<T>, hand: &Hand, batch: &mut Vec<T>) {
    if batch.is_empty() && things.recv_many(batch, MAX_BATCH).await == 0 {
        return;
    }
    let now = Instant::now();
    let until = now.checked_add(LINGER).unwrap_or(now);
    while batch.len() < MAX_BATCH && (hand.awaits_results() || !things.is_empty()) {
        let left = MAX_BATCH.saturating_sub(batch.len());
        tokio::select! {
            biased;
            more = things.recv_many(batch, left) => if more == 0 { return },
            () = sleep_until(until) => return,
        }
    }
}

impl<Q: Queue> Calls<Q> {
    async fn delete(self: Arc<Self>, mut ids: Vec<MessageId>) {
        let mut tries: u32 = 0;
        loop {
            ids = self.try_delete(ids).await;
            if ids.is_empty() {
                return;
            }
            tries = tries.saturating_add(1);
            if tries >= DELETE_TRIES {
                break;
            }
            sleep(DELETE_BACKOFF.delay(tries, &self.random)).await;
        }
        for id in ids {
            tracing::warn!(
                message_id = id.as_str(),
                "a message that is done could not be deleted and comes again"
            );
            self.hand.give_up(&id);
        }
    }

    /// The messages that must be deleted once more.
    async fn try_delete(&self, ids: Vec<MessageId>) -> Vec<MessageId> {
        let (ids, handles): (Vec<MessageId>, Vec<ReceiptHandle>) =
            ids.into_iter().filter_map(|id| self.hand.handle(&id).map(|handle| (id, handle))).unzip();
        if ids.is_empty() {
            return ids;
        }
        let results = match self.queue.delete(&self.url, &handles).await {
            Ok(results) => results,
            Err(error) => {
                tracing::warn!(error = %ErrorChain(&error), "messages were not deleted");
                return ids;
            }
        };
        let mut left = Vec::new();
        for ((id, handle), result) in ids.into_iter().zip(&handles).zip(results) {
            let done = match result {
                Ok(()) => self.hand.deleted(&id, handle),
                Err(error) => {
                    tracing::warn!(message_id = id.as_str(), error = %ErrorChain(&error), "a message was not deleted");
                    false
                }
            };
            if !done {
                left.push(id);
            }
        }
        left
    }

    async fn change(self: Arc<Self>, batch: Vec<Change>) {
        let mut changes = Vec::with_capacity(batch.len());
        for Change { id, seconds, heartbeat } in batch {
            heartbeat.rest().await;
            // Let go before the call: at 0 seconds the message may be received again before the call answers.
            if let Some(receipt_handle) = self.hand.give_up(&id) {
                changes.push(VisibilityChange { receipt_handle, seconds });
            }
        }
        if changes.is_empty() {
            return;
        }
        let failed = match self.queue.change_visibility(&self.url, &changes).await {
            Ok(results) => {
                let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
                for error in &failed {
                    tracing::warn!(error = %ErrorChain(error), "a visibility change was refused");
                }
                failed.len()
            }
            Err(error) => {
                tracing::warn!(error = %ErrorChain(&error), "visibility changes failed");
                changes.len()
            }
        };
        self.monitor.visibility_failed(failed);
    }
}
