//! What the ledger is told at the end of the work, and the decision that follows from its answer.

use std::time::Duration;

use super::{Alarm, Desk, Health, Work};
use crate::{
    clock::Timestamp,
    deadline::STOP_RECORDING,
    decision::{AckReason, Code, Decision, PoisonReason, RetryAfter, RetryReason},
    gateway::{GatewayError, GatewayErrorKind, Receipt},
    ledger::{Completion, Evidence, Lease, LeaseError, Ledger, LedgerError, Left, Paid, Refused, State},
    telemetry::ErrorChain,
};

/// Wait after a refused credential: long enough for a person, short enough to heal by itself.
const AUTH_PAUSE: Duration = Duration::from_secs(300);
/// Wait for a provider that is still working.
const PROCESSING_PAUSE: Duration = Duration::from_secs(60);

impl<L: Ledger> Desk<L> {
    /// T4: the money moved.
    pub(in crate::charge) async fn complete(
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
    pub(in crate::charge) async fn decline(
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

    /// What becomes of the message of a declined order.
    pub(super) fn declined(&self, code: Code) -> Decision {
        match self.rules.ack_declined {
            true => Decision::Ack(AckReason::Declined(code)),
            false => Decision::Poison(PoisonReason::Declined(code)),
        }
    }

    /// T8: a person must look.
    pub(in crate::charge) async fn hold(&self, work: &mut Work<'_>, lease: Lease, reason: &str) -> Decision {
        let now = self.clock.now();
        match self.timed(work, self.ledger.hold(lease, reason, now)).await {
            Ok(()) => Decision::Poison(PoisonReason::Held(Code::new(reason))),
            Err(error) => self.lease_failed(work, &error),
        }
    }

    /// T6, then `decision`. A release that fails costs the next delivery a wait, nothing else.
    pub(in crate::charge) async fn release(
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
    pub(in crate::charge) async fn still_processing(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let after = RetryAfter::NotBefore(PROCESSING_PAUSE);
        self.release(work, lease, Left::Doubt, RetryReason::Processing, after).await
    }

    /// Lets go after an answer that proves nothing final.
    pub(in crate::charge) async fn give_back(
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

    pub(in crate::charge) fn lease_failed(&self, work: &mut Work<'_>, error: &LeaseError) -> Decision {
        work.note(error);
        match error {
            LeaseError::Lost(_) => Decision::retry(RetryReason::LeaseLost),
            LeaseError::Store(_) => {
                work.facts.health = Health::Failing;
                Decision::retry(RetryReason::Store)
            }
        }
    }

    fn expires_at(&self, now: Timestamp) -> i64 {
        now.plus(self.rules.retention).as_secs()
    }
}
