//! The chaos soak: round after round of orders while everything fails, each round audited. `make soak MINUTES=30`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports its rounds")]

mod throttle;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    generate::Recipe,
    local::{
        environment::Provider,
        mapping::Counts,
        rehearsal::{Consumer, FUNCTION_TIMEOUT, Rehearsal, Rehearsed},
        stack::{Stack, StackConfig},
    },
};

use self::throttle::Throttle;

/// Orders of one round: enough that kills and faults meet, few enough that a round takes a minute or two.
const ORDERS: u32 = 500;

#[expect(clippy::disallowed_methods, reason = "the Makefile hands MINUTES over")]
fn minutes() -> u64 {
    std::env::var("MINUTES").map_or(30, |minutes| minutes.parse().unwrap())
}

#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    orders: usize,
    charged: usize,
    unsettled: usize,
    deliveries: u64,
    kills: u64,
    throttled: usize,
    peak_memory: u64,
}

impl Totals {
    fn add(&mut self, round: &Rehearsed, throttled: usize) {
        self.rounds += 1;
        self.orders += round.audit.orders;
        self.charged += round.audit.charged;
        self.unsettled += round.audit.unsettled;
        self.deliveries += round.deliveries;
        self.kills += round.kills;
        self.throttled += throttled;
        self.peak_memory = self.peak_memory.max(round.peak_memory.unwrap_or_default());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for MINUTES; make soak"]
async fn soak_loses_nothing_and_charges_nothing_twice() {
    let until = Instant::now() + Duration::from_secs(minutes() * 60);
    let mut totals = Totals::default();
    for seed in 1.. {
        let (round, throttled) = round(seed).await;
        totals.add(&round, throttled);
        println!("{totals:?}");
        assert!(round.audit.is_sound(), "round {seed}: {:?}", round.audit);
        if Instant::now() > until {
            return;
        }
    }
}

/// Function and worker, standard and FIFO queues take turns.
async fn round(seed: u64) -> (Rehearsed, usize) {
    let recipe = Recipe {
        count: ORDERS,
        fifo: seed.is_multiple_of(2),
        duplicates_percent: 5,
        poison_percent: 1,
        seed,
    };
    let rehearsal = Rehearsal { recipe, kill_every: Some(Duration::from_secs(5)), concurrency: 5 };
    let throttle = Throttle::start().await;
    let mut settings: BTreeMap<_, _> = rehearsal.settings();
    settings.insert("AWS_ENDPOINT_URL_DYNAMODB".into(), throttle.url());
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Stripe,
        script: Script::parse(&format!("mixed,seed={seed}")).unwrap(),
        data: None,
        settings,
        timeout: FUNCTION_TIMEOUT,
        clock: Clock::system(),
    };
    let stack = Stack::without_function(config).await.unwrap();
    throttle.connect_to(&stack.dynamodb_url());
    let consumer = match seed % 4 {
        1 | 2 => Consumer::Function,
        _ => Consumer::Worker(PathBuf::from(env!("CARGO_BIN_EXE_charge-once"))),
    };
    let round = rehearsal.run(&stack, &consumer, &Counts::default()).await.unwrap();
    (round, throttle.throttled())
}
