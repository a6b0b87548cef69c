//! One run: two owners with faults, then deliveries without faults until quiet, and the rules that must hold.

use std::{sync::Arc, time::Duration};

use charge_once::{
    clock::Timestamp,
    decision::{Decision, PoisonReason},
    ledger::State,
    order::Order,
};

use super::{
    choices::Choices,
    owner::{Call, Owner},
    world::{Card, Fault, Scenario, World},
};
use crate::support::order::{HOUR, Hands, order};

/// How much may go wrong in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Faults.
    pub(super) faults: usize,
    /// How often the work passes from one owner to the other; the second one begins with the first of them.
    pub(super) switches: usize,
}

/// Longer than any lease.
const LAPSE: Duration = Duration::from_secs(600);
/// More deliveries than any order needs once nothing fails.
const ENOUGH: usize = 8;

struct Run<'a> {
    scenario: Scenario,
    limits: Limits,
    choices: &'a mut Choices,
    world: Arc<World>,
    order: Order,
    ordered_at: Timestamp,
    trace: Vec<String>,
    owners: u64,
}

/// Makes the run that `choices` say.
pub(super) async fn run(scenario: Scenario, limits: Limits, choices: &mut Choices) {
    let world = World::new(scenario);
    let card = if scenario.card == Card::Declining { "pm_card_chargeDeclined" } else { "pm_card_visa" };
    let ordered_at = world.hands.now();
    let order = order("o-1", card);
    let trace = Vec::new();
    let mut run = Run { scenario, limits, choices, world, order, ordered_at, trace, owners: 0 };
    run.with_faults().await;
    run.until_quiet().await;
}

impl Run<'_> {
    async fn with_faults(&mut self) {
        let mut owners = vec![self.owner().await];
        let mut current = 0;
        while let Some(call) = owners[current].at() {
            if self.switch(&mut owners, current).await {
                current = 1 - current;
                continue;
            }
            let fault = self.fault(&call);
            self.trace.push(format!("owner {current}: {call:?}, {fault:?}"));
            owners[current].step(fault.clone()).await;
            let ended = match owners[current].decision.clone() {
                Some(decision) => {
                    self.check_decision(&decision).await;
                    true
                }
                None => fault.ends_the_owner(),
            };
            if ended {
                if owners.len() == 1 {
                    return;
                }
                owners.remove(current);
                current = 0;
            }
        }
    }

    /// Whether the other owner goes on now. The second one begins when the lease of the first has ended by its own
    /// clock; the clock of the first stands still, so that no lease protects anything.
    async fn switch(&mut self, owners: &mut Vec<Owner>, current: usize) -> bool {
        let first = owners.len() == 1 && self.owners == 1;
        if self.limits.switches == 0 || !(first || owners.len() == 2) || self.choices.choose(2) == 0 {
            return false;
        }
        self.limits.switches -= 1;
        if first {
            self.world.hands.advance(LAPSE);
            owners.push(self.owner().await);
        }
        self.trace.push(format!("owner {current} is overtaken"));
        true
    }

    fn fault(&mut self, call: &Call) -> Fault {
        if self.limits.faults == 0 {
            return Fault::None;
        }
        let mut faults = match call {
            Call::Write(_) => Fault::of_the_ledger(),
            Call::Request { charges, .. } => Fault::of_the_provider(self.scenario, *charges),
        };
        match self.choices.choose(faults.len() + 1) {
            0 => Fault::None,
            chosen => {
                self.limits.faults -= 1;
                faults.swap_remove(chosen - 1)
            }
        }
    }

    async fn until_quiet(&mut self) {
        let late_first = self.choices.choose(2) == 0;
        if late_first {
            self.world.deliver_late().await;
        }
        // Long enough that the provider forgets its keys, or not. What a one-shot provider gets late must arrive
        // while it remembers them.
        let long = (late_first || !self.scenario.one_shot) && self.choices.choose(2) == 1;
        self.world.hands.advance(if long { 25 * HOUR } else { LAPSE });
        let mut decision = self.deliver().await;
        for _ in 0..ENOUGH {
            if !matches!(decision, Decision::Retry { .. }) {
                break;
            }
            self.world.hands.advance(LAPSE);
            decision = self.deliver().await;
        }
        if matches!(decision, Decision::Retry { .. }) {
            self.fail(&format!("still {decision:?}")).await;
        }
        self.world.deliver_late().await;
        self.world.hands.advance(HOUR);
        self.check_end(long).await;
        let again = self.deliver().await;
        if matches!(again, Decision::Retry { .. }) {
            self.fail(&format!("a duplicate is {again:?}")).await;
        }
        self.check_end(long).await;
    }

    async fn owner(&mut self) -> Owner {
        self.owners += 1;
        let hands: &Hands = &self.world.hands;
        Owner::begin(&self.world, self.scenario, &self.order, self.ordered_at, hands, self.owners).await
    }

    /// A delivery without faults.
    async fn deliver(&mut self) -> Decision {
        let mut owner = self.owner().await;
        while owner.decision.is_none() {
            self.trace.push(format!("delivery {}: {:?}", self.owners, owner.at()));
            owner.step(Fault::None).await;
        }
        let decision = owner.decision.unwrap();
        self.trace.push(format!("delivery {}: {decision:?}", self.owners));
        self.check_decision(&decision).await;
        decision
    }

    /// No message is given up before its order is.
    async fn check_decision(&self, decision: &Decision) {
        let state = self.world.entry(self.order.id()).await.map(|entry| entry.state);
        let fits = match decision {
            Decision::Ack(_) => state == Some(State::Paid),
            Decision::Poison(PoisonReason::Declined(_)) => state == Some(State::Declined),
            Decision::Poison(PoisonReason::Held(_)) => state == Some(State::Held),
            Decision::Poison(_) => false,
            Decision::Retry { .. } => true,
        };
        if !fits {
            self.fail(&format!("{decision:?} while the ledger says {state:?}")).await;
        }
    }

    /// Charged once or not at all, and the ledger knows which.
    async fn check_end(&self, long: bool) {
        let charges = self.world.provider().charges();
        let entry = self.world.entry(self.order.id()).await;
        let (Some(entry), 0 | 1) = (entry, charges.len()) else {
            return self.fail("charged twice, or no record").await;
        };
        let may_pay = self.scenario.card != Card::Declining;
        let may_decline = self.scenario.card != Card::Good;
        let fits = match entry.state {
            State::Paid => may_pay && charges.first().map(|it| &it.charge_id) == entry.charge_id.as_ref(),
            State::Declined => may_decline && charges.is_empty(),
            // A one-shot charge in doubt that outlived its key.
            State::Held => self.scenario.one_shot && long,
            State::Claimed | State::Prepared | State::Sent => false,
        };
        if !fits {
            self.fail("the ledger does not say what happened").await;
        }
    }

    async fn fail(&self, what: &str) {
        let charges = self.world.provider().charges();
        let entry = self.world.entry(self.order.id()).await;
        let (scenario, choices, trace) = (self.scenario, &self.choices, self.trace.join("\n  "));
        panic!("{what}\n{scenario:?}, choices {choices}\n  {trace}\n{} charges, {entry:?}", charges.len());
    }
}
