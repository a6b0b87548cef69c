//! The fault matrix: the charge step is stopped, fails or is delayed at every await point, with every fault of the
//! ledger and the provider, and with two owners in every order; then it is redelivered until quiet.
//!
//! Nothing here is random or waits: a run is a list of choices, and a search goes through all of them. A run that
//! breaks a rule is told by its choices and by what happened step by step. The step, the gateways with their
//! parsing, the transitions and the simulated provider are those of the product; only sockets and the store behind
//! the ledger are not.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod choices;
mod owner;
mod run;
mod world;

use std::time::Instant;

use self::{
    choices::Choices,
    run::{Limits, run},
    world::{Card, Scenario},
};

/// Every kind of provider and card.
fn scenarios() -> impl Iterator<Item = Scenario> {
    let kinds = [true, false];
    let cards = [Card::Good, Card::Declining, Card::DecliningOnce];
    kinds.into_iter().flat_map(move |one_shot| cards.into_iter().map(move |card| Scenario { one_shot, card }))
}

/// Goes through every run within the limits, and stops at the first that breaks a rule.
async fn search(limits: Limits) {
    let began = Instant::now();
    let mut total = 0;
    for scenario in scenarios() {
        let mut choices = Choices::first();
        let mut runs = 0;
        loop {
            run(scenario, limits, &mut choices).await;
            runs += 1;
            if !choices.advance() {
                break;
            }
        }
        println!("{scenario:?} {limits:?}: {runs} runs, 0 violations");
        total += runs;
    }
    println!("{limits:?}: {total} runs in {:.1?}, 0 violations", began.elapsed());
}

/// Makes runs whose choices are drawn from a seed, within limits too wide to go through.
async fn sample(limits: Limits, seeds: std::ops::Range<u64>) {
    let began = Instant::now();
    let mut runs = 0;
    for seed in seeds {
        for scenario in scenarios() {
            run(scenario, limits, &mut Choices::drawn(seed)).await;
            runs += 1;
        }
    }
    println!("{limits:?}: {runs} drawn runs in {:.1?}, 0 violations", began.elapsed());
}

const ONE_OWNER: Limits = Limits { faults: 1, switches: 0 };
const TWO_OWNERS: Limits = Limits { faults: 1, switches: 1 };

#[tokio::test(start_paused = true)]
async fn one_fault_anywhere() {
    tokio::task::unconstrained(search(ONE_OWNER)).await;
}

#[tokio::test(start_paused = true)]
async fn two_owners_in_every_order_without_faults() {
    tokio::task::unconstrained(search(Limits { faults: 0, switches: 3 })).await;
}

#[tokio::test(start_paused = true)]
async fn two_owners_and_one_fault() {
    tokio::task::unconstrained(search(TWO_OWNERS)).await;
}

#[tokio::test(start_paused = true)]
async fn drawn_runs_with_many_faults() {
    tokio::task::unconstrained(sample(Limits { faults: 4, switches: 6 }, 0..200)).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "long: make prove"]
async fn prove_the_fault_matrix() {
    tokio::task::unconstrained(async {
        search(Limits { faults: 2, switches: 0 }).await;
        search(Limits { faults: 1, switches: 2 }).await;
        search(Limits { faults: 0, switches: 5 }).await;
        sample(Limits { faults: 5, switches: 8 }, 1000..2000).await;
    })
    .await;
}
