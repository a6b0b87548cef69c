//! One-shot providers: the attempt is on record before anything is sent.
//!
//! `begin` itself writes `SENT`. Inside the window in which the provider remembers the key, the same key and the
//! same bytes are sent again. Past it the charge is looked up, and if it is not found the order is held for a
//! person: "not found, so charge again" is an option an operator must switch on.

use std::time::Duration;

use super::{
    Delivery, Desk, Outcome, Step,
    desk::{Resends, Work},
    tenure::Tenure,
};
use crate::{
    decision::{Code, Decision, RetryAfter, RetryReason},
    gateway::{
        Answer, GatewayError, GatewayErrorKind, IdempotencyKey, LookedUp, OneShotGateway, Operation, Receipt,
    },
    ledger::{Evidence, Lease, Ledger, Left, Refused},
    order::Order,
};

/// What is done once the provider has forgotten the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// `GATEWAY_LOOKUP=off`: the order is held.
    Off,
    /// `GATEWAY_LOOKUP=on`: the provider is asked; an order it does not know is held.
    On,
    /// And `RECHARGE_AFTER_LOOKUP=on`: an order it does not know is charged again.
    ThenCharge,
}

/// Why the provider's key settles nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubted {
    /// The record is older than the table is complete: anything but a charge proves nothing.
    Restored,
    /// The provider has forgotten the key.
    Expired {
        /// Whether an order that the provider does not know is charged again.
        may_charge: bool,
    },
}

impl Doubted {
    fn reason(self) -> &'static str {
        match self {
            Self::Restored => "RESTORED",
            Self::Expired { .. } => "UNKNOWN_EXPIRED",
        }
    }
}

/// The step for one-shot providers.
#[derive(Debug)]
pub struct OneShotCharge<L, G> {
    /// What all charging shares.
    pub desk: Desk<L>,
    /// The provider.
    pub gateway: G,
    /// How long the provider remembers a key.
    pub key_window: Duration,
    /// What is done after that.
    pub look_up: LookUp,
}

impl<L: Ledger, G: OneShotGateway> Step for OneShotCharge<L, G> {
    async fn run(&self, order: &Order, delivery: &Delivery) -> Outcome {
        let tenure = Tenure::default();
        let mut work = Work::new(order, delivery, &tenure);
        let decision = self.desk.keeping(&tenure, Box::pin(self.decide(&mut work))).await;
        Outcome { decision, facts: work.facts }
    }
}

impl<L: Ledger, G: OneShotGateway> OneShotCharge<L, G> {
    async fn decide(&self, work: &mut Work<'_>) -> Decision {
        let lease = match self.desk.claim(work, self.gateway.provider(), true).await {
            Ok(lease) => lease,
            Err(decision) => return decision,
        };
        if self.desk.is_restored(&lease) {
            return self.settle_by_look_up(work, lease, Doubted::Restored).await;
        }
        let now = self.desk.clock.now();
        let key_age = lease.entry().first_sent_at.map_or(Duration::ZERO, |sent| now.since(sent));
        if key_age < self.key_window {
            return self.send(work, lease).await;
        }
        let may_charge = self.look_up == LookUp::ThenCharge;
        self.settle_by_look_up(work, lease, Doubted::Expired { may_charge }).await
    }

    /// Sends the charge, up to three times where the answer allows it.
    async fn send(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let (order, provider) = (work.order, self.gateway.provider());
        let key = IdempotencyKey::new(provider, order.id(), order.attempt(), Operation::Charge);
        let mut doubt = lease.has_earlier_doubt();
        let mut resends = Resends::default();
        loop {
            let Some(within) = self.desk.budget(work) else {
                return self.out_of_time(work, lease, doubt).await;
            };
            let answer = self.desk.asked(work, self.gateway.charge(order, &key, within)).await;
            let error = match answer {
                Ok(answer) => return self.settle(work, lease, answer).await,
                Err(error) => error,
            };
            let doubted = doubt;
            doubt |= error.kind != GatewayErrorKind::NotSent;
            if !resends.again(&self.desk, work, &error).await {
                return self.failed(work, lease, error, doubted).await;
            }
        }
    }

