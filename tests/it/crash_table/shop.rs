//! A ledger, a provider, a clock, and deliveries of one order.

use std::{sync::Arc, time::Duration};

use charge_once::{
    backoff::Random,
    charge::{Delivery, Desk, LookUp, OneShotCharge, Outcome, Step, TwoPhaseCharge},
    clock::Timestamp,
    decision::{AckReason, Decision},
    gateway::{
        Transport,
        http::HttpGateway,
        secret::{Credential, Secret},
        simulated::{Provider, Script, Simulated},
        stripe::StripeGateway,
    },
    ledger::{Applied, Entry, Intent, Ledger, LedgerError, dynamodb::DynamoDbLedger},
    order::{Order, OrderId},
};

use crate::support::{
    dynamodb::Table,
    faulty::{Fault, Faulty},
    order::{HOUR, Hands, delivery, order, rules},
};

pub(super) const CHARGED: Decision = Decision::Ack(AckReason::Charged);
pub(super) const DUPLICATE: Decision = Decision::Ack(AckReason::Duplicate);
const SECRET: &str = "sk_test_1";

pub(super) struct Shop {
    pub(super) table: Table,
    pub(super) provider: Simulated,
    pub(super) hands: Hands,
    pub(super) order: Order,
    pub(super) look_up: LookUp,
    one_shot: bool,
    transport: Transport,
    ordered_at: Timestamp,
}

impl Shop {
    /// An order for a two-phase provider.
    pub(super) async fn two_phase(payment_method: &str, script: Script) -> Self {
        Self::open(payment_method, script, false).await
    }

    /// An order for a one-shot provider.
    pub(super) async fn one_shot(payment_method: &str, script: Script) -> Self {
        Self::open(payment_method, script, true).await
    }

    async fn open(payment_method: &str, script: Script, one_shot: bool) -> Self {
        let hands = Hands::default();
        Self {
            table: Table::create().await,
            provider: Simulated::start(hands.clock(), script).await.unwrap(),
            order: order("o-1", payment_method),
            look_up: LookUp::Off,
            one_shot,
            transport: Transport::new().unwrap(),
            ordered_at: hands.now(),
            hands,
        }
    }

    pub(super) fn ledger(&self) -> DynamoDbLedger {
        self.table.ledger.clone()
    }

    pub(super) fn faulty(&self, fault: Fault) -> Arc<Faulty<DynamoDbLedger>> {
        Arc::new(Faulty::always(self.ledger(), fault))
    }

    fn credential(&self) -> Credential {
        Credential::fixed(Some(Secret::new(SECRET).unwrap()), self.hands.clock())
    }

    /// One delivery, with this ledger.
    pub(super) async fn work<L: Ledger>(&self, ledger: L) -> Outcome {
        self.work_until(ledger, self.credential(), self.delivery()).await
    }

    async fn work_until<L: Ledger>(&self, ledger: L, credential: Credential, delivery: Delivery) -> Outcome {
        match self.one_shot {
            true => Box::pin(self.http(ledger, credential).run(&self.order, &delivery)).await,
            false => Box::pin(self.stripe(ledger, credential).run(&self.order, &delivery)).await,
        }
    }

    /// The step that a process keeps from delivery to delivery.
    pub(super) fn stripe<L: Ledger>(
        &self,
        ledger: L,
        credential: Credential,
    ) -> TwoPhaseCharge<L, StripeGateway> {
        let (transport, url) = (self.transport.clone(), self.provider.base_url().parse().unwrap());
        let gateway = StripeGateway::new(transport, url, credential, "default", self.hands.clock()).unwrap();
        TwoPhaseCharge { desk: self.desk(ledger), gateway }
    }

    fn http<L: Ledger>(&self, ledger: L, credential: Credential) -> OneShotCharge<L, HttpGateway> {
        let (transport, url) = (self.transport.clone(), self.provider.base_url().parse().unwrap());
        let gateway = HttpGateway::new(transport, url, credential, "default", self.hands.clock());
        OneShotCharge { desk: self.desk(ledger), gateway, key_window: 20 * HOUR, look_up: self.look_up }
    }

    fn desk<L: Ledger>(&self, ledger: L) -> Desk<L> {
        Desk { ledger, rules: rules(), clock: self.hands.clock(), random: Random::System }
    }

    pub(super) fn delivery(&self) -> Delivery {
        delivery(&self.hands, self.ordered_at, 1)
    }

    /// One delivery to an invocation that has no time to wait before it repeats a call.
    pub(super) async fn hurry(&self) -> Outcome {
        let short =
            Delivery { deadline: self.hands.now().plus(Duration::from_millis(1600)), ..self.delivery() };
        self.work_until(self.ledger(), self.credential(), short).await
    }

    /// A delivery after every lease has ended.
    pub(super) async fn redeliver(&self) -> Decision {
        self.hands.advance(Duration::from_secs(600));
        self.work(self.ledger()).await.decision
    }

    /// A delivery whose process dies at a write.
    pub(super) async fn crash(&self, fault: Fault) {
        let ledger = self.faulty(fault);
        tokio::select! {
            biased;
            () = ledger.stopped() => {}
            outcome = self.work(Shared(Arc::clone(&ledger))) => panic!("it ended with {outcome:?}"),
        }
    }

    /// A delivery whose process dies when this holds at the provider.
    pub(super) async fn crash_when(&self, holds: impl FnMut(&mut Provider) -> bool) {
        tokio::select! {
            biased;
            () = self.provider.until(holds) => {}
            outcome = self.work(self.ledger()) => panic!("it ended with {outcome:?}"),
        }
    }

    /// The record; there must be one.
    pub(super) async fn entry(&self) -> Entry {
        self.table.entry("o-1").await.unwrap()
    }

    pub(super) fn charges(&self) -> usize {
        self.provider.charges().len()
    }

    /// So many writes went over the wire, and none of them set what puts a record on the sparse index.
    pub(super) fn assert_writes_off_the_index(&self, count: usize) {
        let writes = self.table.writes();
        assert_eq!(writes.len(), count, "{writes:#?}");
        let touching: Vec<_> = writes.iter().filter(|write| write.contains("#attention =")).collect();
        assert!(touching.is_empty(), "{touching:#?}");
    }

    /// A number of the item as it lies in the table.
    pub(super) async fn number(&self, attribute: &str) -> Option<i64> {
        let item = self.table.item("o-1").await;
        item.iter()
            .find(|(name, _)| name == attribute)
            .map(|(_, value)| value.as_n().unwrap().parse().unwrap())
    }

    /// The item as it lies in the table is not on the index.
    pub(super) async fn assert_item_is_off_the_index(&self) {
        let item = self.table.item("o-1").await;
        assert!(!item.is_empty() && item.iter().all(|(name, _)| name != "attention"), "{item:?}");
    }
}

/// A ledger that a test watches while the step owns it.
pub(super) struct Shared<L>(pub(super) Arc<Faulty<L>>);

impl<L: Ledger> Ledger for Shared<L> {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        self.0.apply(order_id, intent).await
    }

    async fn get(&self, order_id: &OrderId) -> Result<charge_once::ledger::Found, LedgerError> {
        self.0.get(order_id).await
    }
}
