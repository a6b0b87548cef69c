//! The transitions of a record as pure functions: old record + intent -> new record, or a refusal.
//!
//! Every store does what [`Intent::apply`] says. The DynamoDB store says the same in expressions, and a property
//! test holds the two together. Numbers T1 to T9 are those of `docs/ledger.md`.

use std::time::Duration;

use super::entry::{Attention, Entry, Owner, State};
use crate::clock::Timestamp;

/// How far two clocks may differ before a lease is taken over too early. Safety does not rest on it: it saves
/// work and keeps two owners from stepping on each other's feet.
pub const SKEW: Duration = Duration::from_secs(5);

/// What a record is begun with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// A fresh token for this call; also how the call recognises its own write.
    pub token: String,
    /// The present instant.
    pub now: Timestamp,
    /// Until when the new owner may send.
    pub lease_until: Timestamp,
    /// One-shot providers write `SENT` before anything is sent.
    pub one_shot: bool,
    /// The age guard: whether a missing record may be created, and a declined one be followed by a new attempt.
    pub may_create: bool,
    /// The moment since which the table is complete: what was declined before it may have been followed by an
    /// attempt that the table has lost.
    pub epoch: Option<Timestamp>,
    /// From the order.
    pub attempt: u32,
    /// From the order.
    pub fingerprint: String,
    /// From the order.
    pub amount_minor: i64,
    /// From the order.
    pub currency: String,
    /// Provider, account and mode.
    pub provider: String,
    /// From the delivery.
    pub message_id: Option<String>,
    /// From the delivery.
    pub receive_count: u32,
}

/// What proves that a charge belongs to the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Two-phase: the charge was made through this handle.
    Handle(String),
    /// One-shot: the charge was made for this attempt.
    Attempt(u32),
}

/// What makes a decline final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Two-phase, refused before there was a handle.
    BeforeHandle(Owner),
    /// Two-phase, the handle is sealed at the provider.
    Sealed(String),
    /// One-shot, the provider's own final answer.
    OneShot(Owner),
}

/// A write to one record.
#[expect(missing_docs, reason = "the fields are those of the table in docs/ledger.md")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// T1: begin, or take over what a dead owner left.
    Begin(Begin),
    /// T1b: the producer asks again after a decline.
    NewAttempt(Begin),
    /// T2: store the handle; from now on only this handle may be charged.
    StoreHandle { mine: Owner, handle: String, now: Timestamp },
    /// T2b: replace a handle that the provider expired by itself.
    ReplaceHandle { mine: Owner, old: String, new: String, now: Timestamp },
    /// T3: about to send once more, one-shot.
    Resend { mine: Owner, now: Timestamp },
    /// T4: charged. No owner check: it carries proof about what the record stores.
    Pay { evidence: Evidence, charge_id: String, request_id: Option<String>, now: Timestamp, expires_at: i64 },
    /// T5: declined for good.
    Decline { refused: Refused, error: String, now: Timestamp, expires_at: i64 },
    /// T6: let go; never a delete.
    Release { mine: Owner, error: String, left: Left },
    /// T7: the owner lives on.
    Renew { mine: Owner, until: Timestamp },
    /// T8: a person must look.
    Hold { mine: Owner, reason: String, now: Timestamp },
    /// T9: there is no record, and the order is too old for a new one.
    HoldMissing { begin: Begin, reason: String },
    /// T10: a person decided about a held order.
    Resolve(Resolution),
}

/// What a release leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing was sent by anybody: a one-shot record goes back to `CLAIMED`, and its key has no age.
    NothingSent,
    /// Nothing was sent since the state was written; the state stays as it is.
    Untouched,
    /// Something may have been sent: the sweeper should look.
    Doubt,
}

/// A person's word on an order that nobody else can settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The fence of the record that the person looked at: another one means that it changed meanwhile.
    pub fence: u64,
    /// A fresh token: the person becomes the owner, so that nobody before can write any more.
    pub token: String,
    /// Who decided; a code, kept in the record's `error`.
    pub by: String,
    /// What was decided.
    pub verdict: Verdict,
    /// The present instant.
    pub now: Timestamp,
}

