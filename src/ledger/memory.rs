//! The ledger in memory: the transitions under a mutex. For tests, simulations and as a model for other stores.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Applied, Entry, Found, Intent, Ledger, LedgerError, Listed, Overview, Selection};
use crate::{clock::Timestamp, order::OrderId};

/// Records in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    entries: Mutex<HashMap<OrderId, Entry>>,
}

impl MemoryLedger {
    /// Puts a record as it is, to start a test from.
    pub fn insert(&self, order_id: OrderId, entry: Entry) {
        self.entries().insert(order_id, entry);
    }

    /// Forgets a record, as TTL or a restore would.
    pub fn remove(&self, order_id: &OrderId) {
        self.entries().remove(order_id);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<OrderId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for MemoryLedger {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        let mut entries = self.entries();
        let old = entries.get(order_id);
        Ok(match intent.apply(old) {
            Some(new) => {
                let old = entries.insert(order_id.clone(), new.clone()).map(Box::new);
                Applied::Written { old, new: Box::new(new) }
            }
            None => Applied::Refused(found(old)),
        })
    }

    async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
        Ok(found(self.entries().get(order_id)))
    }
}

impl Overview for MemoryLedger {
    async fn list(
        &self,
        selection: Selection,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Listed>, LedgerError> {
        let entries = self.entries();
        let mut chosen: Vec<_> = entries.iter().filter(|(_, entry)| selection.takes(entry, before)).collect();
        chosen.sort_by_key(|(order_id, entry)| (entry.state_changed_at, order_id.as_str()));
        let listed = chosen.into_iter().take(limit);
        Ok(listed.map(|(id, entry)| Listed { order_id: id.clone(), entry: found(Some(entry)) }).collect())
    }
}

fn found(entry: Option<&Entry>) -> Found {
    entry.map_or(Found::Nothing, |entry| Found::Entry(Box::new(entry.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::conformance::{self, Fixture};

    impl Fixture for MemoryLedger {
        type Ledger = Self;

        fn ledger(&self) -> &Self {
            self
        }

        async fn seed(&self, order_id: &OrderId, entry: &Entry) {
            self.insert(order_id.clone(), entry.clone());
        }
    }

    #[tokio::test]
    async fn conformance() {
        conformance::run(&MemoryLedger::default()).await;
        conformance::equivalence(&MemoryLedger::default(), 1, 5000).await;
    }
}
