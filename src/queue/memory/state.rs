//! One queue as a state machine: every step takes the present instant and waits for nothing.
//!
//! Time moves only inside `settle`: it expires old messages and shows those whose timeout has ended. Steps cost
//! the logarithm of the queue's length, whatever is hidden or in flight.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use sha2::{Digest, Sha256};

use super::{
    dedup::{Dedup, DedupKey},
    error::SqsError,
    limits,
    line::Line,
    message::{Handle, Phase, Seq, Stored},
    settings::QueueSettings,
};
use crate::{
    clock::Timestamp,
    queue::{Message, Outgoing, VisibilityChange},
    record::{MessageId, ReceiptHandle},
};

/// The longest a delivery may stay hidden, counted from its receive.
const MAX_HIDDEN: Duration = Duration::from_secs(43_200);
/// Standard queues hand out no more than this many messages at a time.
const MAX_IN_FLIGHT: usize = 120_000;

/// How many messages a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Ready to be received, or waiting behind others of their group.
    pub visible: usize,
    /// Received and hidden.
    pub in_flight: usize,
    /// Not yet shown for the first time.
    pub delayed: usize,
}

impl Depth {
    /// Every message the queue holds.
    pub fn total(self) -> usize {
        self.visible.saturating_add(self.in_flight).saturating_add(self.delayed)
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct QueueState {
    name: String,
    pub(super) settings: QueueSettings,
    pub(super) created_at: Timestamp,
    pub(super) modified_at: Timestamp,
    messages: HashMap<Seq, Stored>,
    line: Line,
    /// Hidden messages by the end of their timeout.
    hidden: BTreeSet<(Timestamp, Seq)>,
    /// All messages by the start of their retention.
    by_age: BTreeSet<(Timestamp, Seq)>,
    dedup: Dedup,
    in_flight: usize,
    next_seq: Seq,
}

/// What a receive handed out, and what it found to be received too often.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) messages: Vec<Message>,
    pub(super) dead: Vec<Stored>,
}

impl QueueState {
    pub(super) fn new(name: &str, settings: QueueSettings, now: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            line: Line::new(settings.fifo.is_some()),
            settings,
            created_at: now,
            modified_at: now,
            messages: HashMap::new(),
            hidden: BTreeSet::new(),
            by_age: BTreeSet::new(),
            dedup: Dedup::default(),
            in_flight: 0,
            next_seq: 1,
        }
    }

