//! The lease and what can be done with it, over any store.

use super::{
    Applied, Begin, Entry, Evidence, Found, Intent, Ledger, LedgerError, Owner, Resolution, SKEW, State,
};
use crate::{clock::Timestamp, order::OrderId};

/// How often a charge that was made is tried to be recorded.
const COMPLETE_TRIES: u32 = 3;
/// The reason of an order that is too old to have no record.
const NO_RECORD_TOO_OLD: &str = "NO_RECORD_TOO_OLD";

/// The reason of an order whose record may have lost what came after it.
const RESTORED: &str = "RESTORED";

/// The right to act on one order. Handed out by [`Ledger::begin`], spent by whatever ends the work; not `Clone`.
#[must_use = "an unused lease blocks the order until it ends"]
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    order_id: OrderId,
    entry: Entry,
    earlier_doubt: bool,
    took_over: bool,
}

impl Lease {
    /// The order.
    pub fn order_id(&self) -> &OrderId {
        &self.order_id
    }

    /// The record as this owner last wrote it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Who owns the record, as its conditions check it.
    pub fn owner(&self) -> Owner {
        Owner { token: self.entry.owner.clone(), fence: self.entry.fence }
    }

    /// Whether a charge may have been sent before this owner began. Read from the record before, not by comparing
    /// instants: the owner before may have had a clock that runs ahead of ours.
    pub fn has_earlier_doubt(&self) -> bool {
        self.earlier_doubt
    }

    /// Whether the owner before was cut off instead of letting go.
    pub fn took_over(&self) -> bool {
        self.took_over
    }
}

/// What [`Ledger::begin`] answers.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim {
    /// The order is ours to work on.
    Started(Box<Lease>),
    /// It was charged before.
    Done {
        /// The charge.
        charge_id: Option<String>,
    },
    /// Another owner works on it until then.
    Busy {
        /// When its lease can be taken over at the earliest.
        until: Timestamp,
        /// A live record without a lease: no version of ours writes that.
        no_lease: bool,
    },
    /// The ledger knows this order with another content, attempt or provider.
    Mismatch,
    /// The ledger knows a later attempt.
    Superseded,
    /// It was declined before.
    Declined {
        /// The recorded code.
        code: String,
    },
    /// It waits for a person.
    Held {
        /// Why.
        reason: String,
    },
    /// A later version or another kind of provider wrote the record, or it lacks what it must hold; nothing is done
    /// with it.
    Unreadable,
}

/// A charge that was made, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// What ties it to the record.
    pub evidence: Evidence,
    /// The provider's name of the charge.
    pub charge_id: String,
    /// The provider's name of the request.
    pub request_id: Option<String>,
    /// The present instant.
    pub now: Timestamp,
    /// When the record may go, in epoch seconds.
    pub expires_at: i64,
}

/// What became of recording a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It is recorded.
    Recorded,
    /// Another charge of this order is recorded already: the customer has paid twice.
    DoubleCharge {
        /// The charge that was recorded first and stays.
        recorded: String,
    },
    /// The record cannot hold this charge; it stays as it is.
    Contradicts {
        /// The record's state, if there is a readable record.
        state: Option<State>,
    },
}

/// Why a lease could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The record belongs to somebody else or is settled by now.
    #[error("the record changed hands")]
    Lost(Found),
    /// The store did not answer.
    #[error("the write could not be confirmed")]
    Store(#[source] LedgerError),
}

pub(super) async fn begin<L: Ledger + ?Sized>(
    ledger: &L,
    order_id: &OrderId,
    begin: Begin,
) -> Result<Claim, LedgerError> {
    let claim = claim(ledger, order_id, &begin, Intent::Begin(begin.clone())).await?;
    match claim {
        Answer::Claim(claim) => Ok(claim),
        Answer::AttemptAnew => {
            match self::claim(ledger, order_id, &begin, Intent::NewAttempt(begin.clone())).await? {
                Answer::Claim(claim) => Ok(claim),
                // The record moved between the two writes; the next delivery sees where to.
                Answer::AttemptAnew | Answer::NoRecord => Ok(busy_now(&begin)),
            }
        }
        Answer::NoRecord => {
            let intent = Intent::HoldMissing { begin: begin.clone(), reason: NO_RECORD_TOO_OLD.to_owned() };
            match ledger.apply(order_id, &intent).await? {
                Applied::Written { .. } => Ok(Claim::Held { reason: NO_RECORD_TOO_OLD.to_owned() }),
                Applied::Refused(Found::Entry(entry)) if intent.is_already_done(&entry) => {
                    Ok(Claim::Held { reason: NO_RECORD_TOO_OLD.to_owned() })
                }
                Applied::Refused(_) => Ok(busy_now(&begin)),
            }
        }
    }
}

