//! The fault script as one line of text, for `charge-once local --faults`.

use super::{
    chance::{Chance, ChanceError},
    effect::Effect,
    script::{Matcher, Rule, Script},
};

/// A bit of everything, rare enough that most orders are still charged on their first delivery.
const MIXED: [(&str, &str); 12] = [
    ("decline", "3%"),
    ("500", "2%"),
    ("sticky-500", "1%"),
    ("timeout-before-charge", "1%"),
    ("timeout-after-charge", "3%"),
    ("reset", "1%"),
    ("reset-after-charge", "2%"),
    ("truncated", "1%"),
    ("rate-limit", "1%"),
    ("processing", "1%"),
    ("late", "1%"),
    ("forget-keys", "0.5%"),
];

/// The names of the faults, in the order of the table at [`Script::parse`].
const NAMES: [&str; 18] = [
    "decline",
    "processing",
    "500",
    "sticky-500",
    "500-after-charge",
    "503",
    "conflict",
    "rate-limit",
    "lock-timeout",
    "reset",
    "reset-after-charge",
    "timeout-before-charge",
    "timeout-after-charge",
    "truncated",
    "unparsable",
    "slow",
    "late",
    "forget-keys",
];

/// Why a fault specification is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A fault or setting that does not exist.
    #[error("there is no fault `{part}`; known are mixed, seed=N, latency=Nms, and {} with =CHANCE", NAMES.join(", "))]
    Unknown {
        /// The part of the specification.
        part: String,
    },
    /// A fault without its probability.
    #[error("`{part}` needs a probability, as in `{part}=2.5%`")]
    ChanceMissing {
        /// The part of the specification.
        part: String,
    },
    /// A fault whose probability cannot be read.
    #[error("the probability of `{name}` is not usable; write one from 0% to 100%")]
    Chance {
        /// The fault.
        name: String,
        /// What is wrong with it.
        #[source]
        source: ChanceError,
    },
    /// A setting whose value cannot be read.
    #[error("`{part}` is not usable; write {expected}")]
    Setting {
        /// The part of the specification.
        part: String,
        /// The form it must have.
        expected: &'static str,
    },
}

impl Script {
    /// Reads a script from one line:
    ///
    /// ```text
    /// SPEC   = PART *("," PART)          spaces around parts do not matter, an empty SPEC has no faults
    /// PART   = NAME "=" CHANCE           one fault, tried in the order written
    ///        | "mixed"                   a bit of everything
    ///        | "seed=" N                 where chance begins, default 0
    ///        | "latency=" N "ms"         how long every request is under way
    /// CHANCE = digits ["." 1*4digits] "%"  or a whole number of permille, 0 to 1000
    /// ```
    ///
    /// | NAME | what happens |
    /// |---|---|
    /// | `decline`, `processing` | the charge is declined; is decided half a minute later |
    /// | `500`, `503` | answered without executing, once |
    /// | `sticky-500` | answered without executing, and again for every request with that key |
    /// | `500-after-charge` | executed, then answered 500, and again for every request with that key |
    /// | `conflict`, `rate-limit`, `lock-timeout` | 409; 429 with `Retry-After: 1`; 429 `lock_timeout` |
    /// | `reset`, `reset-after-charge` | the connection is reset before, after executing |
    /// | `timeout-before-charge`, `timeout-after-charge` | no answer, not executed; executed |
    /// | `truncated`, `unparsable` | executed, and the answer breaks off; is a 200 that is not JSON |
    /// | `slow` | two seconds of work, the key in use, then the answer |
    /// | `late` | no answer; executed just before the tenth request that follows |
    /// | `forget-keys` | every idempotency key is forgotten, then executed |
    ///
    /// # Errors
    /// Names the part that is wrong and what is allowed.
    pub fn parse(spec: &str) -> Result<Self, SpecError> {
        let mut script = Self::default();
        for part in spec.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "mixed" => {
                    for (name, chance) in MIXED {
                        script.rules.push(rule(name, chance)?);
                    }
                }
                Some(("seed", value)) => script.seed = number(part, value, "seed=N")?,
                Some(("latency", value)) => {
                    let millis = value.strip_suffix("ms").unwrap_or_default();
                    script.latency_ms = number(part, millis, "latency=Nms")?;
                }
                Some((name, chance)) => script.rules.push(rule(name.trim(), chance.trim())?),
                None if effect(part).is_some() => {
                    return Err(SpecError::ChanceMissing { part: part.to_owned() });
                }
                None => return Err(SpecError::Unknown { part: part.to_owned() }),
            }
        }
        Ok(script)
    }
}

