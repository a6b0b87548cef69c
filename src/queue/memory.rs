//! Queues inside the process, with SQS's real semantics: what tests and local mode run on.
//!
//! The queues are a state machine that takes the present instant (`memory/state.rs`); this file is its
//! asynchronous shell, which knows a clock and how to wait. Instants come from the [`Clock`], waiting is
//! tokio's, so under tokio's paused time the clock should follow tokio's.
//!
//! What SQS has and these queues do not: binary message attributes, `ReceiveRequestAttemptId`, message system
//! attributes on send, and any effect of encryption, policies and throughput limits. Groups on standard queues
//! are kept and answered, but get no fair share.

mod dedup;
mod error;
mod limits;
mod line;
mod message;
mod moves;
mod registry;
mod seam;
mod settings;
mod state;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use self::registry::{Registry, Step};
pub use self::{
    error::SqsError,
    limits::check_total_size,
    moves::{MoveStatus, MoveTask},
    registry::Sent,
    settings::{FifoSettings, QueueSettings, RedrivePolicy},
    state::Depth,
};
use super::{MAX_BATCH, Message, Outgoing, Receive, VisibilityChange};
use crate::{backoff::Random, clock::Clock, record::ReceiptHandle};

/// The account that owns all queues, in their URLs and ARNs.
pub const ACCOUNT: &str = "000000000000";
const REGION_ARN: &str = "arn:aws:sqs:us-east-1:000000000000";
/// The longest that a receive waits.
const MAX_WAIT: Duration = Duration::from_secs(20);
const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);

/// Named queues in memory. Cheap to clone; clones share the queues.
///
/// As a [`Queue`](super::Queue) it takes any URL whose last segment is a queue's name.
#[derive(Clone)]
pub struct MemoryQueues {
    clock: Clock,
    registry: Arc<Mutex<Registry>>,
}

impl MemoryQueues {
    /// No queues yet. Message identifiers are drawn from `random`.
    pub fn new(clock: Clock, random: Random) -> Self {
        Self { clock, registry: Arc::new(Mutex::new(Registry::new(random))) }
    }

    /// Creates a queue; creating it again with the same settings does nothing.
    ///
    /// # Errors
    /// The name is invalid or taken, or the redrive policy names no queue of the same type.
    pub fn create(&self, name: &str, settings: QueueSettings) -> Result<(), SqsError> {
        self.lock().create(self.clock.now(), name, settings)
    }