    pub(super) async fn settle(&self, work: &mut Work<'_>, lease: Lease, answer: Answer) -> Decision {
        match answer {
            Answer::Succeeded(receipt) => self.paid(work, lease, receipt).await,
            Answer::Processing => self.desk.still_processing(work, lease).await,
            Answer::Failed(code) => self.declined(work, lease, code).await,
        }
    }

    async fn paid(&self, work: &mut Work<'_>, lease: Lease, receipt: Receipt) -> Decision {
        let evidence = Evidence::Attempt(work.order.attempt());
        self.desk.complete(work, lease, evidence, receipt).await
    }

    async fn declined(&self, work: &mut Work<'_>, lease: Lease, code: Code) -> Decision {
        let refused = Refused::OneShot(lease.owner());
        self.desk.decline(work, lease, refused, code).await
    }

    /// `doubted`: something may have been sent before the request that this error answers.
    async fn failed(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        error: GatewayError,
        doubted: bool,
    ) -> Decision {
        match &error.kind {
            GatewayErrorKind::Declined(code) => self.declined(work, lease, code.clone()).await,
            GatewayErrorKind::Rejected(code) if !doubted => self.declined(work, lease, code.clone()).await,
            GatewayErrorKind::KeyMismatch => self.desk.hold(work, lease, "KEY_MISMATCH").await,
            // A request that was turned away at the door did nothing: the key has no age yet, however long the
            // outage or the wrong credential lasts.
            GatewayErrorKind::NotSent | GatewayErrorKind::AuthConfig { unauthenticated: true }
                if !doubted =>
            {
                self.desk.give_back(work, lease, Left::NothingSent, &error).await
            }
            GatewayErrorKind::NotSent
            | GatewayErrorKind::Unknown { .. }
            | GatewayErrorKind::Rejected(_)
            | GatewayErrorKind::Conflict
            | GatewayErrorKind::Lock
            | GatewayErrorKind::RateLimited
            | GatewayErrorKind::AuthConfig { .. }
            | GatewayErrorKind::NotFound => self.desk.give_back(work, lease, Left::Doubt, &error).await,
        }
    }

    async fn out_of_time(&self, work: &mut Work<'_>, lease: Lease, doubt: bool) -> Decision {
        let (left, after) = match doubt {
            true => (Left::Doubt, RetryAfter::Backoff),
            false => (Left::NothingSent, RetryAfter::Immediately),
        };
        self.desk.release(work, lease, left, RetryReason::Unfinished, after).await
    }

    /// The key is worth nothing any more: only what the provider finds settles the order.
    pub(super) async fn settle_by_look_up(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        why: Doubted,
    ) -> Decision {
        if self.look_up == LookUp::Off {
            return self.desk.hold(work, lease, why.reason()).await;
        }
        let Some(within) = self.desk.budget(work) else {
            return self.out_of_time(work, lease, true).await;
        };
        let found = self.desk.asked(work, self.gateway.find(work.order, within)).await;
        match (found, why) {
            (Ok(LookedUp::Charge(Answer::Succeeded(receipt))), _) => self.paid(work, lease, receipt).await,
            (Ok(LookedUp::Charge(answer)), Doubted::Expired { .. }) => self.settle(work, lease, answer).await,
            (Ok(LookedUp::Nothing), Doubted::Expired { may_charge: true }) => {
                self.charge_again(work, lease).await
            }
            (Ok(LookedUp::Charge(_) | LookedUp::Nothing | LookedUp::Unclear), _) => {
                self.desk.hold(work, lease, why.reason()).await
            }
            (Err(error), _) => self.desk.give_back(work, lease, Left::Doubt, &error).await,
        }
    }

    async fn charge_again(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let now = self.desk.clock.now();
        match self.desk.timed(work, self.desk.ledger.resend(lease, now)).await {
            Ok(lease) => self.send(work, lease).await,
            Err(error) => self.desk.lease_failed(work, &error),
        }
    }
}