/// What a person found out at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The order was charged. Also about a record that says declined and is wrong.
    Paid {
        /// The charge.
        charge_id: String,
        /// When the record may go, in epoch seconds.
        expires_at: i64,
    },
    /// The order was not charged, cannot be any more, and shall not be.
    Declined {
        /// When the record may go, in epoch seconds.
        expires_at: i64,
    },
    /// The order was not charged, nothing on its way can charge it any more, and the next delivery shall.
    Retry,
}

impl Intent {
    /// The record after this write, or `None` if its condition does not hold.
    pub fn apply(&self, old: Option<&Entry>) -> Option<Entry> {
        match (self, old) {
            (Self::Begin(begin), None) => begin.may_create.then(|| begin.create()),
            (Self::Begin(begin), Some(old)) => begin.take_over(old),
            (Self::HoldMissing { begin, reason }, None) => Some(Entry {
                state: State::Held,
                lease_until: None,
                first_sent_at: None,
                held_reason: Some(reason.clone()),
                attention: Some(Attention::Held),
                ..begin.create()
            }),
            (Self::HoldMissing { .. }, Some(_)) | (_, None) => None,
            (Self::NewAttempt(begin), Some(old)) => begin.attempt_anew(old),
            (Self::StoreHandle { mine, handle, now }, Some(old)) => {
                let holds = old.is_owned_by(mine) && old.state == State::Claimed && old.handle.is_none();
                holds.then(|| Entry {
                    state: State::Prepared,
                    handle: Some(handle.clone()),
                    first_sent_at: old.first_sent_at.or(Some(*now)),
                    state_changed_at: *now,
                    ..old.clone()
                })
            }
            (Self::ReplaceHandle { mine, old: expired, new, now }, Some(old)) => {
                let holds = old.is_owned_by(mine)
                    && old.state == State::Prepared
                    && old.handle.as_ref() == Some(expired);
                holds.then(|| Entry {
                    handle: Some(new.clone()),
                    handle_generation: old.handle_generation.saturating_add(1),
                    state_changed_at: *now,
                    ..old.clone()
                })
            }
            (Self::Resend { mine, now }, Some(old)) => {
                let holds = old.is_owned_by(mine) && matches!(old.state, State::Claimed | State::Sent);
                holds.then(|| Entry {
                    state: State::Sent,
                    first_sent_at: old.first_sent_at.or(Some(*now)),
                    state_changed_at: *now,
                    ..old.clone()
                })
            }
            (Self::Pay { evidence, charge_id, request_id, now, expires_at }, Some(old)) => {
                evidence.belongs_to(old).then(|| Entry {
                    state: State::Paid,
                    lease_until: None,
                    charge_id: Some(charge_id.clone()),
                    provider_request_id: request_id.clone(),
                    error: None,
                    held_reason: None,
                    attention: None,
                    state_changed_at: *now,
                    expires_at: Some(*expires_at),
                    ..old.clone()
                })
            }
            (Self::Decline { refused, error, now, expires_at }, Some(old)) => {
                refused.belongs_to(old).then(|| Entry {
                    state: State::Declined,
                    lease_until: None,
                    error: Some(error.clone()),
                    held_reason: None,
                    attention: None,
                    state_changed_at: *now,
                    expires_at: Some(*expires_at),
                    ..old.clone()
                })
            }
            (Self::Release { mine, error, left }, Some(old)) => {
                (old.is_owned_by(mine) && old.state.is_live()).then(|| left.of(old, error))
            }
            (Self::Renew { mine, until }, Some(old)) => (old.is_owned_by(mine) && old.state.is_live())
                .then(|| Entry { lease_until: Some(*until), ..old.clone() }),
            (Self::Hold { mine, reason, now }, Some(old)) => (old.is_owned_by(mine) && old.state.is_live())
                .then(|| Entry {
                    state: State::Held,
                    lease_until: None,
                    held_reason: Some(reason.clone()),
                    attention: Some(Attention::Held),
                    state_changed_at: *now,
                    expires_at: None,
                    ..old.clone()
                }),
            (Self::Resolve(resolution), Some(old)) => resolution.of(old),
        }
    }

