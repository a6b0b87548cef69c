//! What both algorithms share: claim the order, record the result, let go.

use std::{future::Future, time::Duration};

use super::{Alarm, Delivery, Facts, Health, STOP_SENDING, tenure::Tenure};
use crate::{
    backoff::Random,
    clock::{Clock, Timestamp},
    decision::{AckReason, Code, Decision, PoisonReason, RetryAfter, RetryReason},
    gateway::{GatewayError, GatewayErrorKind, Receipt},
    ledger::{
        Begin, Claim, Completion, Entry, Evidence, Lease, LeaseError, Ledger, LedgerError, Left, Paid,
        Refused, State,
    },
    order::Order,
    telemetry::ErrorChain,
};

/// How long the lease outlives what it protects, so that nothing of its owner can still be on its way.
pub(super) const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// Recording a charge ends this long before the deadline: before the batch drops what still runs, so that a charge
/// that could not be recorded is always told.
const STOP_RECORDING: Duration = Duration::from_millis(900);
/// Wait after a refused credential: long enough for a person, short enough to heal by itself.
const AUTH_PAUSE: Duration = Duration::from_secs(300);
/// Wait for a provider that is still working.
const PROCESSING_PAUSE: Duration = Duration::from_secs(60);
/// A record may be gone this long before its time is over: TTL deletes late, never early, but clocks differ.
const RETENTION_MARGIN: Duration = Duration::from_secs(7 * 24 * 3600);

/// The settings of the charge step.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Upper bound of a lease.
    pub lease: Duration,
    /// Whether a lease is renewed while its work goes on: where no invocation's deadline bounds the work.
    pub renews_lease: bool,
    /// Upper bound of one call to the provider.
    pub call_timeout: Duration,
    /// How long finished records are kept.
    pub retention: Duration,
    /// The moment since which the table is complete.
    pub epoch: Option<Timestamp>,
    /// Whether a recorded decline is acknowledged.
    pub ack_declined: bool,
}

/// The ledger, the rules, time and chance: everything but the provider.
#[derive(Clone, Debug)]
pub struct Desk<L> {
    /// Where orders are recorded.
    pub ledger: L,
    /// The settings.
    pub rules: Rules,
    /// Time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
}

/// One order on the desk.
pub(super) struct Work<'a> {
    pub(super) order: &'a Order,
    pub(super) delivery: &'a Delivery,
    pub(super) tenure: &'a Tenure,
    pub(super) facts: Facts,
}

impl<'a> Work<'a> {
    pub(super) fn new(order: &'a Order, delivery: &'a Delivery, tenure: &'a Tenure) -> Self {
        Self { order, delivery, tenure, facts: Facts::default() }
    }

    fn note(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.facts.error = Some(ErrorChain(error).to_string());
    }
}

