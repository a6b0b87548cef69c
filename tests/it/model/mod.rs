//! A model check of the two-phase protocol: breadth first through every interleaving, on the transitions that
//! production uses ([`charge_once::ledger::Intent::apply`]).
//!
//! The adversary: two workers; a crash anywhere; a lease that may lapse at any moment; requests that are lost, that
//! arrive after their sender gave up, or whose answers are lost; a provider that declines, forgets its keys and
//! cancels old handles by itself; a record that disappears once the order is old; a producer that asks again after
//! a decline. With the rules no order is charged twice, or charged and recorded as declined. With one rule taken
//! away at a time the search finds how, which shows that it can.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod ledger;
mod search;
mod state;
mod steps;

use self::{
    search::{Verdict, search},
    state::{Bounds, Rules},
};

/// What the adversary may do, in numbers that a search ends with.
const SMALL: Bounds = Bounds { deliveries: 2, key_losses: 1, expiries: 1, record_losses: 1, new_attempts: 1 };
const LARGE: Bounds = Bounds { deliveries: 3, key_losses: 1, expiries: 1, record_losses: 1, new_attempts: 1 };

fn holds(bounds: Bounds) {
    let found = search(bounds, Rules::ALL);
    println!("all rules, {bounds:?}: {} states in {:.1?}, {:?}", found.states, found.time, found.verdict);
    assert_eq!(found.verdict, Verdict::Holds, "{}", found.trace.join("\n  "));
}

/// Without a rule; the bad end is found and its shortest way told.
fn breaks(rule: &str, rules: Rules, bounds: Bounds) {
    let found = search(bounds, rules);
    println!("without {rule}: {} states in {:.1?}, {:?}", found.states, found.time, found.verdict);
    found.trace.iter().for_each(|step| println!("  {step}"));
    assert_ne!(found.verdict, Verdict::Holds, "without {rule}");
}

/// Each rule taken away in turn, with the least that the adversary needs then.
fn every_rule_is_needed() {
    let none = Bounds { deliveries: 2, key_losses: 0, expiries: 0, record_losses: 0, new_attempts: 0 };
    let forgetting = Bounds { key_losses: 1, ..none };
    breaks("the fence in T2", Rules { fence: false, ..Rules::ALL }, forgetting);
    breaks("the seal before a decline", Rules { seal: false, ..Rules::ALL }, none);
    let expiring = Bounds { expiries: 1, ..none };
    breaks("`state = PREPARED` in T2b", Rules { prepared: false, ..Rules::ALL }, expiring);
    let amnesic = Bounds { record_losses: 1, ..forgetting };
    breaks("the age guard", Rules { age_guard: false, ..Rules::ALL }, amnesic);
    breaks("never deleting a record", Rules { keep: false, ..Rules::ALL }, forgetting);
}

#[test]
fn the_protocol_holds() {
    holds(SMALL);
}

#[test]
fn the_search_finds_what_each_rule_prevents() {
    every_rule_is_needed();
}

#[test]
#[ignore = "long: make prove"]
fn prove_the_protocol() {
    holds(LARGE);
    holds(Bounds { deliveries: 4, record_losses: 0, expiries: 0, new_attempts: 0, ..LARGE });
    every_rule_is_needed();
}
