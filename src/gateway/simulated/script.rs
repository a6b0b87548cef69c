//! The fault script: which request meets which [`Effect`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{call::Operation, chance::Chance, effect::Effect};

/// The faults of a simulated provider: the first rule that matches a request and fires decides about it.
///
/// As JSON: `{"rules": [{"order_id": "o-1", "effect": "decline", "code": "card_declined", "times": 1}]}`, with the
/// fields of [`Rule`], those of the [`Effect`] beside them, and the settings below. As text: see
/// [`Script::parse`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Tried in this order.
    pub rules: Vec<Rule>,
    /// Where chance begins: the same seed and requests give the same faults.
    pub seed: u64,
    /// How long an idempotency key is remembered, in milliseconds of the provider's clock; 24 h as at Stripe.
    pub key_retention_ms: u64,
    /// The age at which an unpaid intent cancels itself, in milliseconds of the provider's clock; never without.
    pub intents_expire_after_ms: Option<u64>,
    /// How long every request is under way before it reaches the provider, in milliseconds. Sockets only.
    pub latency_ms: u64,
}

impl Default for Script {
    fn default() -> Self {
        let day = 24 * 60 * 60 * 1000;
        Self {
            rules: Vec::new(),
            seed: 0,
            key_retention_ms: day,
            intents_expire_after_ms: None,
            latency_ms: 0,
        }
    }
}

/// Which requests meet an effect. What is absent matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Rule {
    /// Who it is for.
    #[serde(flatten)]
    pub matcher: Matcher,
    /// What happens.
    #[serde(flatten)]
    pub effect: Effect,
}

/// The conditions of a [`Rule`]; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    /// The order. Calls on a Stripe intent count for the order in its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// `charge`, `find`, `create`, `confirm`, `retrieve` or `cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Only the nth request, from 1, of those that match order and operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// At most so many requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Only with this probability: `"2.5%"` or a whole number of permille.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<Chance>,
}

/// The fields that belong to the [`Matcher`]; all others are the effect's. A test keeps both equal.
const MATCHER_FIELDS: [&str; 5] = ["order_id", "operation", "nth", "times", "chance"];

impl TryFrom<Map<String, Value>> for Rule {
    type Error = String;

    fn try_from(fields: Map<String, Value>) -> Result<Self, String> {
        let (matcher, effect): (Map<_, _>, Map<_, _>) =
            fields.into_iter().partition(|(name, _)| MATCHER_FIELDS.contains(&name.as_str()));
        let matcher = Matcher::deserialize(Value::Object(matcher)).map_err(|error| error.to_string())?;
        let effect = Effect::deserialize(Value::Object(effect)).map_err(|error| error.to_string())?;
        effect.problem().map_or(Ok(Self { matcher, effect }), Err)
    }
}

impl Rule {
    /// A rule for every request.
    pub fn always(effect: Effect) -> Self {
        Self { matcher: Matcher::default(), effect }
    }

    /// The same rule for one order only.
    #[must_use]
    pub fn order(mut self, order_id: &str) -> Self {
        self.matcher.order_id = Some(order_id.to_owned());
        self
    }

    /// The same rule for one operation only.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.matcher.operation = Some(operation);
        self
    }

    /// The same rule for the nth matching request only, from 1.
    #[must_use]
    pub fn nth(mut self, nth: u32) -> Self {
        self.matcher.nth = Some(nth);
        self
    }

    /// The same rule for at most `times` requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.matcher.times = Some(times);
        self
    }
}

impl Script {
    /// A script without chance or settings.
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn key_retention(&self) -> Duration {
        Duration::from_millis(self.key_retention_ms)
    }

    pub(super) fn intents_expire_after(&self) -> Option<Duration> {
        self.intents_expire_after_ms.map(Duration::from_millis)
    }

    pub(super) fn latency(&self) -> Duration {
        Duration::from_millis(self.latency_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_names_what_is_wrong() {
        let read = |rule: &str| serde_json::from_str::<Script>(&format!("{{\"rules\":[{rule}]}}"));
        let script =
            read(r#"{"order_id":"o-1","effect":"decline","code":"card_declined","times":1}"#).unwrap();
        assert_eq!(script, Script::of([Rule::always(Effect::decline()).order("o-1").times(1)]));
        let cases = [
            (r#"{"effect":"implode"}"#, "unknown variant `implode`, expected one of `decline`"),
            (r#"{"effect":"conflict","code":"x"}"#, "unknown field `code`"),
            (r#"{"effect":"status","status":42}"#, "status 42 is not within 200 to 599"),
            (r#"{"order_id":"o"}"#, "missing field `effect`"),
            (r#"{"effect":"conflict","chance":"200%"}"#, "more than 100%"),
        ];
        for (rule, expected) in cases {
            let error = read(rule).unwrap_err().to_string();
            assert!(error.contains(expected), "{rule}: {error}");
        }
        assert!(serde_json::from_str::<Script>(r#"{"rule":[]}"#).is_err());
    }

    #[test]
    fn a_script_survives_its_json_form() {
        let script = Script::parse("mixed,seed=7,latency=20ms").unwrap();
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }

    #[test]
    fn the_matcher_fields_are_those_of_the_matcher() {
        let full = Matcher {
            order_id: Some("o".into()),
            operation: Some(Operation::Find),
            nth: Some(1),
            times: Some(1),
            chance: Some(Chance::parse("1%").unwrap()),
        };
        let json = serde_json::to_value(full).unwrap();
        let mut fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = MATCHER_FIELDS.to_vec();
        fields.sort_unstable();
        expected.sort_unstable();
        assert_eq!(fields, expected);
    }
}
