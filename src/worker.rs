//! The long-poll shell: the same core without Lambda.
//!
//! Some loops receive; what they receive is worked on beside them; what was decided reaches the queue in calls that
//! nobody waits for. A heartbeat keeps every message hidden until its result is known.

mod endpoint;
mod hand;
mod monitor;
mod room;
mod settle;
mod shift;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet};

pub use self::{endpoint::serve, monitor::Monitor};
use self::{
    hand::Hand,
    settle::{Calls, Settler},
    shift::Shift,
};
use crate::{
    backoff::Random,
    batch::BatchRules,
    charge::Step,
    clock::Clock,
    metrics::Counts,
    payload::Payloads,
    queue::{Queue, QueueError},
    spans::Spans,
    visibility::VisibilityRules,
};

/// What only the worker has to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRules {
    /// The queue.
    pub queue_url: String,
    /// How many receives wait side by side, at least 1.
    pub loops: usize,
    /// How many messages are worked on at once by all loops together, at least 1.
    pub concurrency: usize,
    /// For how long a message is hidden at a time, in whole seconds. Short is good: the heartbeat extends it, and
    /// after a crash it is how long the message waits for its next consumer.
    pub visibility: Duration,
    /// How long a receive waits for a first message, 0 to 20 s.
    pub wait: Duration,
}

/// What a worker runs on.
pub struct Worker<S, Q> {
    /// What is done with an order.
    pub step: S,
    /// Where messages come from; it should receive over connections of its own.
    pub queue: Arc<Q>,
    /// Where bodies lie that were too large for a message.
    pub payloads: Payloads,
    /// The worker's own settings.
    pub rules: WorkerRules,
    /// How a batch runs. Its concurrency does not count: [`WorkerRules`] says how many orders are worked on at once.
    pub batch: BatchRules,
    /// How long failed messages wait.
    pub visibility: VisibilityRules,
    /// The metrics' `service`.
    pub service: String,
    /// Counters and health.
    pub monitor: Arc<Monitor>,
    /// Time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// Where the metrics line of each batch goes.
    pub emit: fn(&str),
    /// Where the records' spans go. Whoever runs the worker flushes them.
    pub spans: Spans,
}

/// What one receive brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Messages received.
    pub received: usize,
    /// What became of them.
    pub counts: Counts,
}

/// A receive loop ended although nobody asked it to: there is a bug. What was begun has been finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a receive loop ended by itself")]
pub struct LoopEnded;

impl<S: Step + 'static, Q: Queue + 'static> Worker<S, Q> {
    /// Works until `shutdown` completes. Then it receives nothing more, finishes what was begun, hands back what was
    /// not, and returns once the queue was told everything.
    ///
    /// # Errors
    /// A receive loop ended by itself.
    pub async fn run(self: Arc<Self>, shutdown: impl Future<Output = ()>) -> Result<(), LoopEnded> {
        let (stop, stopped) = watch::channel(false);
        let mut settling = JoinSet::new();
        let shift = Arc::new(Shift::begin(Arc::clone(&self), stopped, &mut settling));
        let mut loops = JoinSet::new();
        for _ in 0..self.rules.loops.max(1) {
            loops.spawn(Arc::clone(&shift).receive_in_a_loop());
        }
        let result = tokio::select! {
            () = shutdown => Ok(()),
            _ended = loops.join_next() => Err(LoopEnded),
        };
        tracing::info!("stopping: what was begun is finished, the rest is handed back");
        stop.send_replace(true);
        shift.begin_nothing_more();
        while loops.join_next().await.is_some() {}
        drop(shift);
        settling.join_all().await;
        result
    }

    /// Receives once, works on what came, and returns when the queue was told the results. Once `shutdown`
    /// completes, it does as [`run`](Self::run) does.
    ///
    /// # Errors
    /// The receive failed.
    pub async fn poll_once(
        self: &Arc<Self>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Polled, QueueError> {
        let (stop, stopped) = watch::channel(false);
        let mut settling = JoinSet::new();
        let shift = Shift::begin(Arc::clone(self), stopped, &mut settling);
        let stopping = async {
            shutdown.await;
            stop.send_replace(true);
            shift.begin_nothing_more();
            pending().await
        };
        let polled = tokio::select! {
            polled = shift.receive_once() => polled,
            never = stopping => match never {},
        };
        drop(shift);
        settling.join_all().await;
        polled
    }

    fn settler(&self, hand: &Arc<Hand>, settling: &mut JoinSet<()>) -> Settler {
        let desk = Calls {
            queue: Arc::clone(&self.queue),
            url: self.rules.queue_url.clone(),
            hand: Arc::clone(hand),
            monitor: Arc::clone(&self.monitor),
            random: self.random.clone(),
        };
        Settler::start(desk, settling)
    }
}

impl<S, Q> fmt::Debug for Worker<S, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("rules", &self.rules).finish_non_exhaustive()
    }
}
