//! The claim: who may work on the order, or what it means that nobody may now.

use std::time::Duration;

use super::{Alarm, Desk, Health, LEASE_MARGIN, Work};
use crate::{
    clock::Timestamp,
    decision::{AckReason, Code, Decision, PoisonReason, RetryAfter, RetryReason},
    ledger::{Begin, Claim, Entry, Lease, Ledger, LedgerError, State},
};

/// A record may be gone this long before its time is over: TTL deletes late, never early, but clocks differ.
const RETENTION_MARGIN: Duration = Duration::from_secs(7 * 24 * 3600);

impl<L: Ledger> Desk<L> {
    /// Claims the order, or decides what it means that it cannot be claimed.
    pub(in crate::charge) async fn claim(
        &self,
        work: &mut Work<'_>,
        provider: &str,
        one_shot: bool,
    ) -> Result<Lease, Decision> {
        let begin = self.begin(work, provider, one_shot);
        let claim = self.timed(work, self.ledger.begin(work.order.id(), begin)).await;
        match claim {
            Ok(claim) => self.claimed(work, claim),
            Err(error) => Err(self.store_failed(work, &error)),
        }
    }

    /// Claims an order for which there is no message, as the record knows it.
    pub(in crate::charge) async fn reclaim(
        &self,
        work: &mut Work<'_>,
        entry: &Entry,
    ) -> Result<Lease, Decision> {
        let now = self.clock.now();
        let begin = Begin {
            token: self.random.token(),
            now,
            lease_until: work.delivery.deadline.min(now.plus(self.rules.lease)).plus(LEASE_MARGIN),
            // Begun as what it is: nothing is about to be sent.
            one_shot: entry.state == State::Sent,
            may_create: false,
            epoch: self.rules.epoch,
            attempt: entry.attempt,
            fingerprint: entry.fingerprint.clone(),
            amount_minor: entry.amount_minor,
            currency: entry.currency.clone(),
            provider: entry.provider.clone(),
            message_id: entry.message_id.clone(),
            receive_count: entry.receive_count,
        };
        let claim = self.timed(work, self.ledger.begin(work.order.id(), begin)).await;
        match claim {
            Ok(claim) => self.claimed(work, claim),
            Err(error) => Err(self.store_failed(work, &error)),
        }
    }

    fn begin(&self, work: &Work<'_>, provider: &str, one_shot: bool) -> Begin {
        let now = self.clock.now();
        let order = work.order;
        Begin {
            token: self.random.token(),
            now,
            lease_until: work.delivery.deadline.min(now.plus(self.rules.lease)).plus(LEASE_MARGIN),
            one_shot,
            may_create: self.may_be_new(work, now),
            epoch: self.rules.epoch,
            attempt: order.attempt(),
            fingerprint: order.fingerprint(),
            amount_minor: order.money().minor(),
            currency: order.money().currency().code().to_owned(),
            provider: provider.to_owned(),
            message_id: work.delivery.message_id.as_ref().map(|id| id.as_str().to_owned()),
            receive_count: work.delivery.receive_count,
        }
    }

    /// The age guard: an order so old that its record may have been deleted, or lost in a restore, is not new just
    /// because there is no record. The older of what the producer and what SQS says counts.
    fn may_be_new(&self, work: &Work<'_>, now: Timestamp) -> bool {
        let times = [work.order.created_at(), work.delivery.sent_at];
        let Some(made_at) = times.into_iter().flatten().min() else { return self.rules.epoch.is_none() };
        let forgotten = now.minus(self.rules.retention.saturating_sub(RETENTION_MARGIN));
        made_at >= forgotten && self.rules.epoch.is_none_or(|epoch| made_at >= epoch)
    }

    fn claimed(&self, work: &mut Work<'_>, claim: Claim) -> Result<Lease, Decision> {
        Err(match claim {
            Claim::Started(lease) => {
                work.facts.fence = Some(lease.entry().fence);
                work.facts.handle = lease.entry().handle.clone();
                work.facts.took_over = lease.took_over();
                work.tenure.begin(&lease);
                return Ok(*lease);
            }
            Claim::Done { charge_id } => {
                work.facts.charge_id = charge_id;
                Decision::Ack(AckReason::Duplicate)
            }
            Claim::Busy { until, no_lease } => {
                if no_lease {
                    work.facts.alarm = Some(Alarm::RecordUnreadable);
                }
                let left = until.since(self.clock.now());
                Decision::Retry { after: RetryAfter::LeaseEnd(left), reason: RetryReason::Busy }
            }
            Claim::Mismatch => Decision::Poison(PoisonReason::Mismatch),
            Claim::Superseded => Decision::Poison(PoisonReason::Superseded),
            Claim::Declined { code } => self.declined(Code::new(&code)),
            Claim::Held { reason } => Decision::Poison(PoisonReason::Held(Code::new(&reason))),
            Claim::Unreadable => {
                work.facts.alarm = Some(Alarm::RecordUnreadable);
                Decision::retry(RetryReason::RecordUnreadable)
            }
        })
    }

    /// Whether the record was last changed before the table was complete: only proof can settle it then.
    pub(in crate::charge) fn is_restored(&self, lease: &Lease) -> bool {
        self.rules.epoch.is_some_and(|epoch| lease.entry().state_changed_at < epoch)
    }

    fn store_failed(&self, work: &mut Work<'_>, error: &LedgerError) -> Decision {
        work.note(error);
        work.facts.health = Health::Failing;
        Decision::retry(RetryReason::Store)
    }
}