    /// The names of all queues, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().names()
    }

    /// The ARN of the queue of that name.
    pub fn arn(name: &str) -> String {
        Registry::arn(name)
    }

    /// The queue's attributes by name, as `GetQueueAttributes` answers `All`.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn attributes(&self, name: &str) -> Result<BTreeMap<String, String>, SqsError> {
        let depth = self.depth(name)?;
        let registry = self.lock();
        let state = &registry.slot(name)?.state;
        let mut all = state.settings.attributes();
        let mut put = |name: &str, value: String| all.insert(name.to_owned(), value);
        put("QueueArn", Self::arn(name));
        put("CreatedTimestamp", state.created_at.as_secs().to_string());
        put("LastModifiedTimestamp", state.modified_at.as_secs().to_string());
        put("ApproximateNumberOfMessages", depth.visible.to_string());
        put("ApproximateNumberOfMessagesNotVisible", depth.in_flight.to_string());
        put("ApproximateNumberOfMessagesDelayed", depth.delayed.to_string());
        Ok(all)
    }

    /// The queue's settings.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn settings(&self, name: &str) -> Result<QueueSettings, SqsError> {
        Ok(self.lock().slot(name)?.state.settings.clone())
    }

    /// Changes settings by attribute name, at once and for the messages already there.
    ///
    /// # Errors
    /// The queue does not exist, or an attribute is invalid; then nothing is changed.
    pub fn set_attributes(&self, name: &str, attributes: &BTreeMap<String, String>) -> Result<(), SqsError> {
        self.lock().set(self.clock.now(), name, attributes)
    }

    /// How many messages the queue holds.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn depth(&self, name: &str) -> Result<Depth, SqsError> {
        let now = self.clock.now();
        Ok(self.lock().settle(now, name)?.state.depth())
    }

    /// Deletes every message, also those in flight.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn purge(&self, name: &str) -> Result<(), SqsError> {
        let now = self.clock.now();
        self.lock().settle(now, name)?.state.purge();
        Ok(())
    }

    /// The queues whose dead letters go to this one.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn sources_of(&self, name: &str) -> Result<Vec<String>, SqsError> {
        let registry = self.lock();
        registry.slot(name)?;
        Ok(registry.sources_of(name))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The queue does not exist or refuses the message.
    pub fn send_one(&self, name: &str, message: Outgoing) -> Result<Sent, SqsError> {
        self.lock().send(self.clock.now(), name, message)
    }

    /// Deletes one delivery. An outdated handle of a standard queue deletes nothing and succeeds.
    ///
    /// # Errors
    /// The queue does not exist, the handle is not one of its own or, on a FIFO queue, is outdated.
    pub fn delete_one(&self, name: &str, handle: &ReceiptHandle) -> Result<(), SqsError> {
        let now = self.clock.now();
        let mut registry = self.lock();
        let slot = registry.settle(now, name)?;
        slot.state.delete(handle)?;
        // The next of the group may be received now, or the next of a queue that had too much in flight.
        slot.wake.notify_waiters();
        Ok(())
    }

    /// Hides one delivery for so long from now on.
    ///
    /// # Errors
    /// The queue does not exist, the handle is not a present one, or the delivery would stay hidden for more
    /// than 12 h.
    pub fn change_one(&self, name: &str, change: &VisibilityChange) -> Result<(), SqsError> {
        let now = self.clock.now();
        let mut registry = self.lock();
        let slot = registry.settle(now, name)?;
        slot.state.change_visibility(now, change)?;
        slot.wake.notify_waiters();
        Ok(())
    }

    /// Receives messages, waiting for the first; wakes as soon as one can be received.
    ///
    /// # Errors
    /// The queue does not exist, a parameter is out of range, or too much is in flight.
    pub async fn receive_from(&self, name: &str, receive: Receive) -> Result<Vec<Message>, SqsError> {
        check(&receive)?;
        let wake = Arc::clone(&self.lock().slot(name)?.wake);
        let started = Instant::now();
        loop {
            // Listening begins before looking: what arrives in between is not missed.
            let woken = wake.notified();
            let now = self.clock.now();
            let max = usize::from(receive.max_messages);
            let Step { messages, next_change, over_limit } =
                self.lock().receive(now, name, max, receive.visibility)?;
            if over_limit && receive.wait.is_zero() {
                return Err(SqsError::OverLimit);
            }
            let left = receive.wait.saturating_sub(started.elapsed());
            if !messages.is_empty() || left.is_zero() {
                return Ok(messages);
            }
            let pause = next_change.map_or(left, |at| at.since(now).max(Duration::from_millis(1)).min(left));
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Starts moving a dead-letter queue's messages to `destination`, or each to where it came from; answers
    /// with the task's handle. `rate` is in messages a second, at most 500; `None` moves them at once.
    ///
    /// # Errors
    /// A queue does not exist, the source is no dead-letter queue, or a task runs on it already.
    pub fn start_move(
        &self,
        source: &str,
        destination: Option<&str>,
        rate: Option<u32>,
    ) -> Result<String, SqsError> {
        self.lock().start_move(self.clock.now(), source, destination, rate)
    }

    /// The move tasks of a dead-letter queue, the latest first.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn moves(&self, source: &str) -> Result<Vec<MoveTask>, SqsError> {
        let now = self.clock.now();
        let mut registry = self.lock();
        registry.settle(now, source)?;
        Ok(registry.moves.iter().rev().filter(|task| task.source == source).cloned().collect())
    }

    /// Stops a running move task; answers how many messages it has moved.
    ///
    /// # Errors
    /// No such task runs.
    pub fn cancel_move(&self, handle: &str) -> Result<u64, SqsError> {
        self.lock().cancel_move(self.clock.now(), handle)
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryQueues").field(&self.names()).finish()
    }
}

fn check(receive: &Receive) -> Result<(), SqsError> {
    let out_of_range = |name: &str, range: &str| {
        let message = format!("Value for parameter {name} is invalid. Reason: Must be {range}, if provided.");
        Err(SqsError::InvalidParameterValue(message))
    };
    if !(1..=MAX_BATCH).contains(&usize::from(receive.max_messages)) {
        return out_of_range("MaxNumberOfMessages", "between 1 and 10");
    }
    if receive.wait > MAX_WAIT {
        return out_of_range("WaitTimeSeconds", ">= 0 and <= 20");
    }
    if receive.visibility.is_some_and(|visibility| visibility > MAX_VISIBILITY) {
        return out_of_range("VisibilityTimeout", "between 0 and 43200");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
