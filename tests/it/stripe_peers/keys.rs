//! What an idempotency key does: our simulated provider and stripe-stateful-mock, asked the same.
//!
//! The mock knows charges only and the simulated provider PaymentIntents only, so each is asked by the call that
//! it has, and what must be alike is the status, what is replayed, and how many objects there are.

use std::collections::BTreeSet;

use charge_once::{
    clock::Clock,
    gateway::simulated::{Effect, Rule, Script, Simulated},
};
use futures_util::future::join_all;
use serde_json::Value;

use super::{
    client::{Answer, post},
    peer,
};

/// A provider, and how to ask it for a charge that goes well, one that is declined, and one that breaks.
struct Contestant {
    url: String,
    good: Vec<(&'static str, &'static str)>,
    declined: Vec<(&'static str, &'static str)>,
    broken: Vec<(&'static str, &'static str)>,
}

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [base, more].concat()
}

fn mock() -> Contestant {
    let base = [("amount", "4990"), ("currency", "eur")];
    Contestant {
        url: format!("{}/v1/charges", peer("STRIPE_STATEFUL_MOCK_URL")),
        good: with(&base, &[("source", "tok_visa")]),
        declined: with(&base, &[("source", "tok_chargeDeclined")]),
        broken: with(&base, &[("source", "tok_500")]),
    }
}

fn ours(simulated: &Simulated) -> Contestant {
    let base = [("amount", "4990"), ("currency", "eur"), ("confirm", "true")];
    let base = with(&base, &[("payment_method_types[]", "card")]);
    let visa = [("payment_method", "pm_card_visa")];
    Contestant {
        url: format!("{}/v1/payment_intents", simulated.base_url()),
        good: with(&base, &visa),
        declined: with(&base, &[("payment_method", "pm_card_chargeDeclined")]),
        broken: with(&base, &with(&visa, &[("metadata[order_id]", "broken")])),
    }
}

impl Contestant {
    async fn ask(&self, key: &str, form: &[(&str, &str)]) -> Answer {
        post(&self.url, Some(key), form).await
    }

    /// Both answers to one request that is sent twice, as far as they can be alike.
    async fn twice(&self, key: &str, form: &[(&str, &str)]) -> Vec<String> {
        let (first, second) = (self.ask(key, form).await, self.ask(key, form).await);
        let same = if first.body == second.body { "the same" } else { "another" };
        let show = |answer: &Answer| format!("{} {}", answer.status, kind(&answer.body));
        vec![
            show(&first),
            format!("{}, {same} body, replayed: {}", show(&second), second.replayed),
            format!("first replayed: {}", first.replayed),
        ]
    }

    async fn observations(&self) -> Vec<(&'static str, Vec<String>)> {
        let larger: Vec<_> = self
            .good
            .iter()
            .map(|(name, value)| (*name, if *name == "amount" { "5000" } else { value }))
            .collect();
        let replay = self.twice("key-good", &self.good).await;
        let other = self.ask("key-good", &larger).await;
        let many = join_all((0..20).map(|_| self.ask("key-many", &self.good))).await;
        let objects: BTreeSet<_> = many.iter().map(|answer| answer.body["id"].to_string()).collect();
        let without: Vec<Answer> =
            vec![post(&self.url, None, &self.good).await, post(&self.url, None, &self.good).await];
        vec![
            ("replay", replay),
            ("other parameters", vec![format!("{} {}", other.status, kind(&other.body))]),
            ("a decline is replayed", self.twice("key-declined", &self.declined).await),
            ("a 500 is replayed", self.twice("key-broken", &self.broken).await),
            ("20 at once", vec![format!("{} object", objects.len())]),
            ("without a key", vec![format!("the same: {}", without[0].body["id"] == without[1].body["id"])]),
        ]
    }
}

/// The kind of error, or nothing.
fn kind(body: &Value) -> &str {
    body["error"]["type"].as_str().unwrap_or("-")
}

#[tokio::test]
#[ignore = "needs stripe-stateful-mock; run by make peers"]
async fn keys_do_what_stripe_stateful_mock_says_they_do() {
    let broken = Rule::always(Effect::sticky_status(500)).order("broken");
    let script = Script { rules: vec![broken], ..Script::default() };
    let simulated = Simulated::start(Clock::system(), script).await.unwrap();
    assert_eq!(ours(&simulated).observations().await, mock().observations().await);
}