impl<L: Ledger> Desk<L> {
    /// Claims the order, or decides what it means that it cannot be claimed.
    pub(super) async fn claim(
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
    pub(super) async fn reclaim(&self, work: &mut Work<'_>, entry: &Entry) -> Result<Lease, Decision> {
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
        let Some(made_at) = times.into_iter().flatten().min() else { return true };
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

    /// How long a call to the provider may take, or `None` if none may be started any more.
    pub(super) fn budget(&self, work: &Work<'_>) -> Option<Duration> {
        let stop = work.delivery.deadline.minus(STOP_SENDING);
        let left = work.tenure.sends_until(stop)?.min(stop).since(self.clock.now());
        (!left.is_zero()).then(|| left.min(self.rules.call_timeout))
    }

    /// T4: the money moved.
    pub(super) async fn complete(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        evidence: Evidence,
        receipt: Receipt,
    ) -> Decision {
        work.facts.charge_id = Some(receipt.charge_id.clone());
        let now = self.clock.now();
        let paid = Paid {
            evidence,
            charge_id: receipt.charge_id,
            request_id: receipt.request_id,
            now,
            expires_at: self.expires_at(now),
        };
        let left = work.delivery.deadline.minus(STOP_RECORDING).since(now);
        let completion =
            self.timed(work, tokio::time::timeout(left, self.ledger.complete(lease, paid))).await;
        match completion {
            Ok(Ok(Completion::Recorded)) => Decision::Ack(AckReason::Charged),
            Ok(Ok(Completion::DoubleCharge { recorded })) => {
                work.facts.error = Some(format!("the ledger has the charge {recorded}"));
                work.facts.alarm = Some(Alarm::DoubleChargeDetected);
                Decision::Ack(AckReason::Duplicate)
            }
            Ok(Ok(Completion::Contradicts { state })) => {
                let says = state.map_or("nothing that can be read", State::as_str);
                work.facts.error = Some(format!("the ledger says {says}"));
                work.facts.alarm = Some(Alarm::ChargeContradictsRecord);
                Decision::retry(RetryReason::ChargeContradictsRecord)
            }
            Ok(Err(error)) => self.charged_not_recorded(work, Some(&error)),
            Err(_elapsed) => self.charged_not_recorded(work, None),
        }
    }

    fn charged_not_recorded(&self, work: &mut Work<'_>, error: Option<&LedgerError>) -> Decision {
        match error {
            Some(error) => work.note(error),
            None => work.facts.error = Some("no time was left to record the charge".to_owned()),
        }
        work.facts.alarm = Some(Alarm::ChargedNotRecorded);
        work.facts.health = Health::Failing;
        Decision::retry(RetryReason::ChargedNotRecorded)
    }

    /// T5: the charge is refused for good.
    pub(super) async fn decline(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        refused: Refused,
        code: Code,
    ) -> Decision {
        let now = self.clock.now();
        let expires_at = self.expires_at(now);
        let declined = self.ledger.decline(lease, refused, code.as_str(), now, expires_at);
        match self.timed(work, declined).await {
            Ok(()) => self.declined(code),
            Err(error) => self.lease_failed(work, &error),
        }
    }

    fn declined(&self, code: Code) -> Decision {
        match self.rules.ack_declined {
            true => Decision::Ack(AckReason::Declined(code)),
            false => Decision::Poison(PoisonReason::Declined(code)),
        }
    }

    /// T8: a person must look.
    pub(super) async fn hold(&self, work: &mut Work<'_>, lease: Lease, reason: &str) -> Decision {
        let now = self.clock.now();
        match self.timed(work, self.ledger.hold(lease, reason, now)).await {
            Ok(()) => Decision::Poison(PoisonReason::Held(Code::new(reason))),
            Err(error) => self.lease_failed(work, &error),
        }
    }

    /// T6, then `decision`. A release that fails costs the next delivery a wait, nothing else.
    pub(super) async fn release(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        left: Left,
        reason: RetryReason,
        after: RetryAfter,
    ) -> Decision {
        work.tenure.end().await;
        let code = reason.to_string();
        if let Err(error) = self.timed(work, self.ledger.release(lease, &code, left)).await {
            tracing::warn!(error = %ErrorChain(&error), "the lease could not be released and ends by itself");
        }
        Decision::Retry { after, reason }
    }

    /// The provider still works on the charge.
    pub(super) async fn still_processing(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let after = RetryAfter::NotBefore(PROCESSING_PAUSE);
        self.release(work, lease, Left::Doubt, RetryReason::Processing, after).await
    }

    /// Lets go after an answer that proves nothing final.
    pub(super) async fn give_back(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        left: Left,
        error: &GatewayError,
    ) -> Decision {
        work.note(error);
        let asked = error.retry_after.map_or(RetryAfter::Backoff, RetryAfter::NotBefore);
        let after = match &error.kind {
            GatewayErrorKind::RateLimited => {
                work.facts.health = Health::Stop;
                asked
            }
            GatewayErrorKind::AuthConfig { unauthenticated } => {
                work.facts.alarm = Some(Alarm::AuthConfig);
                // A 403 may concern one order only, so it counts instead of stopping the batch at once.
                work.facts.health = if *unauthenticated { Health::Stop } else { Health::Failing };
                RetryAfter::NotBefore(AUTH_PAUSE)
            }
            GatewayErrorKind::NotSent => {
                work.facts.health = Health::Failing;
                asked
            }
            GatewayErrorKind::Unknown { .. }
            | GatewayErrorKind::Declined(_)
            | GatewayErrorKind::Rejected(_)
            | GatewayErrorKind::KeyMismatch
            | GatewayErrorKind::Conflict
            | GatewayErrorKind::Lock
            | GatewayErrorKind::NotFound => asked,
        };
        let reason = RetryReason::Gateway(Code::new(error.kind.code()));
        self.release(work, lease, left, reason, after).await
    }

    pub(super) fn lease_failed(&self, work: &mut Work<'_>, error: &LeaseError) -> Decision {
        work.note(error);
        match error {
            LeaseError::Lost(_) => Decision::retry(RetryReason::LeaseLost),
            LeaseError::Store(_) => {
                work.facts.health = Health::Failing;
                Decision::retry(RetryReason::Store)
            }
        }
    }

    fn store_failed(&self, work: &mut Work<'_>, error: &LedgerError) -> Decision {
        work.note(error);
        work.facts.health = Health::Failing;
        Decision::retry(RetryReason::Store)
    }

    /// Whether the record was last changed before the table was complete: only proof can settle it then.
    pub(super) fn is_restored(&self, lease: &Lease) -> bool {
        self.rules.epoch.is_some_and(|epoch| lease.entry().state_changed_at < epoch)
    }

    fn expires_at(&self, now: Timestamp) -> i64 {
        now.plus(self.rules.retention).as_secs()
    }

    /// Adds the time that a call to the ledger takes to what is known of the work.
    pub(super) async fn timed<T>(&self, work: &mut Work<'_>, call: impl Future<Output = T>) -> T {
        let began = self.clock.now();
        let result = call.await;
        let spent = self.clock.now().since(began);
        work.facts.store_time = Some(work.facts.store_time.unwrap_or_default().saturating_add(spent));
        result
    }

    /// Adds the time that a call to the provider takes to what is known of the work.
    pub(super) async fn asked<T>(&self, work: &mut Work<'_>, call: impl Future<Output = T>) -> T {
        let began = self.clock.now();
        let result = call.await;
        let spent = self.clock.now().since(began);
        work.facts.provider_time = Some(work.facts.provider_time.unwrap_or_default().saturating_add(spent));
        result
    }

    /// Waits a moment before a call is repeated; `false` if there is no time for that.
    pub(super) async fn pause(&self, work: &Work<'_>) -> bool {
        self.pause_between(work, RESEND_PAUSE).await
    }

    /// Waits longer, before a charge is repeated to which nothing was answered.
    pub(super) async fn pause_long(&self, work: &Work<'_>) -> bool {
        self.pause_between(work, COMMIT_PAUSE).await
    }

    async fn pause_between(&self, work: &Work<'_>, (min, max): (Duration, Duration)) -> bool {
        let pause = min.saturating_add(self.random.up_to(max.saturating_sub(min)));
        let in_time = self.budget(work).is_some_and(|left| left > pause);
        if in_time {
            tokio::time::sleep(pause).await;
        }
        in_time
    }
}

/// How often one call is repeated in this process.
pub(super) const RESENDS: u32 = 2;
/// The shortest and the longest wait before that.
const RESEND_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1500));
/// The same before a commit that was not answered is made once more.
const COMMIT_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3));
