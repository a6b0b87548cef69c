//! Two-phase providers: prepare a handle, store it, charge that one handle.
//!
//! A handle makes at most one successful charge, for ever. So a later delivery asks the handle and never relies on
//! keys, leases or clocks; they only save work. The step walks through [`Phase`]s until one ends it; a crash
//! between any two leaves a record from which the next delivery goes on.

use super::{
    Delivery, Desk, Outcome, Step,
    desk::{Resends, Work},
    phase::{Armed, Commit, Phase, SETTLING_PAUSE},
    tenure::Tenure,
};
use crate::{
    decision::{Code, Decision, RetryAfter, RetryReason},
    gateway::{
        GatewayError, GatewayErrorKind, HandleStatus, IdempotencyKey, Operation, Receipt, Sighting,
        TwoPhaseGateway,
    },
    ledger::{Evidence, Lease, Ledger, Left, Refused},
    order::Order,
};

/// The step for two-phase providers.
#[derive(Debug)]
pub struct TwoPhaseCharge<L, G> {
    /// What all charging shares.
    pub desk: Desk<L>,
    /// The provider.
    pub gateway: G,
}

impl<L: Ledger, G: TwoPhaseGateway> Step for TwoPhaseCharge<L, G> {
    async fn run(&self, order: &Order, delivery: &Delivery) -> Outcome {
        if let Err(reason) = self.gateway.accept(order) {
            return Outcome::of(Decision::Poison(reason));
        }
        let tenure = Tenure::default();
        let mut work = Work::new(order, delivery, &tenure);
        let decision = self.desk.keeping(&tenure, Box::pin(self.decide(&mut work))).await;
        Outcome { decision, facts: work.facts }
    }
}

impl<L: Ledger, G: TwoPhaseGateway> TwoPhaseCharge<L, G> {
    async fn decide(&self, work: &mut Work<'_>) -> Decision {
        let lease = match self.desk.claim(work, self.gateway.provider(), false).await {
            Ok(lease) => lease,
            Err(decision) => return decision,
        };
        let mut phase = match lease.entry().handle.clone() {
            Some(handle) => Phase::Inspect(Armed { lease, handle }, Commit::None),
            None if self.desk.is_restored(&lease) => return self.desk.hold(work, lease, "RESTORED").await,
            None => Phase::Prepare { lease, expired: None },
        };
        loop {
            phase = match phase {
                Phase::Prepare { lease, expired } => self.prepare(work, lease, expired).await,
                Phase::Commit(armed, before) => self.commit(work, armed, before).await,
                Phase::Inspect(armed, commit) => self.inspect(work, armed, commit).await,
                Phase::Settle(armed, seen, commit) => self.settle(work, armed, seen, commit).await,
                Phase::Seal(armed, code) => self.seal(work, armed, code).await,
                Phase::End(decision) => return decision,
            };
        }
    }

    /// No money can move here, so whatever goes wrong is simply tried again.
    async fn prepare(&self, work: &mut Work<'_>, lease: Lease, expired: Option<String>) -> Phase {
        let generation = lease.entry().handle_generation.saturating_add(u32::from(expired.is_some()));
        let mut operation = Operation::Create { generation };
        let mut resends = Resends::default();
        let handle = loop {
            let Some(within) = self.desk.budget(work) else {
                return Phase::End(self.out_of_time(work, lease).await);
            };
            let key = self.key(work.order, operation);
            let error = match self.desk.asked(work, self.gateway.prepare(work.order, &key, within)).await {
                Ok(handle) => break handle,
                Err(error) => error,
            };
            let server_error = error.kind == GatewayErrorKind::Unknown { server_error: true };
            if server_error && operation == (Operation::Create { generation }) {
                // The provider may replay this 500 for a day; another key gets another handle, and only the one
                // that is stored is ever charged.
                operation = Operation::CreateAnew { generation, fence: lease.entry().fence };
                resends.count();
            } else if !resends.again(&self.desk, work, &error).await {
                return Phase::End(self.not_prepared(work, lease, error).await);
            }
        };
        self.store(work, lease, expired, handle).await
    }

    async fn store(
        &self,
        work: &mut Work<'_>,
        lease: Lease,
        expired: Option<String>,
        handle: String,
    ) -> Phase {
        let now = self.desk.clock.now();
        let stored = match expired {
            None => self.desk.timed(work, self.desk.ledger.store_handle(lease, handle.clone(), now)).await,
            Some(old) => {
                let replaced = self.desk.ledger.replace_handle(lease, old, handle.clone(), now);
                self.desk.timed(work, replaced).await
            }
        };
        match stored {
            Ok(lease) => {
                work.facts.handle = Some(handle.clone());
                Phase::Commit(Armed { lease, handle }, Commit::None)
            }
            // Never commit this handle, and never seal it: a new owner gets the same one from the same key.
            Err(error) => Phase::End(self.desk.lease_failed(work, &error)),
        }
    }