fn number(part: &str, value: &str, expected: &'static str) -> Result<u64, SpecError> {
    value.parse().map_err(|_| SpecError::Setting { part: part.to_owned(), expected })
}

fn rule(name: &str, chance: &str) -> Result<Rule, SpecError> {
    let effect = effect(name).ok_or_else(|| SpecError::Unknown { part: name.to_owned() })?;
    let chance =
        Chance::parse(chance).map_err(|source| SpecError::Chance { name: name.to_owned(), source })?;
    Ok(Rule { matcher: Matcher { chance: Some(chance), ..Matcher::default() }, effect })
}

fn effect(name: &str) -> Option<Effect> {
    Some(match name {
        "decline" => Effect::decline(),
        "processing" => Effect::processing(),
        "500" => Effect::status(500),
        "503" => Effect::status(503),
        "sticky-500" => Effect::sticky_status(500),
        "500-after-charge" => {
            Effect::Status { status: 500, body: None, sticky: true, after_charge: true, should_retry: None }
        }
        "conflict" => Effect::Conflict {},
        "rate-limit" => Effect::RateLimit { retry_after: Some(1), as_date: false },
        "lock-timeout" => Effect::LockTimeout {},
        "reset" => Effect::ResetBefore {},
        "reset-after-charge" => Effect::ResetAfter {},
        "timeout-before-charge" => Effect::HangBefore {},
        "timeout-after-charge" => Effect::HangAfter {},
        "truncated" => Effect::Truncated {},
        "unparsable" => Effect::Unparsable {},
        "slow" => Effect::Delay { ms: 2000 },
        "late" => Effect::Late { after: Some(10) },
        "forget-keys" => Effect::ForgetKeys {},
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_rules_in_order() {
        let script =
            Script::parse(" decline=5%, 500=20 ,timeout-after-charge=3%,seed=9,latency=15ms").unwrap();
        let effects: Vec<&Effect> = script.rules.iter().map(|rule| &rule.effect).collect();
        assert_eq!(effects, [&Effect::decline(), &Effect::status(500), &Effect::HangAfter {}]);
        assert_eq!(script.rules[1].matcher.chance, Chance::parse("2%").ok());
        assert_eq!((script.seed, script.latency_ms), (9, 15));
        assert_eq!(Script::parse("").unwrap(), Script::default());
    }

    #[test]
    fn every_name_is_a_fault_and_mixed_uses_only_names() {
        for name in NAMES {
            assert!(effect(name).is_some(), "{name}");
        }
        assert_eq!(Script::parse("mixed").unwrap().rules.len(), MIXED.len());
    }

    #[test]
    fn errors_name_the_part_and_what_is_allowed() {
        let error = |spec| Script::parse(spec).unwrap_err();
        let unknown = error("decline=1%,explode=2%").to_string();
        assert!(unknown.contains("`explode`") && unknown.contains("timeout-after-charge"), "{unknown}");
        assert_eq!(error("decline").to_string(), "`decline` needs a probability, as in `decline=2.5%`");
        assert_eq!(error("seed=x").to_string(), "`seed=x` is not usable; write seed=N");
        assert_eq!(error("latency=5").to_string(), "`latency=5` is not usable; write latency=Nms");
        let chance = error("reset=half");
        assert!(
            matches!(&chance, SpecError::Chance { name, source: ChanceError::Unreadable(_) } if name == "reset")
        );
    }
}
