//! The chaos soak: round after round of orders while everything fails, each round audited.
//!
//! `make soak MINUTES=30` goes on for so long, `make soak ORDERS=100000` until there were so many orders. Two functions,
//! one five seconds ahead and one five behind, and a worker share a queue and a ledger; the provider has every
//! fault, DynamoDB throttles and loses answers, and one of the processes is killed every few seconds. Most of a
//! round is waiting, so some go on side by side, each with a queue, a ledger and a provider of its own.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that reports its rounds"
)]

mod consumers;
mod round;
mod throttle;

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};

use self::round::{Round, round};

/// Orders of one round at most: enough that its end, when the last few wait for their leases, takes little of it.
const ORDERS: u64 = 5_000;
const SIDE_BY_SIDE: usize = 5;

#[expect(clippy::disallowed_methods, reason = "the Makefile hands MINUTES and ORDERS over")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    messages: usize,
    orders: usize,
    charged: usize,
    declined: usize,
    held: usize,
    poison: usize,
    unsettled_before: usize,
    unsettled: usize,
    deliveries: u64,
    kills: u64,
    throttled: usize,
    redriven: usize,
    took: Duration,
}

impl Totals {
    fn add(&mut self, round: &Round) {
        self.rounds += 1;
        self.messages += round.messages;
        self.orders += round.after.orders;
        self.charged += round.after.charged;
        self.declined += round.after.declined;
        self.held += round.after.held;
        self.poison += round.after.poison;
        self.unsettled_before += round.before.unsettled;
        self.unsettled += round.after.unsettled;
        self.deliveries += round.deliveries;
        self.kills += round.kills;
        self.throttled += round.throttled;
        self.redriven += round.redriven;
        self.took += round.took;
    }

    /// Where every order ended, and what it took; lost, double and out of order would have failed the round.
    fn table(&self) -> String {
        let rows = [
            ("orders", self.orders),
            ("charged once, and PAID", self.charged),
            ("declined", self.declined),
            ("held for a person", self.held),
            ("messages without an order", self.poison),
            ("lost", 0),
            ("charged twice", 0),
            ("out of order in their group", 0),
            ("unsettled before the sweep", self.unsettled_before),
            ("sent again after it", self.redriven),
            ("unsettled", self.unsettled),
            ("messages", self.messages),
            ("requests throttled", self.throttled),
        ];
        let counted = rows.map(|(what, count)| format!("{what:28}{count:>10}\n")).concat();
        let Self { rounds, deliveries, kills, took, .. } = self;
        format!(
            "{counted}{rounds} rounds, {deliveries} deliveries to functions, {kills} kills, {took:.0?} of work"
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for MINUTES; make soak"]
async fn soak_loses_nothing_and_charges_nothing_twice() {
    let begun = Instant::now();
    let wanted = number("ORDERS");
    let minutes = Duration::from_secs(number("MINUTES").unwrap_or(30) * 60);
    // At least one round with each kind of queue. Duplicates and poison are among the messages, so a few more
    // make as many orders.
    let orders = wanted.map_or(ORDERS, |wanted| ORDERS.min(wanted.div_ceil(2)));
    let messages = u32::try_from(orders + orders / 10 + 20).unwrap();
    let seeds = (1..).take_while(|seed| match wanted {
        Some(wanted) => (seed - 1) * orders < wanted,
        None => begun.elapsed() < minutes,
    });
    let mut rounds = stream::iter(seeds)
        .map(|seed| Box::pin(async move { (seed, round(seed, messages).await) }))
        .buffer_unordered(SIDE_BY_SIDE);
    let mut totals = Totals::default();
    while let Some((seed, round)) = rounds.next().await {
        totals.add(&round);
        println!("round {seed}: {:?}, {:?}", round.took, round.after);
        assert!(round.before.is_sound(), "round {seed}: {:?}", round.before);
        assert!(round.after.is_sound() && round.after.unsettled == 0, "round {seed}: {:?}", round.after);
    }
    println!("{}\n{:.0?} in all", totals.table(), begun.elapsed());
}