    async fn not_prepared(&self, work: &mut Work<'_>, lease: Lease, error: GatewayError) -> Decision {
        match &error.kind {
            GatewayErrorKind::Declined(code) | GatewayErrorKind::Rejected(code)
                if lease.entry().handle.is_none() =>
            {
                let refused = Refused::BeforeHandle(lease.owner());
                self.desk.decline(work, lease, refused, code.clone()).await
            }
            GatewayErrorKind::KeyMismatch => self.desk.hold(work, lease, "KEY_MISMATCH").await,
            GatewayErrorKind::NotSent
            | GatewayErrorKind::Unknown { .. }
            | GatewayErrorKind::Declined(_)
            | GatewayErrorKind::Rejected(_)
            | GatewayErrorKind::Conflict
            | GatewayErrorKind::Lock
            | GatewayErrorKind::RateLimited
            | GatewayErrorKind::AuthConfig { .. }
            | GatewayErrorKind::NotFound => self.give_back(work, lease, &error).await,
        }
    }

    async fn commit(&self, work: &mut Work<'_>, armed: Armed, before: Commit) -> Phase {
        let key = self.key(work.order, Operation::Commit { fence: armed.lease.entry().fence });
        let commit = if before == Commit::None { Commit::Once } else { Commit::Twice };
        let mut resends = Resends::default();
        loop {
            let Some(within) = self.desk.budget(work) else {
                return Phase::End(self.out_of_time(work, armed.lease).await);
            };
            let call = self.gateway.commit(work.order, &armed.handle, &key, within);
            let error = match self.desk.asked(work, call).await {
                Ok(seen) => return Phase::Settle(armed, seen, commit),
                Err(error) => error,
            };
            if !resends.again(&self.desk, work, &error).await {
                return self.not_committed(work, armed, error, commit).await;
            }
        }
    }

    async fn not_committed(
        &self,
        work: &mut Work<'_>,
        armed: Armed,
        error: GatewayError,
        commit: Commit,
    ) -> Phase {
        match (&error.kind, error.sighting.as_deref().cloned()) {
            (
                GatewayErrorKind::AuthConfig { .. }
                | GatewayErrorKind::RateLimited
                | GatewayErrorKind::NotSent,
                _,
            ) => Phase::End(self.give_back(work, armed.lease, &error).await),
            (GatewayErrorKind::NotFound, _) => {
                Phase::End(self.desk.hold(work, armed.lease, "HANDLE_NOT_FOUND").await)
            }
            (GatewayErrorKind::Unknown { server_error: true }, Some(seen)) => {
                Phase::Settle(armed, seen, Commit::ServerError)
            }
            (GatewayErrorKind::Rejected(code) | GatewayErrorKind::Declined(code), Some(seen)) => {
                Phase::Settle(armed, seen, Commit::Rejected(code.clone()))
            }
            (GatewayErrorKind::Rejected(code), None) => Phase::Inspect(armed, Commit::Rejected(code.clone())),
            (_, Some(seen)) => Phase::Settle(armed, seen, commit),
            (GatewayErrorKind::Declined(code), None) => Phase::Seal(armed, code.clone()),
            (GatewayErrorKind::Unknown { server_error: true }, None) => {
                Phase::Inspect(armed, Commit::ServerError)
            }
            (
                GatewayErrorKind::Unknown { server_error: false }
                | GatewayErrorKind::KeyMismatch
                | GatewayErrorKind::Conflict
                | GatewayErrorKind::Lock,
                None,
            ) => Phase::Inspect(armed, commit),
        }
    }

    pub(super) async fn inspect(&self, work: &mut Work<'_>, armed: Armed, commit: Commit) -> Phase {
        let Some(within) = self.desk.budget(work) else {
            return Phase::End(commit.paused(self.out_of_time(work, armed.lease).await));
        };
        let seen = self.desk.asked(work, self.gateway.inspect(work.order, &armed.handle, within)).await;
        match seen {
            Ok(seen) => Phase::Settle(armed, seen, commit),
            Err(error) if error.kind == GatewayErrorKind::NotFound => {
                Phase::End(self.desk.hold(work, armed.lease, "HANDLE_NOT_FOUND").await)
            }
            Err(error) => Phase::End(commit.paused(self.give_back(work, armed.lease, &error).await)),
        }
    }

