//! The queues by name, and what passes between them: dead letters and move tasks. Waits for nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{
    REGION_ARN,
    error::SqsError,
    message::{Phase, Stored, sequence_number},
    moves::MoveTask,
    settings::QueueSettings,
    state::QueueState,
};
use crate::{
    backoff::Random,
    clock::Timestamp,
    queue::{Message, Outgoing},
    record::MessageId,
};

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Names the message; on a FIFO queue possibly the earlier one that it repeats.
    pub id: MessageId,
    /// Its place, on FIFO queues.
    pub sequence_number: Option<String>,
}

/// What a receive found, or when to look again.
pub(super) struct Step {
    pub(super) messages: Vec<Message>,
    pub(super) next_change: Option<Timestamp>,
    /// Whether nothing was handed out because too much is in flight.
    pub(super) over_limit: bool,
}

pub(super) struct Slot {
    pub(super) state: QueueState,
    /// Told whenever a receive that found nothing should look again.
    pub(super) wake: Arc<Notify>,
}

pub(super) struct Registry {
    queues: BTreeMap<String, Slot>,
    pub(super) moves: Vec<MoveTask>,
    pub(super) random: Random,
}

impl Registry {
    pub(super) fn new(random: Random) -> Self {
        Self { queues: BTreeMap::new(), moves: Vec::new(), random }
    }

    /// Creates a queue; creating it again with the same settings does nothing.
    pub(super) fn create(
        &mut self,
        now: Timestamp,
        name: &str,
        settings: QueueSettings,
    ) -> Result<(), SqsError> {
        if let Ok(slot) = self.slot(name) {
            let (old, new) = (slot.state.settings.attributes(), settings.attributes());
            let differs = new.into_iter().find(|(name, value)| old.get(name) != Some(value));
            return differs.map_or(Ok(()), |(attribute, _)| Err(SqsError::QueueNameExists(attribute)));
        }
        let stem = name.strip_suffix(".fifo").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if stem.is_empty() || name.len() > 80 || !stem.chars().all(is_name) {
            let message =
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
            return Err(SqsError::InvalidParameterValue(message.to_owned()));
        }
        if name.ends_with(".fifo") != settings.fifo.is_some() {
            let message = "The name of a FIFO queue can only end with the .fifo suffix, and it alone.";
            return Err(SqsError::InvalidParameterValue(message.to_owned()));
        }
        self.check_redrive(&settings)?;
        let slot = Slot { state: QueueState::new(name, settings, now), wake: Arc::new(Notify::new()) };
        self.queues.insert(name.to_owned(), slot);
        Ok(())
    }

    pub(super) fn set(
        &mut self,
        now: Timestamp,
        name: &str,
        attributes: &BTreeMap<String, String>,
    ) -> Result<(), SqsError> {
        let mut settings = self.settle(now, name)?.state.settings.clone();
        for (attribute, value) in attributes {
            settings.set(attribute, value)?;
        }
        self.check_redrive(&settings)?;
        let slot = self.slot_mut(name)?;
        slot.state.settings = settings;
        slot.state.modified_at = now;
        Ok(())
    }

