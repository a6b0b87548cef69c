//! Move tasks: dead-letter messages on their way back, at a bounded rate.

use std::time::Duration;

use super::{error::SqsError, registry::Registry};
use crate::clock::Timestamp;

/// SQS's bound for `MaxNumberOfMessagesPerSecond`.
const MAX_RATE: u32 = 500;

/// A task that moves all messages of a dead-letter queue, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTask {
    /// Names the task; what cancelling takes.
    pub handle: String,
    /// The dead-letter queue's name.
    pub source: String,
    /// The queue the messages go to; `None` sends each to the queue it came from.
    pub destination: Option<String>,
    /// Messages a second; `None` moves them all at once.
    pub rate: Option<u32>,
    /// When the task was started.
    pub started_at: Timestamp,
    /// How many messages have been moved.
    pub moved: u64,
    /// How many messages there were to move at the start.
    pub to_move: u64,
    /// How far the task is.
    pub status: MoveStatus,
}

/// How far a move task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStatus {
    /// Messages are being moved.
    Running,
    /// Every message has been moved.
    Completed,
    /// Stopped by the caller; what was moved stays moved.
    Cancelled,
    /// A message was sent to the dead-letter queue by hand, so nothing tells where it came from.
    CouldNotDetermineMessageSource,
}

impl MoveTask {
    /// Whether the task may move another message at `now`: the first at once, the others at the rate.
    fn may_move(&self, now: Timestamp) -> bool {
        self.next_at().is_none_or(|at| at <= now)
    }

    /// When the next message moves; `None` if the rate is unbounded.
    fn next_at(&self) -> Option<Timestamp> {
        let millis = self.moved.saturating_mul(1000).div_ceil(self.rate.map(u64::from)?.max(1));
        Some(self.started_at.plus(Duration::from_millis(millis)))
    }
}

impl Registry {
    /// Starts a task and moves what may be moved at once.
    pub(super) fn start_move(
        &mut self,
        now: Timestamp,
        source: &str,
        destination: Option<&str>,
        rate: Option<u32>,
    ) -> Result<String, SqsError> {
        self.settle(now, source)?;
        self.check_move(source, destination, rate)?;
        let handle = self.random.token();
        let to_move = u64::try_from(self.slot(source)?.state.depth().visible).unwrap_or(u64::MAX);
        self.moves.push(MoveTask {
            handle: handle.clone(),
            source: source.to_owned(),
            destination: destination.map(str::to_owned),
            rate,
            started_at: now,
            moved: 0,
            to_move,
            status: MoveStatus::Running,
        });
        self.run_moves(now);
        self.wake_all();
        Ok(handle)
    }

    fn check_move(&self, source: &str, destination: Option<&str>, rate: Option<u32>) -> Result<(), SqsError> {
        let is_fifo = |name| self.slot(name).map(|slot| slot.state.settings.fifo.is_some());
        if let Some(destination) = destination {
            let message = "The resource that you specified for the DestinationArn doesn't exist.";
            let fifo = is_fifo(destination).map_err(|_| SqsError::ResourceNotFound(message))?;
            if fifo != is_fifo(source)? {
                return Err(invalid("Source and destination must be queues of the same type."));
            }
        }
        if self.sources_of(source).is_empty() {
            return Err(invalid("Source queue must be configured as a Dead Letter Queue."));
        }
        if rate.is_some_and(|rate| rate == 0 || rate > MAX_RATE) {
            return Err(invalid("MaxNumberOfMessagesPerSecond must be between 1 and 500."));
        }
        if self.moves.iter().any(|task| task.source == source && task.status == MoveStatus::Running) {
            let message = "There is already a task running on this source queue.";
            return Err(SqsError::UnsupportedOperation(message.to_owned()));
        }
        Ok(())
    }

    /// Stops a running task; answers how many messages it moved.
    pub(super) fn cancel_move(&mut self, now: Timestamp, handle: &str) -> Result<u64, SqsError> {
        self.run_moves(now);
        let running = |task: &&mut MoveTask| task.handle == handle && task.status == MoveStatus::Running;
        let task =
            self.moves.iter_mut().find(running).ok_or(SqsError::ResourceNotFound("Task does not exist."))?;
        task.status = MoveStatus::Cancelled;
        Ok(task.moved)
    }

    /// Moves what may be moved up to `now`.
    pub(super) fn run_moves(&mut self, now: Timestamp) {
        if self.next_move().is_none_or(|at| at > now) {
            return;
        }
        let mut tasks = std::mem::take(&mut self.moves);
        for task in tasks.iter_mut().filter(|task| task.status == MoveStatus::Running) {
            self.run_move(now, task);
        }
        self.moves = tasks;
    }

    /// When a running task moves its next message.
    pub(super) fn next_move(&self) -> Option<Timestamp> {
        let running = self.moves.iter().filter(|task| task.status == MoveStatus::Running);
        running.map(|task| task.next_at().unwrap_or(task.started_at)).min()
    }

    fn run_move(&mut self, now: Timestamp, task: &mut MoveTask) {
        while task.may_move(now) {
            let message = self.slot_mut(&task.source).ok().and_then(|slot| slot.state.peek(now));
            let Some(message) = message.filter(|_| task.moved < task.to_move) else {
                task.status = MoveStatus::Completed;
                return;
            };
            let origin = message.dead_letter_source.as_deref().map(Self::name_in);
            let Some(destination) = task.destination.as_deref().or(origin).map(str::to_owned) else {
                task.status = MoveStatus::CouldNotDetermineMessageSource;
                return;
            };
            self.move_first(now, &task.source, &destination);
            task.moved = task.moved.saturating_add(1);
        }
    }
}

fn invalid(message: &str) -> SqsError {
    SqsError::InvalidParameterValue(message.to_owned())
}