    pub(super) async fn settle(
        &self,
        work: &mut Work<'_>,
        armed: Armed,
        seen: Sighting,
        commit: Commit,
    ) -> Phase {
        if !seen.is_ours {
            return Phase::End(self.desk.hold(work, armed.lease, "HANDLE_MISMATCH").await);
        }
        let restored = self.desk.is_restored(&armed.lease);
        match seen.status {
            HandleStatus::Succeeded(receipt) => Phase::End(self.paid(work, armed, receipt).await),
            _ if restored => Phase::End(self.desk.hold(work, armed.lease, "RESTORED").await),
            HandleStatus::Ready { untouched: true } => self.ready(work, armed, commit).await,
            HandleStatus::Ready { untouched: false } => Phase::End(self.wait(work, armed.lease).await),
            HandleStatus::Processing => Phase::End(self.desk.still_processing(work, armed.lease).await),
            HandleStatus::Failed(code) => Phase::Seal(armed, code),
            HandleStatus::Sealed(code) => Phase::End(self.declined(work, armed, code).await),
            HandleStatus::Expired if commit == Commit::None => {
                Phase::Prepare { lease: armed.lease, expired: Some(armed.handle) }
            }
            // Once in a delivery: a provider whose handles never live long enough would be asked without end.
            HandleStatus::Expired => Phase::End(self.wait(work, armed.lease).await),
        }
    }

    /// The handle can be charged: the first time it is, and once more with the same key after silence.
    async fn ready(&self, work: &mut Work<'_>, armed: Armed, commit: Commit) -> Phase {
        match commit {
            Commit::None => Phase::Commit(armed, commit),
            Commit::Once if self.desk.pause_after_silence(work).await => Phase::Commit(armed, commit),
            Commit::Once | Commit::Twice => {
                let reason = RetryReason::Gateway(Code::new("UNKNOWN"));
                Phase::End(
                    self.desk.release(work, armed.lease, Left::Doubt, reason, RetryAfter::Backoff).await,
                )
            }
            Commit::Rejected(code) => Phase::Seal(armed, code),
            Commit::ServerError => Phase::End(self.wait(work, armed.lease).await),
        }
    }

    pub(super) async fn seal(&self, work: &mut Work<'_>, armed: Armed, code: Code) -> Phase {
        let entry = armed.lease.entry();
        let operation = Operation::Seal { generation: entry.handle_generation, fence: entry.fence };
        let Some(within) = self.desk.budget(work) else {
            return Phase::End(self.out_of_time(work, armed.lease).await);
        };
        let key = self.key(work.order, operation);
        let call = self.gateway.seal(work.order, &armed.handle, &key, within);
        let seen = match self.desk.asked(work, call).await {
            Ok(seen) => seen,
            Err(GatewayError { sighting: Some(seen), .. }) => *seen,
            Err(error) => return Phase::End(self.give_back(work, armed.lease, &error).await),
        };
        if !seen.is_ours {
            return Phase::End(self.desk.hold(work, armed.lease, "HANDLE_MISMATCH").await);
        }
        Phase::End(match seen.status {
            HandleStatus::Succeeded(receipt) => self.paid(work, armed, receipt).await,
            HandleStatus::Sealed(_) | HandleStatus::Expired => self.declined(work, armed, code).await,
            HandleStatus::Processing => self.desk.still_processing(work, armed.lease).await,
            HandleStatus::Ready { .. } | HandleStatus::Failed(_) => self.wait(work, armed.lease).await,
        })
    }

    async fn paid(&self, work: &mut Work<'_>, armed: Armed, receipt: Receipt) -> Decision {
        self.desk.complete(work, armed.lease, Evidence::Handle(armed.handle), receipt).await
    }

    async fn declined(&self, work: &mut Work<'_>, armed: Armed, code: Code) -> Decision {
        self.desk.decline(work, armed.lease, Refused::Sealed(armed.handle), code).await
    }

    async fn wait(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let after = RetryAfter::NotBefore(SETTLING_PAUSE);
        self.desk.release(work, lease, Left::Doubt, RetryReason::Gateway(Code::new("SETTLING")), after).await
    }

    async fn out_of_time(&self, work: &mut Work<'_>, lease: Lease) -> Decision {
        let left = left(&lease);
        self.desk.release(work, lease, left, RetryReason::Unfinished, RetryAfter::Backoff).await
    }

    async fn give_back(&self, work: &mut Work<'_>, lease: Lease, error: &GatewayError) -> Decision {
        let left = left(&lease);
        self.desk.give_back(work, lease, left, error).await
    }

    fn key(&self, order: &Order, operation: Operation) -> IdempotencyKey {
        IdempotencyKey::new(self.gateway.provider(), order.id(), order.attempt(), operation)
    }
}

/// Without a handle nothing can have been charged; with one the sweeper should look.
fn left(lease: &Lease) -> Left {
    if lease.entry().handle.is_some() { Left::Doubt } else { Left::Untouched }
}
