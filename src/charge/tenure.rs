//! How long the lease lasts, while the work under it goes on, and the beat that renews it.
//!
//! The beat knows the owner and the term, never the [`Lease`] itself: only the work can spend that.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{Desk, desk::LEASE_MARGIN};
use crate::{
    clock::Timestamp,
    ledger::{Lease, LeaseError, Ledger, Owner},
    order::OrderId,
    telemetry::ErrorChain,
};

/// A lease is renewed three times in its term, so that two renewals in a row may fail.
const BEATS: u32 = 3;

/// The term of one lease, shared by the work and the beat.
#[derive(Debug, Default)]
pub(super) struct Tenure {
    term: Mutex<Term>,
    /// Held while a renewal is under way.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Term {
    /// Whose lease to renew; `None` before it began and once it is given back or lost.
    holder: Option<(OrderId, Owner)>,
    /// The last end that the ledger confirmed.
    until: Option<Timestamp>,
    lost: bool,
}

impl Tenure {
    pub(super) fn begin(&self, lease: &Lease) {
        let holder = Some((lease.order_id().clone(), lease.owner()));
        *self.term() = Term { holder, until: lease.entry().lease_until, lost: false };
    }

    /// Until when the owner may send; `None` if the ledger said that somebody else owns the record.
    pub(super) fn sends_until(&self, never: Timestamp) -> Option<Timestamp> {
        let term = self.term();
        (!term.lost).then(|| term.until.map_or(never, |until| until.minus(LEASE_MARGIN)))
    }

    /// No renewal starts after this, and none is under way: one that overtook the release would block the order.
    pub(super) async fn end(&self) {
        let _none_under_way = self.renewing.lock().await;
        self.term().holder = None;
    }

    fn term(&self) -> MutexGuard<'_, Term> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Ledger> Desk<L> {
    /// Does the work and renews its lease meanwhile, if the rules say so.
    pub(super) async fn keeping<T>(&self, tenure: &Tenure, work: impl Future<Output = T>) -> T {
        if !self.rules.renews_lease {
            return work.await;
        }
        tokio::select! {
            biased;
            done = work => done,
            never = self.beat(tenure) => match never {},
        }
    }

    async fn beat(&self, tenure: &Tenure) -> std::convert::Infallible {
        let every = self.rules.lease.checked_div(BEATS).unwrap_or(Duration::ZERO);
        loop {
            tokio::time::sleep(every).await;
            self.renew(tenure).await;
        }
    }