fn busy_now(begin: &Begin) -> Claim {
    Claim::Busy { until: begin.now, no_lease: false }
}

enum Answer {
    Claim(Claim),
    AttemptAnew,
    NoRecord,
}

async fn claim<L: Ledger + ?Sized>(
    ledger: &L,
    order_id: &OrderId,
    begin: &Begin,
    intent: Intent,
) -> Result<Answer, LedgerError> {
    let started = |entry: Entry, earlier_doubt, took_over| {
        let lease = Lease { order_id: order_id.clone(), entry, earlier_doubt, took_over };
        Answer::Claim(Claim::Started(Box::new(lease)))
    };
    Ok(match ledger.apply(order_id, &intent).await? {
        Applied::Written { old, new } => {
            // What was sent for a declined attempt says nothing about the one after it.
            let before = old.filter(|old| old.state.is_live());
            let doubt = before.as_ref().is_some_and(|old| old.first_sent_at.is_some());
            // A release writes the epoch itself; any other lease that is taken over was cut off.
            let cut_off =
                before.is_some_and(|old| old.lease_until.is_some_and(|until| until.as_millis() > 0));
            started(*new, doubt, cut_off)
        }
        Applied::Refused(Found::Entry(entry)) if intent.is_already_done(&entry) => {
            // The record before this write is not known any more: only the first owner can be sure.
            let doubt =
                matches!(intent, Intent::Begin(_)) && entry.fence > 1 && entry.first_sent_at.is_some();
            started(*entry, doubt, false)
        }
        Applied::Refused(Found::Entry(entry)) => judge(&entry, begin),
        Applied::Refused(Found::Nothing) => Answer::NoRecord,
        Applied::Refused(Found::Unreadable) => Answer::Claim(Claim::Unreadable),
    })
}

/// What a record that refused `begin` means for it. The order of the questions matters.
fn judge(found: &Entry, begin: &Begin) -> Answer {
    let same_order = found.fingerprint == begin.fingerprint;
    let same = same_order && found.attempt == begin.attempt && found.provider == begin.provider;
    let claim = match found.state {
        State::Paid if same_order => Claim::Done { charge_id: found.charge_id.clone() },
        State::Declined if begin.follows(found) && begin.may_follow(found) => return Answer::AttemptAnew,
        State::Declined if begin.follows(found) => Claim::Held { reason: RESTORED.to_owned() },
        _ if found.attempt > begin.attempt => Claim::Superseded,
        _ if !same => Claim::Mismatch,
        State::Paid => Claim::Mismatch,
        State::Declined => Claim::Declined { code: found.error.clone().unwrap_or_else(|| "unknown".into()) },
        State::Held => Claim::Held { reason: found.held_reason.clone().unwrap_or_else(|| "unknown".into()) },
        State::Claimed | State::Prepared | State::Sent if !begin.can_continue(found) => Claim::Unreadable,
        State::Claimed | State::Prepared | State::Sent => busy(found.lease_until, begin.now),
    };
    Answer::Claim(claim)
}

/// A lease that has just ended is still respected for [`SKEW`]; coming back sooner would only burn a receive.
fn busy(lease_until: Option<Timestamp>, now: Timestamp) -> Claim {
    let until = lease_until.unwrap_or(now);
    Claim::Busy { until: if until > now { until } else { until.plus(SKEW) }, no_lease: lease_until.is_none() }
}

pub(super) async fn go_on<L: Ledger + ?Sized>(
    ledger: &L,
    lease: Lease,
    intent: Intent,
) -> Result<Lease, LeaseError> {
    let entry = confirmed(ledger, &lease.order_id, &intent).await?;
    Ok(Lease { entry, ..lease })
}

