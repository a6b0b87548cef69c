//! What the ledger knows of one order: the record, attribute by attribute.

use crate::clock::Timestamp;

/// The record format this version writes. A higher one is never acted on.
pub const VERSION: u32 = 1;

/// Where an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Live: somebody works on it, nothing can have been charged.
    Claimed,
    /// Live, two-phase: the handle is stored, and only that handle may be charged.
    Prepared,
    /// Live, one-shot: a charge may have been sent.
    Sent,
    /// The end: charged once.
    Paid,
    /// The end: not charged, and what could have been charged is sealed.
    Declined,
    /// Waits for a person.
    Held,
}

impl State {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 6] =
        [Self::Claimed, Self::Prepared, Self::Sent, Self::Paid, Self::Declined, Self::Held];

    /// The text in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "CLAIMED",
            Self::Prepared => "PREPARED",
            Self::Sent => "SENT",
            Self::Paid => "PAID",
            Self::Declined => "DECLINED",
            Self::Held => "HELD",
        }
    }

    /// Reads the text in the table; `None` for a state of another version.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether an owner may work on the order.
    pub fn is_live(self) -> bool {
        match self {
            Self::Claimed | Self::Prepared | Self::Sent => true,
            Self::Paid | Self::Declined | Self::Held => false,
        }
    }
}

/// Why a record is in the sparse index `attention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attention {
    /// A person must decide.
    Held,
    /// It is not known whether money moved; the next delivery or the sweeper finds out.
    Unsettled,
}

impl Attention {
    /// The text in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "HELD",
            Self::Unsettled => "UNSETTLED",
        }
    }

    /// Reads the text in the table.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Held, Self::Unsettled].into_iter().find(|attention| attention.as_str() == text)
    }
}

/// The record of one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the order stands.
    pub state: State,
    /// The token of the `begin` call that owns it; a fresh one for each call.
    pub owner: String,
    /// Counts the owners; never reset.
    pub fence: u64,
    /// Until when the owner may send; the epoch itself after a release.
    pub lease_until: Option<Timestamp>,
    /// Which of the producer's attempts this is.
    pub attempt: u32,
    /// What is charged, see [`crate::order::Order::fingerprint`].
    pub fingerprint: String,
    /// The amount in minor units.
    pub amount_minor: i64,
    /// The ISO 4217 code.
    pub currency: String,
    /// Provider, account and mode.
    pub provider: String,
    /// The prepared handle, two-phase only.
    pub handle: Option<String>,
    /// How often the handle was replaced; part of its creation key.
    pub handle_generation: u32,
    /// When the order was first seen.
    pub first_seen_at: Timestamp,
    /// When a charge may first have been sent: the age of the provider's idempotency key.
    pub first_sent_at: Option<Timestamp>,
    /// When the state last changed. Begin and release leave it alone, so it shows the age of a doubt.
    pub state_changed_at: Timestamp,
    /// The provider's name of the charge.
    pub charge_id: Option<String>,
    /// The provider's name of the request that proved it.
    pub provider_request_id: Option<String>,
    /// A code, never the provider's own text.
    pub error: Option<String>,
    /// Why a person must look.
    pub held_reason: Option<String>,
    /// The message that last began the order.
    pub message_id: Option<String>,
    /// How often that message had been received.
    pub receive_count: u32,
    /// Present while somebody should look.
    pub attention: Option<Attention>,
    /// When DynamoDB may delete the record, in epoch seconds; only on states that are an end.
    pub expires_at: Option<i64>,
}

impl Entry {
    /// Whether `mine` is the present owner.
    pub fn is_owned_by(&self, mine: &Owner) -> bool {
        self.owner == mine.token && self.fence == mine.fence
    }
}

/// Names one owner: the token of its `begin` and the fence that `begin` got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The token.
    pub token: String,
    /// The fence.
    pub fence: u64,
}
