//! Every ledger passes these: the suite that holds a store to what [`Intent::apply`] says.
//!
//! A store gives a [`Fixture`] without records and calls [`run`], for the situations that a charge meets, and
//! [`equivalence`], for random records and writes.

#![expect(clippy::expect_used, clippy::panic, reason = "a test suite: a failed expectation ends the test")]

mod begin;
mod handle;
mod random;
mod settle;

use std::{future::Future, time::Duration};

pub use self::random::equivalence;
use super::{Applied, Begin, Claim, Entry, Found, Intent, Lease, Ledger, LedgerError, Owner, State};
use crate::{clock::Timestamp, order::OrderId};

/// A store under test.
pub trait Fixture: Sync {
    /// The ledger it tests.
    type Ledger: Ledger;

    /// The ledger.
    fn ledger(&self) -> &Self::Ledger;

    /// Puts a record as it is.
    fn seed(&self, order_id: &OrderId, entry: &Entry) -> impl Future<Output = ()> + Send;
}

/// Runs every check. Each works on orders of its own.
///
/// # Panics
/// The ledger does not do what it should.
pub async fn run<F: Fixture>(fixture: &F) {
    begin::checks(fixture).await;
    handle::checks(fixture).await;
    settle::checks(fixture).await;
    random::own_writes_are_recognised(fixture).await;
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LEASE: Duration = Duration::from_secs(60);
const EXPIRES_AT: i64 = 1_900_000_000;

/// One order in the ledger under test.
struct Bench<'a, F> {
    fixture: &'a F,
    order_id: OrderId,
}

impl<'a, F: Fixture> Bench<'a, F> {
    fn new(fixture: &'a F, name: &str) -> Self {
        Self { fixture, order_id: OrderId::parse(name).expect("a valid order id") }
    }

    fn ledger(&self) -> &'a F::Ledger {
        self.fixture.ledger()
    }

    async fn seed(&self, entry: &Entry) {
        self.fixture.seed(&self.order_id, entry).await;
    }

    async fn begin(&self, begin: Begin) -> Claim {
        self.ledger().begin(&self.order_id, begin).await.expect("the ledger answers")
    }

    async fn started(&self, begin: Begin) -> Lease {
        let claim = self.begin(begin).await;
        let Claim::Started(lease) = claim else { panic!("{}: {claim:?}", self.order_id) };
        *lease
    }

    /// A lease on a record that stores `handle`.
    async fn armed(&self, token: &str, handle: &str) -> Lease {
        let lease = self.started(two_phase(token)).await;
        self.ledger().store_handle(lease, handle.to_owned(), NOW).await.expect("the handle is stored")
    }

    async fn entry(&self) -> Entry {
        let found = self.ledger().get(&self.order_id).await.expect("the ledger answers");
        let Found::Entry(entry) = found else { panic!("{}: {found:?}", self.order_id) };
        *entry
    }
}

/// The first delivery of an order to a two-phase provider.
fn two_phase(token: &str) -> Begin {
    Begin {
        token: token.to_owned(),
        now: NOW,
        lease_until: NOW.plus(LEASE),
        one_shot: false,
        may_create: true,
        epoch: None,
        attempt: 1,
        fingerprint: "print-1".to_owned(),
        amount_minor: 4990,
        currency: "EUR".to_owned(),
        provider: "stripe:default:test".to_owned(),
        message_id: Some(format!("message-{token}")),
        receive_count: 1,
    }
}

fn one_shot(token: &str) -> Begin {
    Begin { one_shot: true, provider: "http:default".to_owned(), ..two_phase(token) }
}

/// The same delivery, so much later.
fn later(begin: Begin, by: Duration) -> Begin {
    Begin { now: begin.now.plus(by), lease_until: begin.lease_until.plus(by), ..begin }
}

/// The record that the first [`two_phase`] begin of `token` writes.
fn claimed(token: &str) -> Entry {
    let entry = Intent::Begin(two_phase(token)).apply(None);
    entry.expect("the first begin writes a record")
}

fn in_state(state: State) -> Entry {
    Entry { state, ..claimed("somebody") }
}

/// A ledger whose every write is made twice, the first answer being lost, as an SDK that retries may do.
struct Repeating<'a, L>(&'a L);

impl<L: Ledger> Ledger for Repeating<'_, L> {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        self.0.apply(order_id, intent).await?;
        self.0.apply(order_id, intent).await
    }

    async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
        self.0.get(order_id).await
    }
}

fn owner(entry: &Entry) -> Owner {
    Owner { token: entry.owner.clone(), fence: entry.fence }
}
