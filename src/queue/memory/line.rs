//! Which message is next: oldest first on a standard queue, group by group on a FIFO queue.
//!
//! A [`Line`] knows order and groups, not time: the queue tells it when a message is taken and when it shows
//! again. Every step costs the logarithm of the queue's length.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::message::{Seq, Stored};
use crate::record::MessageGroupId;

/// A standard queue moves a message to the back of the line once it was received this often.
const SENT_TO_THE_BACK: u32 = 3;

/// The messages of one queue in the order they are handed out.
#[derive(Debug)]
pub(super) enum Line {
    /// Visible messages; those received often come last.
    Standard(BTreeSet<(bool, Seq)>),
    /// Messages by group.
    Fifo(Groups),
}

/// The groups of a FIFO queue.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: HashMap<MessageGroupId, Group>,
    /// Groups that can be received from, by their head.
    ready: BTreeSet<(Seq, MessageGroupId)>,
}

#[derive(Debug, Default)]
struct Group {
    /// All messages in order; whether each is visible.
    members: BTreeMap<Seq, bool>,
    in_flight: usize,
}

impl Group {
    /// The head, if the group can be received from: nothing is in flight, and the head is not delayed.
    fn ready_head(&self) -> Option<Seq> {
        let (head, visible) = self.members.first_key_value()?;
        (*visible && self.in_flight == 0).then_some(*head)
    }
}

impl Groups {
    /// Changes a group and keeps `ready` true. FIFO queues accept no message without a group.
    fn update(&mut self, group: Option<&MessageGroupId>, change: impl FnOnce(&mut Group)) {
        let Some(id) = group else { return };
        let group = self.all.entry(id.clone()).or_default();
        let before = group.ready_head();
        change(group);
        let after = group.ready_head();
        let empty = group.members.is_empty();
        if before != after {
            before.map(|head| self.ready.remove(&(head, id.clone())));
            after.map(|head| self.ready.insert((head, id.clone())));
        }
        if empty {
            self.all.remove(id);
        }
    }
}

impl Line {
    pub(super) fn new(fifo: bool) -> Self {
        if fifo { Self::Fifo(Groups::default()) } else { Self::Standard(BTreeSet::new()) }
    }

    /// A new message at the end, visible or delayed.
    pub(super) fn add(&mut self, seq: Seq, message: &Stored, visible: bool) {
        match self {
            Self::Standard(line) => {
                if visible {
                    line.insert(key(seq, message));
                }
            }
            Self::Fifo(groups) => groups.update(message.group(), |group| {
                group.members.insert(seq, visible);
            }),
        }
    }

    /// A visible message is handed out. Call it before the receive is counted.
    pub(super) fn take(&mut self, seq: Seq, message: &Stored) {
        match self {
            Self::Standard(line) => {
                line.remove(&key(seq, message));
            }
            Self::Fifo(groups) => groups.update(message.group(), |group| {
                group.members.insert(seq, false);
                group.in_flight = group.in_flight.saturating_add(1);
            }),
        }
    }

    /// A delayed message, or one in flight, becomes visible.
    pub(super) fn show(&mut self, seq: Seq, message: &Stored, was_in_flight: bool) {
        match self {
            Self::Standard(line) => {
                line.insert(key(seq, message));
            }
            Self::Fifo(groups) => groups.update(message.group(), |group| {
                group.members.insert(seq, true);
                group.in_flight = group.in_flight.saturating_sub(usize::from(was_in_flight));
            }),
        }
    }

    /// A message leaves the queue.
    pub(super) fn remove(&mut self, seq: Seq, message: &Stored, was_in_flight: bool) {
        match self {
            Self::Standard(line) => {
                line.remove(&key(seq, message));
            }
            Self::Fifo(groups) => groups.update(message.group(), |group| {
                group.members.remove(&seq);
                group.in_flight = group.in_flight.saturating_sub(usize::from(was_in_flight));
            }),
        }
    }

    /// The next messages to hand out, up to `max`; on a FIFO queue all of one group. Fewer than `max` does not
    /// mean that there are no more.
    pub(super) fn next(&self, max: usize) -> Vec<Seq> {
        match self {
            Self::Standard(line) => line.iter().take(max).map(|(_, seq)| *seq).collect(),
            Self::Fifo(groups) => {
                let ready = groups.ready.first().and_then(|(_, id)| groups.all.get(id));
                let members = ready.into_iter().flat_map(|group| &group.members);
                members.take_while(|(_, visible)| **visible).map(|(seq, _)| *seq).take(max).collect()
            }
        }
    }
}

fn key(seq: Seq, message: &Stored) -> (bool, Seq) {
    (message.receive_count >= SENT_TO_THE_BACK, seq)
}
