//! Everything that a step of the protocol depends on, small enough to keep by the million.

use charge_once::ledger;

/// How often the adversary may do what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How often the message is delivered.
    pub(super) deliveries: u8,
    /// How often a day passes and the provider forgets its keys. After the first the order is old.
    pub(super) key_losses: u8,
    /// How often the provider cancels a handle by itself.
    pub(super) expiries: u8,
    /// How often the record of an old order disappears.
    pub(super) record_losses: u8,
    /// How often the producer asks again after a decline.
    pub(super) new_attempts: u8,
}

/// The rules that protect the order; each can be taken away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) fence: bool,
    pub(super) seal: bool,
    pub(super) prepared: bool,
    pub(super) age_guard: bool,
    pub(super) keep: bool,
}

impl Rules {
    pub(super) const ALL: Self =
        Self { fence: true, seal: true, prepared: true, age_guard: true, keep: true };
}

pub(super) const HANDLES: usize = 5;
/// Creation keys: two attempts with two generations each.
pub(super) const KEYS: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Whether the message is still in the queue.
    pub(super) message: bool,
    /// The attempt that the message asks for.
    pub(super) attempt: u8,
    /// How many deliveries there were; each is named by its number.
    pub(super) delivered: u8,
    pub(super) record: Option<Record>,
    pub(super) handles: [Option<Handle>; HANDLES],
    /// The handle that each creation key stands for.
    pub(super) keys: [Option<u8>; KEYS],
    /// Requests under way, in order, so that equal sets are equal.
    pub(super) net: Vec<Request>,
    /// In order, because it does not matter which worker is which.
    pub(super) workers: [Worker; 2],
    pub(super) key_losses: u8,
    pub(super) expiries: u8,
    pub(super) record_losses: u8,
    pub(super) new_attempts: u8,
}

/// The part of a record that differs between states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) state: ledger::State,
    pub(super) owner: u8,
    pub(super) fence: u8,
    pub(super) attempt: u8,
    pub(super) handle: Option<u8>,
    pub(super) generation: u8,
    pub(super) charge: Option<u8>,
}

/// How a handle stands at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Handle {
    Ready,
    /// Declined, and could still be charged.
    Failed,
    Paid,
    Sealed,
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Ask {
    Create { key: u8 },
    Commit { handle: u8 },
    Inspect { handle: u8 },
    Seal { handle: u8 },
}

/// A request and the delivery that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) ask: Ask,
    pub(super) from: u8,
}

/// What an answer says: a new handle, or how one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Answer {
    Made(u8),
    Stands(Handle),
}

/// A claim as its owner remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Lease {
    pub(super) owner: u8,
    pub(super) fence: u8,
    pub(super) attempt: u8,
    pub(super) handle: Option<u8>,
    pub(super) generation: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Worker {
    Idle,
    Sends(Lease, Ask),
    Waits(Lease, Ask),
    Knows(Lease, Ask, Answer),
}

impl State {
    pub(super) fn first() -> Self {
        Self {
            message: true,
            attempt: 1,
            delivered: 0,
            record: None,
            handles: [None; HANDLES],
            keys: [None; KEYS],
            net: Vec::new(),
            workers: [Worker::Idle; 2],
            key_losses: 0,
            expiries: 0,
            record_losses: 0,
            new_attempts: 0,
        }
    }

    /// Equal situations become equal states.
    pub(super) fn ordered(mut self) -> Self {
        self.net.sort_unstable();
        self.workers.sort_unstable();
        self
    }

    /// What must never be.
    pub(super) fn violation(&self) -> Option<&'static str> {
        let paid = self.handles.iter().filter(|handle| **handle == Some(Handle::Paid)).count();
        let state = self.record.map(|record| record.state);
        match state {
            _ if paid > 1 => Some("charged twice"),
            Some(ledger::State::Declined) if paid > 0 => Some("charged and recorded as declined"),
            Some(ledger::State::Paid) if paid == 0 => Some("recorded as paid and not charged"),
            _ => None,
        }
    }
}
