//! A script under way: which rule strikes next.

use super::{
    call::Operation,
    effect::Effect,
    script::{Rule, Script},
};
use crate::backoff::Random;

/// A script under way: how often each rule has matched and fired.
#[derive(Debug)]
pub(super) struct Director {
    pub(super) script: Script,
    random: Random,
    counts: Vec<Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    matched: u32,
    fired: u32,
}

impl Director {
    pub(super) fn new(script: Script) -> Self {
        let counts = vec![Count::default(); script.rules.len()];
        Self { random: Random::seeded(script.seed), counts, script }
    }

    /// The effect that the next request of this order and operation meets.
    pub(super) fn next(&mut self, order_id: Option<&str>, operation: Operation) -> Option<Effect> {
        let mut rules = self.script.rules.iter().zip(self.counts.iter_mut());
        rules.find_map(|(rule, count)| {
            fires(rule, count, order_id, operation, &self.random).then(|| rule.effect.clone())
        })
    }
}

fn fires(
    Rule { matcher, effect }: &Rule,
    count: &mut Count,
    order_id: Option<&str>,
    operation: Operation,
    random: &Random,
) -> bool {
    let matches = (matcher.order_id.is_none() || matcher.order_id.as_deref() == order_id)
        && matcher.operation.is_none_or(|wanted| wanted == operation)
        && (operation.charges() || !effect.needs_charge());
    if !matches {
        return false;
    }
    count.matched = count.matched.saturating_add(1);
    let fires = matcher.nth.is_none_or(|nth| nth == count.matched)
        && matcher.times.is_none_or(|times| count.fired < times)
        && matcher.chance.is_none_or(|chance| chance.hits(random));
    count.fired = count.fired.saturating_add(u32::from(fires));
    fires
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(script: Script, calls: &[(&str, Operation)]) -> Vec<bool> {
        let mut director = Director::new(script);
        calls.iter().map(|(order, operation)| director.next(Some(order), *operation).is_some()).collect()
    }

    #[test]
    fn a_rule_meets_its_order_operation_and_count() {
        use Operation::{Charge, Find};
        let rule = Rule::always(Effect::status(500)).order("o-1").on(Charge);
        let calls = [("o-2", Charge), ("o-1", Find), ("o-1", Charge), ("o-1", Charge), ("o-1", Charge)];
        assert_eq!(fired(Script::of([rule.clone()]), &calls), [false, false, true, true, true]);
        assert_eq!(fired(Script::of([rule.clone().times(1)]), &calls), [false, false, true, false, false]);
        assert_eq!(fired(Script::of([rule.nth(2)]), &calls), [false, false, false, true, false]);
    }

    #[test]
    fn declines_meet_only_operations_that_charge() {
        let script = Script::of([Rule::always(Effect::decline())]);
        assert_eq!(fired(script, &[("o", Operation::Create), ("o", Operation::Confirm)]), [false, true]);
    }

    #[test]
    fn chance_repeats_for_a_seed_and_keeps_its_share() {
        let run = |seed| {
            let script = Script { seed, ..Script::parse("500=10%").unwrap() };
            fired(script, &[("o", Operation::Charge); 4000])
        };
        assert_eq!(run(3), run(3));
        let hits = run(3).iter().filter(|fired| **fired).count();
        assert!((300..500).contains(&hits), "{hits} of 4000 at 10%");
    }
}