pub(super) async fn end<L: Ledger + ?Sized>(
    ledger: &L,
    lease: Lease,
    intent: Intent,
) -> Result<(), LeaseError> {
    confirmed(ledger, &lease.order_id, &intent).await.map(drop)
}

pub(super) async fn renew<L: Ledger + ?Sized>(
    ledger: &L,
    order_id: &OrderId,
    intent: Intent,
) -> Result<(), LeaseError> {
    confirmed(ledger, order_id, &intent).await.map(drop)
}

pub(super) async fn resolve<L: Ledger + ?Sized>(
    ledger: &L,
    order_id: &OrderId,
    resolution: Resolution,
) -> Result<Entry, LeaseError> {
    confirmed(ledger, order_id, &Intent::Resolve(resolution)).await
}

/// The record after the write, whether this try or one before it was applied.
async fn confirmed<L: Ledger + ?Sized>(
    ledger: &L,
    order_id: &OrderId,
    intent: &Intent,
) -> Result<Entry, LeaseError> {
    match ledger.apply(order_id, intent).await.map_err(LeaseError::Store)? {
        Applied::Written { new, .. } => Ok(*new),
        Applied::Refused(Found::Entry(entry)) if intent.is_already_done(&entry) => Ok(*entry),
        Applied::Refused(found) => Err(LeaseError::Lost(found)),
    }
}

pub(super) async fn complete<L: Ledger + ?Sized>(
    ledger: &L,
    lease: Lease,
    paid: Paid,
) -> Result<Completion, LedgerError> {
    let Paid { evidence, charge_id, request_id, now, expires_at } = paid;
    let intent = Intent::Pay { evidence, charge_id, request_id, now, expires_at };
    let mut tries = 1;
    let applied = loop {
        match ledger.apply(&lease.order_id, &intent).await {
            Ok(applied) => break applied,
            Err(error) if tries >= COMPLETE_TRIES => return Err(error),
            Err(_) => tries = tries.saturating_add(1),
        }
    };
    Ok(match applied {
        Applied::Written { .. } => Completion::Recorded,
        Applied::Refused(Found::Entry(entry)) if intent.is_already_done(&entry) => Completion::Recorded,
        Applied::Refused(Found::Entry(entry)) => match entry.charge_id {
            Some(recorded) if entry.state == State::Paid => Completion::DoubleCharge { recorded },
            _ => Completion::Contradicts { state: Some(entry.state) },
        },
        Applied::Refused(Found::Nothing | Found::Unreadable) => Completion::Contradicts { state: None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Left, memory::MemoryLedger};

    const NOW: i64 = 1_800_000_000_000;

    fn one_shot(token: &str, now: i64) -> Begin {
        let now = Timestamp::from_millis(now);
        Begin {
            token: token.to_owned(),
            now,
            lease_until: now.plus(SKEW),
            one_shot: true,
            may_create: true,
            epoch: None,
            attempt: 1,
            fingerprint: "f".to_owned(),
            amount_minor: 1,
            currency: "EUR".to_owned(),
            provider: "http:default".to_owned(),
            message_id: None,
            receive_count: 1,
        }
    }

    async fn started(ledger: &MemoryLedger, begin: Begin) -> Lease {
        let claim = ledger.begin(&OrderId::parse("o-1").unwrap(), begin).await.unwrap();
        let Claim::Started(lease) = claim else { panic!("{claim:?}") };
        *lease
    }

    #[tokio::test]
    async fn a_doubt_stays_when_the_owner_before_had_a_clock_that_runs_ahead() {
        let ledger = MemoryLedger::default();
        let ahead = started(&ledger, one_shot("a", NOW + 3000)).await;
        assert!(!ahead.has_earlier_doubt());
        ledger.release(ahead, "UNKNOWN", Left::Doubt).await.unwrap();
        assert!(started(&ledger, one_shot("b", NOW)).await.has_earlier_doubt());
    }

    #[tokio::test]
    async fn there_is_no_doubt_after_a_release_that_sent_nothing() {
        let ledger = MemoryLedger::default();
        let first = started(&ledger, one_shot("a", NOW)).await;
        ledger.release(first, "NOT_SENT", Left::NothingSent).await.unwrap();
        assert!(!started(&ledger, one_shot("b", NOW)).await.has_earlier_doubt());
    }
}
