//! A store of your own: whatever can change one record atomically. It passes the suite that every ledger passes.
//!
//! `cargo run --all-features --example custom_ledger`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use charge_once::{
    ledger::{
        Applied, Entry, Found, Intent, Ledger, LedgerError,
        conformance::{self, Fixture},
    },
    order::OrderId,
};
use tokio::sync::Mutex;

/// In a database this would be a transaction: lock the row, ask the intent, write what it answers.
#[derive(Default)]
struct SortedLedger(Mutex<BTreeMap<OrderId, Entry>>);

fn found(entry: Option<&Entry>) -> Found {
    entry.map_or(Found::Nothing, |entry| Found::Entry(Box::new(entry.clone())))
}

impl Ledger for SortedLedger {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        let mut rows = self.0.lock().await;
        let old = rows.get(order_id).cloned();
        let Some(new) = intent.apply(old.as_ref()) else {
            return Ok(Applied::Refused(found(old.as_ref())));
        };
        rows.insert(order_id.clone(), new.clone());
        Ok(Applied::Written { old: old.map(Box::new), new: Box::new(new) })
    }

    async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
        Ok(found(self.0.lock().await.get(order_id)))
    }
}

impl Fixture for SortedLedger {
    type Ledger = Self;

    fn ledger(&self) -> &Self {
        self
    }

    async fn seed(&self, order_id: &OrderId, entry: &Entry) {
        self.0.lock().await.insert(order_id.clone(), entry.clone());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    conformance::run(&SortedLedger::default()).await;
    conformance::equivalence(&SortedLedger::default(), 1, 2000).await;
    println!("SortedLedger passes");
}