    /// Whether a refusal is none: the record already shows exactly this write, because an earlier try of it was
    /// applied and only its answer was lost.
    pub fn is_already_done(&self, found: &Entry) -> bool {
        match self {
            Self::Begin(begin) | Self::NewAttempt(begin) => {
                found.owner == begin.token && found.state.is_live()
            }
            Self::HoldMissing { begin, .. } => found.owner == begin.token && found.state == State::Held,
            Self::StoreHandle { mine, handle, .. } | Self::ReplaceHandle { mine, new: handle, .. } => {
                found.is_owned_by(mine)
                    && found.state == State::Prepared
                    && found.handle.as_ref() == Some(handle)
            }
            Self::Pay { charge_id, .. } => {
                found.state == State::Paid && found.charge_id.as_ref() == Some(charge_id)
            }
            Self::Decline { refused, error, .. } => {
                let about = match refused {
                    Refused::BeforeHandle(mine) | Refused::OneShot(mine) => found.is_owned_by(mine),
                    Refused::Sealed(handle) => found.handle.as_ref() == Some(handle),
                };
                about && found.state == State::Declined && found.error.as_ref() == Some(error)
            }
            Self::Hold { mine, reason, .. } => {
                found.is_owned_by(mine)
                    && found.state == State::Held
                    && found.held_reason.as_ref() == Some(reason)
            }
            Self::Resolve(resolution) => found.owner == resolution.token,
            // Their conditions hold a second time, so a refusal is never their own doing.
            Self::Resend { .. } | Self::Release { .. } | Self::Renew { .. } => false,
        }
    }
}

impl Begin {
    fn create(&self) -> Entry {
        Entry {
            state: if self.one_shot { State::Sent } else { State::Claimed },
            owner: self.token.clone(),
            fence: 1,
            lease_until: Some(self.lease_until),
            attempt: self.attempt,
            fingerprint: self.fingerprint.clone(),
            amount_minor: self.amount_minor,
            currency: self.currency.clone(),
            provider: self.provider.clone(),
            handle: None,
            handle_generation: 0,
            first_seen_at: self.now,
            first_sent_at: self.one_shot.then_some(self.now),
            state_changed_at: self.now,
            charge_id: None,
            provider_request_id: None,
            error: None,
            held_reason: None,
            message_id: self.message_id.clone(),
            receive_count: self.receive_count,
            attention: None,
            expires_at: None,
        }
    }

    /// The lease ends before this is taken over: a live record without a stale lease never is.
    pub fn stale_before(&self) -> Timestamp {
        self.now.minus(SKEW)
    }

    fn take_over(&self, old: &Entry) -> Option<Entry> {
        let same = old.fingerprint == self.fingerprint
            && old.attempt == self.attempt
            && old.provider == self.provider;
        let stale = old.lease_until.is_some_and(|until| until < self.stale_before());
        (self.can_continue(old) && same && stale).then(|| Entry {
            state: if self.one_shot { State::Sent } else { old.state },
            owner: self.token.clone(),
            fence: old.fence.saturating_add(1),
            lease_until: Some(self.lease_until),
            amount_minor: self.amount_minor,
            currency: self.currency.clone(),
            first_sent_at: if self.one_shot {
                old.first_sent_at.or(Some(self.now))
            } else {
                old.first_sent_at
            },
            message_id: self.message_id.clone(),
            receive_count: self.receive_count,
            expires_at: None,
            ..old.clone()
        })
    }