    /// Lets time pass up to `now`.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let oldest_kept = now.minus(self.settings.retention);
        while let Some((_, seq)) = self.by_age.first().copied().filter(|(at, _)| *at <= oldest_kept) {
            self.remove(seq);
        }
        while let Some((until, seq)) = self.hidden.first().copied().filter(|(until, _)| *until <= now) {
            self.hidden.remove(&(until, seq));
            self.show(seq);
        }
    }

    /// When the next hidden message shows.
    pub(super) fn next_change(&self) -> Option<Timestamp> {
        self.hidden.first().map(|(until, _)| *until)
    }

    pub(super) fn depth(&self) -> Depth {
        let delayed = self.hidden.len().saturating_sub(self.in_flight);
        let visible = self.messages.len().saturating_sub(self.hidden.len());
        Depth { visible, in_flight: self.in_flight, delayed }
    }

    /// Accepts a message under the identifier `id`, or answers with the one it repeats.
    pub(super) fn send(
        &mut self,
        now: Timestamp,
        id: MessageId,
        mut message: Outgoing,
    ) -> Result<(MessageId, Seq), SqsError> {
        limits::check(&message, &self.settings)?;
        if let Some(fifo) = self.settings.fifo {
            let key = message.deduplication_id.take().unwrap_or_else(|| sha256(&message.body));
            message.deduplication_id = Some(key.clone());
            let group = message.group.as_ref().filter(|_| fifo.deduplicate_per_group);
            let key: DedupKey = (group.map(ToString::to_string), key);
            if let Some(first) = self.dedup.first(now, &key) {
                return Ok(first);
            }
            self.dedup.remember(now, key, id.clone(), self.next_seq);
        }
        let delay = if message.delay.is_zero() { self.settings.delay } else { message.delay };
        let phase = if delay.is_zero() { Phase::Visible } else { Phase::Delayed { until: now.plus(delay) } };
        let seq = self.insert(Stored { phase, ..Stored::new(id.clone(), message, now) });
        Ok((id, seq))
    }

    /// Takes in a message as it is, from another queue or a send.
    pub(super) fn insert(&mut self, message: Stored) -> Seq {
        let seq = self.next_seq;
        self.next_seq = seq.saturating_add(1);
        self.line.add(seq, &message, message.phase == Phase::Visible);
        if let Some(until) = message.phase.hidden_until() {
            self.hidden.insert((until, seq));
        }
        self.by_age.insert((message.sent_at, seq));
        self.messages.insert(seq, message);
        seq
    }

    /// Hands out up to `max` messages and hides them for `visibility`. Messages that were received too often
    /// leave the queue instead.
    pub(super) fn receive(&mut self, now: Timestamp, max: usize, visibility: Duration) -> Received {
        let mut received = Received::default();
        loop {
            let max = max.saturating_sub(received.messages.len()).min(self.room());
            let run = self.line.next(max);
            if run.is_empty() {
                return received;
            }
            for seq in run {
                if self.is_spent(seq) {
                    received.dead.extend(self.remove(seq));
                } else {
                    received.messages.extend(self.hand_out(now, seq, visibility));
                }
            }
        }
    }

    /// How many more messages may be in flight.
    pub(super) fn room(&self) -> usize {
        match self.settings.fifo {
            Some(_) => usize::MAX,
            None => MAX_IN_FLIGHT.saturating_sub(self.in_flight),
        }
    }

    /// Deletes a delivery. An outdated handle of a standard queue deletes nothing and succeeds.
    pub(super) fn delete(&mut self, handle: &ReceiptHandle) -> Result<(), SqsError> {
        let Handle { seq, receive } = Handle::read(&self.name, handle)?;
        let Some(message) = self.messages.get(&seq) else { return Ok(()) };
        let latest = message.receive_count == receive;
        if self.settings.fifo.is_some() && !(latest && message.phase.is_in_flight()) {
            return Err(SqsError::expired(handle));
        }
        if latest {
            self.remove(seq);
        }
        Ok(())
    }

    /// Hides a delivery for so long from `now` on.
    pub(super) fn change_visibility(
        &mut self,
        now: Timestamp,
        change: &VisibilityChange,
    ) -> Result<(), SqsError> {
        let handle = &change.receipt_handle;
        let Handle { seq, receive } = Handle::read(&self.name, handle)?;
        let timeout = Duration::from_secs(change.seconds.into());
        if timeout > MAX_HIDDEN {
            return Err(SqsError::visibility(change.seconds, "Must be between 0 and 43200, if provided."));
        }
        let Some(message) = self.messages.get_mut(&seq).filter(|message| message.receive_count == receive)
        else {
            return Err(if self.settings.fifo.is_some() {
                SqsError::expired(handle)
            } else {
                SqsError::gone(handle)
            });
        };
        let Phase::InFlight { until, since } = message.phase else {
            return Err(if self.settings.fifo.is_some() {
                SqsError::expired(handle)
            } else {
                SqsError::MessageNotInflight
            });
        };
        let new = now.plus(timeout);
        if new > since.plus(MAX_HIDDEN) {
            let reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].";
            return Err(SqsError::visibility(change.seconds, reason));
        }
        message.phase = Phase::InFlight { until: new, since };
        self.hidden.remove(&(until, seq));
        self.hidden.insert((new, seq));
        Ok(())
    }

    /// The next message that can be received.
    pub(super) fn peek(&mut self, now: Timestamp) -> Option<&Stored> {
        self.settle(now);
        self.messages.get(self.line.next(1).first()?)
    }

    /// Removes and returns the next message that can be received, as a move task does.
    pub(super) fn pop(&mut self) -> Option<Stored> {
        let seq = self.line.next(1).first().copied()?;
        self.remove(seq)
    }

    /// Deletes everything, in flight or not.
    pub(super) fn purge(&mut self) {
        self.line = Line::new(self.settings.fifo.is_some());
        self.messages.clear();
        self.hidden.clear();
        self.by_age.clear();
        self.in_flight = 0;
    }

    fn is_spent(&self, seq: Seq) -> bool {
        let receives = self.messages.get(&seq).map_or(0, Stored::receives_here);
        self.settings.redrive.as_ref().is_some_and(|policy| receives >= policy.max_receive_count)
    }

    fn hand_out(&mut self, now: Timestamp, seq: Seq, visibility: Duration) -> Option<Message> {
        let message = self.messages.get_mut(&seq)?;
        self.line.take(seq, message);
        let until = now.plus(visibility);
        message.receive_count = message.receive_count.saturating_add(1);
        message.first_received_at.get_or_insert(now);
        message.phase = Phase::InFlight { until, since: now };
        self.hidden.insert((until, seq));
        self.in_flight = self.in_flight.saturating_add(1);
        let handle = Handle { seq, receive: message.receive_count }.write(&self.name)?;
        Some(message.delivery(handle, self.settings.fifo.map(|_| seq)))
    }

    fn show(&mut self, seq: Seq) {
        let Some(message) = self.messages.get_mut(&seq) else { return };
        let was_in_flight = message.phase.is_in_flight();
        message.phase = Phase::Visible;
        self.line.show(seq, message, was_in_flight);
        self.in_flight = self.in_flight.saturating_sub(usize::from(was_in_flight));
    }

    fn remove(&mut self, seq: Seq) -> Option<Stored> {
        let message = self.messages.remove(&seq)?;
        let was_in_flight = message.phase.is_in_flight();
        self.line.remove(seq, &message, was_in_flight);
        if let Some(until) = message.phase.hidden_until() {
            self.hidden.remove(&(until, seq));
        }
        self.by_age.remove(&(message.sent_at, seq));
        self.in_flight = self.in_flight.saturating_sub(usize::from(was_in_flight));
        Some(message)
    }
}

fn sha256(body: &str) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}
