//! The search: breadth first, so that the first bad end has the shortest way to it.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    time::{Duration, Instant},
};

use super::{
    state::{Bounds, Rules, State},
    steps::{Label, steps},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// In no state that can be reached is a rule broken.
    Holds,
    Breaks(&'static str),
}

pub(super) struct Found {
    pub(super) verdict: Verdict,
    pub(super) states: usize,
    pub(super) time: Duration,
    /// The way to the bad end.
    pub(super) trace: Vec<String>,
}

pub(super) fn search(bounds: Bounds, rules: Rules) -> Found {
    let began = Instant::now();
    let first = State::first();
    let mut seen = HashMap::from([(first.clone(), 0)]);
    // For each state by its number, where it came from and how.
    let mut origins: Vec<(usize, Label)> = vec![(0, ("", 0))];
    let mut open = VecDeque::from([(0, first)]);
    while let Some((number, state)) = open.pop_front() {
        for (label, next) in steps(&state, bounds, rules) {
            let Entry::Vacant(vacant) = seen.entry(next) else { continue };
            let found = origins.len();
            origins.push((number, label));
            if let Some(violation) = vacant.key().violation() {
                let (verdict, trace) = (Verdict::Breaks(violation), trace(&origins, found));
                return Found { verdict, states: found, time: began.elapsed(), trace };
            }
            open.push_back((found, vacant.key().clone()));
            vacant.insert(found);
        }
    }
    let states = origins.len();
    Found { verdict: Verdict::Holds, states, time: began.elapsed(), trace: Vec::new() }
}

fn trace(origins: &[(usize, Label)], end: usize) -> Vec<String> {
    let mut trace = Vec::new();
    let mut at = end;
    while at > 0 {
        let (from, (what, delivery)) = origins[at];
        trace.push(if delivery == 0 { what.to_owned() } else { format!("delivery {delivery}: {what}") });
        at = from;
    }
    trace.reverse();
    trace
}