    /// A dead-letter queue exists and is of the same type.
    fn check_redrive(&self, settings: &QueueSettings) -> Result<(), SqsError> {
        let Some(policy) = &settings.redrive else { return Ok(()) };
        let reason = match self.slot(Self::name_in(&policy.dead_letter_queue)) {
            Ok(slot) if slot.state.settings.fifo.is_some() == settings.fifo.is_some() => return Ok(()),
            Ok(_) => "Dead-letter queue must be same type of queue as the source.",
            Err(_) => "Dead letter target does not exist.",
        };
        let message = format!("Value for parameter RedrivePolicy is invalid. Reason: {reason}");
        Err(SqsError::InvalidParameterValue(message))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    /// The queues whose dead letters go to `name`.
    pub(super) fn sources_of(&self, name: &str) -> Vec<String> {
        let feeds = |slot: &Slot| {
            let policy = slot.state.settings.redrive.as_ref();
            policy.is_some_and(|policy| Self::name_in(&policy.dead_letter_queue) == name)
        };
        self.queues.iter().filter(|(_, slot)| feeds(slot)).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn send(&mut self, now: Timestamp, name: &str, message: Outgoing) -> Result<Sent, SqsError> {
        let id = self.fresh_id();
        let slot = self.settle(now, name)?;
        let (id, seq) = slot.state.send(now, id, message)?;
        slot.wake.notify_waiters();
        let sequence_number = slot.state.settings.fifo.map(|_| sequence_number(seq));
        Ok(Sent { id, sequence_number })
    }

    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        name: &str,
        max: usize,
        visibility: Option<Duration>,
    ) -> Result<Step, SqsError> {
        let slot = self.settle(now, name)?;
        let over_limit = slot.state.room() == 0;
        let visibility = visibility.unwrap_or(slot.state.settings.visibility);
        let received = slot.state.receive(now, max, visibility);
        let changes = slot.state.next_change();
        let target = slot.state.settings.redrive.as_ref().map(|policy| policy.dead_letter_queue.clone());
        for message in received.dead {
            self.bury(now, name, target.as_deref(), message);
        }
        let next_change = changes.into_iter().chain(self.next_move()).min();
        Ok(Step { messages: received.messages, next_change, over_limit })
    }

    /// Puts a message into the dead-letter queue. A standard one keeps the time it was first sent, so its
    /// retention goes on; a FIFO one starts anew.
    fn bury(&mut self, now: Timestamp, source: &str, target: Option<&str>, message: Stored) {
        let Ok(slot) = self.slot_mut(target.map_or("", Self::name_in)) else { return };
        let mut message = Stored {
            arrived_with: message.receive_count,
            dead_letter_source: Some(Self::arn(source)),
            phase: Phase::Visible,
            ..message
        };
        if slot.state.settings.fifo.is_some() {
            message.sent_at = now;
            message.sent.deduplication_id = Some(message.id.to_string());
        }
        slot.state.insert(message);
        slot.wake.notify_waiters();
    }

    /// Moves the first message of `source`: to its new queue it is a new message.
    pub(super) fn move_first(&mut self, now: Timestamp, source: &str, destination: &str) {
        let id = self.fresh_id();
        // Looked for before anything is taken out: a message leaves one queue only for another.
        if self.slot(destination).is_err() {
            return;
        }
        let Some(message) = self.slot_mut(source).ok().and_then(|slot| slot.state.pop()) else { return };
        let Ok(slot) = self.slot_mut(destination) else { return };
        let mut sent = message.sent;
        if slot.state.settings.fifo.is_some() {
            sent.deduplication_id = Some(message.id.to_string());
        }
        slot.state.insert(Stored::new(id, sent, now));
        slot.wake.notify_waiters();
    }

    /// Lets time pass up to `now` and finds a queue.
    pub(super) fn settle(&mut self, now: Timestamp, name: &str) -> Result<&mut Slot, SqsError> {
        self.run_moves(now);
        let slot = self.slot_mut(name)?;
        slot.state.settle(now);
        Ok(slot)
    }

    pub(super) fn slot(&self, name: &str) -> Result<&Slot, SqsError> {
        self.queues.get(name).ok_or(SqsError::QueueDoesNotExist)
    }

    pub(super) fn slot_mut(&mut self, name: &str) -> Result<&mut Slot, SqsError> {
        self.queues.get_mut(name).ok_or(SqsError::QueueDoesNotExist)
    }

    pub(super) fn wake_all(&self) {
        self.queues.values().for_each(|slot| slot.wake.notify_waiters());
    }

    pub(super) fn arn(name: &str) -> String {
        format!("{REGION_ARN}:{name}")
    }

    /// The queue's name in an ARN.
    pub(super) fn name_in(arn: &str) -> &str {
        arn.rsplit(':').next().unwrap_or(arn)
    }

    fn fresh_id(&self) -> MessageId {
        loop {
            if let Some(id) = MessageId::new(self.random.token()) {
                return id;
            }
        }
    }
}