    async fn renew(&self, tenure: &Tenure) {
        let _under_way = tenure.renewing.lock().await;
        let holder = tenure.term().holder.clone();
        let Some((order_id, owner)) = holder else { return };
        let until = self.clock.now().plus(self.rules.lease).plus(LEASE_MARGIN);
        match self.ledger.renew(&order_id, owner, until).await {
            Ok(()) => tenure.term().until = Some(until),
            Err(LeaseError::Lost(_)) => {
                let mut term = tenure.term();
                term.holder = None;
                term.lost = true;
            }
            Err(LeaseError::Store(error)) => {
                tracing::warn!(order_id = order_id.as_str(), error = %ErrorChain(&error), "the lease was not renewed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicU32, Ordering},
    };

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::{
        backoff::Random,
        charge::{Delivery, LookUp, OneShotCharge, Outcome, Rules, Step},
        clock::Clock,
        decision::{AckReason, Decision, RetryReason},
        gateway::{
            Answer, GatewayError, GatewayErrorKind, IdempotencyKey, LookedUp, OneShotGateway, Receipt,
        },
        ledger::{Applied, Entry, Found, Intent, LedgerError, memory::MemoryLedger},
        order::{Order, OrderRules},
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// Answers after a while that the charge is in progress elsewhere, and then that it succeeded.
    struct SlowGateway {
        conflicts: u32,
        asked: AtomicU32,
        within: StdMutex<Vec<Duration>>,
    }

    impl OneShotGateway for SlowGateway {
        fn provider(&self) -> &'static str {
            "http:test"
        }

        async fn charge(
            &self,
            _order: &Order,
            _key: &IdempotencyKey,
            within: Duration,
        ) -> Result<Answer, GatewayError> {
            self.within.lock().unwrap().push(within);
            sleep(Duration::from_secs(50)).await;
            if self.asked.fetch_add(1, Ordering::Relaxed) < self.conflicts {
                return Err(GatewayError::new(GatewayErrorKind::Conflict, "HTTP 409"));
            }
            Ok(Answer::Succeeded(Receipt { charge_id: "ch_1".to_owned(), request_id: None }))
        }

        async fn find(&self, _order: &Order, _within: Duration) -> Result<LookedUp, GatewayError> {
            Ok(LookedUp::Nothing)
        }
    }

    /// A ledger that remembers until when the lease was renewed, and may hand the record to somebody else.
    #[derive(Default)]
    struct WatchedLedger {
        memory: MemoryLedger,
        renewed: StdMutex<Vec<Timestamp>>,
        steal: bool,
    }

    impl Ledger for Arc<WatchedLedger> {
        async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
            if let Intent::Renew { until, .. } = intent {
                self.renewed.lock().unwrap().push(*until);
                if self.steal {
                    let Found::Entry(entry) = self.memory.get(order_id).await? else { panic!("no record") };
                    let entry = Entry { owner: "somebody else".to_owned(), ..*entry };
                    self.memory.insert(order_id.clone(), entry);
                }
            }
            self.memory.apply(order_id, intent).await
        }

        async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
            self.memory.get(order_id).await
        }
    }

    async fn charge(renews_lease: bool, steal: bool) -> (Outcome, Vec<Duration>, Vec<u64>) {
        let start = Instant::now();
        let epoch = Timestamp::from_millis(1_700_000_000_000);
        let ledger = Arc::new(WatchedLedger { steal, ..WatchedLedger::default() });
        let rules = Rules {
            lease: Duration::from_secs(60),
            renews_lease,
            call_timeout: Duration::from_secs(60),
            retention: Duration::from_secs(86_400 * 180),
            epoch: None,
            ack_declined: false,
        };
        let clock = Clock::from_fn(move || epoch.plus(start.elapsed()));
        let desk = Desk { ledger: Arc::clone(&ledger), rules, clock, random: Random::seeded(1) };
        let gateway = SlowGateway { conflicts: 2, asked: AtomicU32::new(0), within: StdMutex::default() };
        let step =
            OneShotCharge { desk, gateway, key_window: Duration::from_secs(3600), look_up: LookUp::Off };
        let body = r#"{"order_id":"o-1","amount":1,"currency":"EUR"}"#;
        let order =
            Order::parse(body, &OrderRules { default_currency: None, max_amount_minor: 1000 }).unwrap();
        let deadline = epoch.plus(Duration::from_secs(12 * 3600));
        let delivery = Delivery { message_id: None, receive_count: 1, sent_at: None, deadline };
        let outcome = step.run(&order, &delivery).await;
        let renewed =
            ledger.renewed.lock().unwrap().iter().map(|until| until.since(epoch).as_secs()).collect();
        let within = step.gateway.within.lock().unwrap().clone();
        (outcome, within, renewed)
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_follows_work_that_is_longer_than_its_term() {
        let (outcome, within, renewed) = charge(true, false).await;
        assert_eq!(outcome.decision, Decision::Ack(AckReason::Charged));
        // 65 s from each third of the term on, while three calls of 50 s ran.
        assert_eq!(renewed, [85, 105, 125, 145, 165, 185, 205]);
        assert_eq!(within.len(), 3);
        assert!(within.iter().all(|within| *within > 40 * SECOND), "{within:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_renewal_nothing_is_sent_beyond_the_term() {
        let (outcome, within, renewed) = charge(false, false).await;
        assert_eq!(outcome.decision.name(), "retry");
        assert!(renewed.is_empty());
        assert_eq!(within.len(), 2);
        assert!(within.last().unwrap() < &(10 * SECOND), "the second call had what was left of 60 s");
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_lost_the_record_sends_nothing_more() {
        let (outcome, within, renewed) = charge(true, true).await;
        assert!(!matches!(outcome.decision, Decision::Ack(_)));
        assert_ne!(outcome.decision, Decision::retry(RetryReason::Busy));
        assert_eq!((within.len(), renewed.len()), (1, 1), "one call, and no renewal after the refusal");
    }
}