    /// Whether a provider of this kind left the record. What was sent at an unknown time, or through a handle that a
    /// one-shot provider does not know, may have been charged under another key: nothing is concluded from it.
    pub(super) fn can_continue(&self, old: &Entry) -> bool {
        match old.state {
            State::Claimed => true,
            State::Prepared => !self.one_shot,
            State::Sent => self.one_shot && old.first_sent_at.is_some_and(|sent| sent.as_millis() >= 0),
            State::Paid | State::Declined | State::Held => false,
        }
    }

    /// Whether the record is the declined attempt before this one.
    pub(super) fn follows(&self, old: &Entry) -> bool {
        old.state == State::Declined && Some(old.attempt) == self.attempt.checked_sub(1)
    }

    /// Whether it is sure that no attempt after `old` was made and lost.
    pub(super) fn may_follow(&self, old: &Entry) -> bool {
        self.may_create && self.epoch.is_none_or(|epoch| old.state_changed_at >= epoch)
    }

    fn attempt_anew(&self, old: &Entry) -> Option<Entry> {
        let next = self.follows(old) && self.may_follow(old);
        next.then(|| Entry {
            fence: old.fence.saturating_add(1),
            first_seen_at: old.first_seen_at,
            ..self.create()
        })
    }
}

impl Resolution {
    /// Only held orders are a person's to decide, and those whose record a charge contradicts.
    fn of(&self, old: &Entry) -> Option<Entry> {
        let resolved = Entry {
            owner: self.token.clone(),
            fence: old.fence.saturating_add(1),
            lease_until: None,
            error: Some(self.by.clone()),
            held_reason: None,
            attention: None,
            state_changed_at: self.now,
            expires_at: None,
            ..old.clone()
        };
        if old.fence != self.fence {
            return None;
        }
        match (&self.verdict, old.state) {
            (Verdict::Paid { charge_id, expires_at }, State::Held | State::Declined) => Some(Entry {
                state: State::Paid,
                charge_id: Some(charge_id.clone()),
                provider_request_id: None,
                expires_at: Some(*expires_at),
                ..resolved
            }),
            (Verdict::Declined { expires_at }, State::Held) => {
                Some(Entry { state: State::Declined, expires_at: Some(*expires_at), ..resolved })
            }
            (Verdict::Retry, State::Held) => Some(Entry {
                state: State::Claimed,
                lease_until: Some(Timestamp::from_millis(0)),
                handle: None,
                handle_generation: old.handle_generation.saturating_add(1),
                first_sent_at: None,
                ..resolved
            }),
            (
                Verdict::Paid { .. } | Verdict::Declined { .. } | Verdict::Retry,
                State::Claimed | State::Prepared | State::Sent | State::Paid | State::Declined,
            ) => None,
        }
    }
}

impl Evidence {
    fn belongs_to(&self, old: &Entry) -> bool {
        match self {
            Self::Handle(handle) => {
                old.handle.as_ref() == Some(handle) && matches!(old.state, State::Prepared | State::Held)
            }
            Self::Attempt(attempt) => {
                old.attempt == *attempt && matches!(old.state, State::Sent | State::Held)
            }
        }
    }
}

impl Refused {
    fn belongs_to(&self, old: &Entry) -> bool {
        match self {
            Self::BeforeHandle(mine) => old.is_owned_by(mine) && old.state == State::Claimed,
            Self::Sealed(handle) => {
                old.handle.as_ref() == Some(handle) && matches!(old.state, State::Prepared | State::Held)
            }
            Self::OneShot(mine) => old.is_owned_by(mine) && old.state == State::Sent,
        }
    }
}

impl Left {
    fn of(self, old: &Entry, error: &str) -> Entry {
        let released = Entry {
            lease_until: Some(Timestamp::from_millis(0)),
            error: Some(error.to_owned()),
            ..old.clone()
        };
        match self {
            Self::Untouched => released,
            Self::Doubt => Entry { attention: Some(Attention::Unsettled), ..released },
            Self::NothingSent => Entry { state: State::Claimed, first_sent_at: None, ..released },
        }
    }
}
