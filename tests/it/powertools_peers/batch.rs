//! The batches that go through both functions: the behaviour cases that are about an order and the `http` provider,
//! generated ones, and a few for what needs time.

use std::{fs, path::Path, time::Duration};

use charge_once::{
    clock::{Clock, Timestamp},
    gateway::simulated::Script,
    generate::event_of,
};
use serde_json::{Value, json};

/// So many batches are generated for each type of queue.
const GENERATED: u64 = 60;

/// What is delivered, and what goes wrong meanwhile.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) name: String,
    /// Whether it is one of `tests/cases`; the bodies of all others are orders that both accept, or not JSON.
    pub(super) is_case: bool,
    /// Delivered one after another, each until nothing of it fails any more.
    pub(super) events: Vec<Value>,
    pub(super) script: Script,
    pub(super) timeout: Duration,
    /// Lanes of ours. One at a time, as theirs, makes what was begun before a 429 the same in each run.
    pub(super) concurrency: &'static str,
    /// Our function is told to speak Stripe's contract to the same provider.
    pub(super) ours_by_stripe: bool,
    /// The process is killed when the provider has got the first request for this order.
    pub(super) killed_at: Option<String>,
}

impl Batch {
    fn new(name: String, events: Vec<Value>, rules: Value) -> Self {
        Self {
            name,
            is_case: false,
            events,
            script: serde_json::from_value(json!({ "rules": rules })).unwrap(),
            timeout: Duration::from_secs(30),
            concurrency: "1",
            ours_by_stripe: false,
            killed_at: None,
        }
    }

    /// The records of an event.
    pub(super) fn records(&self, event: usize) -> &[Value] {
        records(&self.events[event])
    }

    /// Told by the queue's name.
    pub(super) fn is_fifo(&self) -> bool {
        let arn = self.events.first().and_then(|event| event["Records"][0]["eventSourceARN"].as_str());
        arn.is_some_and(|arn| arn.ends_with(".fifo"))
    }
}

/// The records of an event; none if it is something else.
pub(super) fn records(event: &Value) -> &[Value] {
    event["Records"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// All of them.
pub(super) fn all() -> Vec<Batch> {
    let now = Clock::system().now();
    let mut batches = cases();
    for fifo in [false, true] {
        batches.extend((0..GENERATED).map(|seed| Maker::new(fifo, seed, now).batch()));
        batches.extend([slow(fifo, now), killed(fifo, now), forgotten(fifo, now), overtaken(fifo, now)]);
    }
    batches
}

/// The cases that mean the same to a function without our ledger, our settings and our access to S3.
fn cases() -> Vec<Batch> {
    const OURS: [&str; 5] = ["records_before", "objects", "stripe", "event_base64", "keep_timestamps"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let cases =
        files.iter().map(|file| serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap());
    // These two are set anyway.
    let is_plain = |settings: &serde_json::Map<String, Value>| {
        settings
            .iter()
            .all(|(name, value)| name == "CONCURRENCY" || (name == "CHARGE_TIMEOUT" && value == "500ms"))
    };
    // Answers of the provider that mean what their reader makes of them, and our own field for a charge after a decline.
    let is_read_by_ours = |case: &Value| {
        let has_body = |rules: &Vec<Value>| rules.iter().any(|rule| rule.get("body").is_some());
        case["provider"]["rules"].as_array().is_some_and(has_body)
            || case["event"].to_string().contains(r#"\"attempt\""#)
    };
    cases
        .filter(|case| OURS.iter().all(|key| case.get(key).is_none()) && !is_read_by_ours(case))
        .filter(|case| case["settings"].as_object().is_none_or(is_plain))
        .map(|case| {
            let times = case["deliveries"].as_u64().unwrap_or(1).try_into().unwrap();
            let rules = match case["provider"]["panic_on"].as_str() {
                Some(order_id) => json!([{ "order_id": order_id, "effect": "reset-before" }]),
                None => case["provider"].get("rules").cloned().unwrap_or(json!([])),
            };
            let events = vec![case["event"].clone(); times];
            Batch { is_case: true, ..Batch::new(case["name"].as_str().unwrap().to_owned(), events, rules) }
        })
        .collect()
}

/// What may happen to a charge; the first nine pass.
const FAULTS: [&str; 15] = [
    r#"{"effect":"status","status":500,"times":1}"#,
    r#"{"effect":"status","status":500,"after_charge":true,"times":1}"#,
    r#"{"effect":"reset-before","times":1}"#,
    r#"{"effect":"reset-after","times":1}"#,
    r#"{"effect":"truncated","times":1}"#,
    r#"{"effect":"unparsable","times":1}"#,
    r#"{"effect":"hang-after","times":1}"#,
    r#"{"effect":"conflict","times":1}"#,
    r#"{"effect":"rate-limit","retry_after":1,"times":1}"#,
    r#"{"effect":"status","status":503}"#,
    r#"{"effect":"status","status":500,"sticky":true}"#,
    r#"{"effect":"status","status":400}"#,
    r#"{"effect":"status","status":422}"#,
    r#"{"effect":"processing","settle_ms":600000}"#,
    r#"{"effect":"decline"}"#,
];

/// Draws events of a few messages each, of one queue.
struct Maker {
    rng: fastrand::Rng,
    fifo: bool,
    seed: u64,
    now: Timestamp,
    /// Order id, amount and group of every order so far.
    orders: Vec<(String, String, String)>,
    rules: Vec<Value>,
}

impl Maker {
    fn new(fifo: bool, seed: u64, now: Timestamp) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), fifo, seed, now, orders: Vec::new(), rules: Vec::new() }
    }

    fn batch(mut self) -> Batch {
        let events = (0..self.rng.u32(1..=2)).map(|_| self.event()).collect();
        Batch::new(named(&format!("generated {}", self.seed), self.fifo), events, json!(self.rules))
    }

    fn event(&mut self) -> Value {
        let records: Vec<Value> = (0..self.rng.u32(1..=8)).map(|_| self.record()).collect();
        json!({ "Records": records })
    }

    /// An order that is new, an order that was there, with its amount or another one, or none.
    fn record(&mut self) -> Value {
        let lot = self.rng.u8(0..100);
        let earlier = self.rng.choice(&self.orders).cloned();
        match earlier {
            Some((order_id, amount, group)) if lot < 20 => self.message(&order(&order_id, &amount), &group),
            Some((order_id, _, group)) if lot < 28 => self.message(&order(&order_id, "99.99"), &group),
            Some(_) | None if lot > 90 => {
                let group = self.group();
                self.message(r#"{"order_id":"bad","amount":"#, &group)
            }
            Some(_) | None => {
                let (order_id, group) = (format!("o-{}", self.orders.len()), self.group());
                let amount = format!("{}.{:02}", self.rng.u32(1..500), self.rng.u32(0..99));
                self.draw_fault(&order_id);
                self.orders.push((order_id.clone(), amount.clone(), group.clone()));
                self.message(&order(&order_id, &amount), &group)
            }
        }
    }

    fn group(&mut self) -> String {
        format!("group-{}", self.rng.u8(0..3))
    }

    fn draw_fault(&mut self, order_id: &str) {
        if self.rng.u8(0..100) < 30 {
            let mut rule: Value = serde_json::from_str(self.rng.choice(FAULTS).unwrap()).unwrap();
            rule["order_id"] = json!(order_id);
            self.rules.push(rule);
        }
    }

    fn message(&mut self, body: &str, group: &str) -> Value {
        let mut record = event_of(body, self.fifo, self.rng.u64(..), self.now)["Records"][0].take();
        if self.fifo {
            record["attributes"]["MessageGroupId"] = json!(group);
        }
        record
    }
}

fn order(order_id: &str, amount: &str) -> String {
    format!(
        r#"{{"order_id":"{order_id}","amount":{amount},"currency":"EUR","customer":"cus_1","payment_method":"pm_card_visa"}}"#
    )
}

/// `count` orders without a fault, each a group of its own.
fn plain(count: u64, fifo: bool, now: Timestamp) -> Value {
    let record = |number| {
        let mut maker = Maker::new(fifo, number, now);
        maker.message(&order(&format!("o-{number}"), "5.00"), &format!("group-{number}"))
    };
    json!({ "Records": (0..count).map(record).collect::<Vec<_>>() })
}

/// One after another they take longer than the function may.
fn slow(fifo: bool, now: Timestamp) -> Batch {
    let batch = Batch::new(
        named("slow", fifo),
        vec![plain(10, fifo, now)],
        json!([{ "effect": "delay", "ms": 900 }]),
    );
    Batch { timeout: Duration::from_secs(6), concurrency: "10", ..batch }
}

/// The process dies while an order is charged.
fn killed(fifo: bool, now: Timestamp) -> Batch {
    let rules = json!([{ "order_id": "o-1", "effect": "delay", "ms": 300, "times": 1 }]);
    let batch = Batch::new(named("killed", fifo), vec![plain(3, fifo, now)], rules);
    Batch { timeout: Duration::from_secs(6), killed_at: Some("o-1".to_owned()), ..batch }
}

/// The reply to a charge is lost, and then the provider no longer knows the key.
fn forgotten(fifo: bool, now: Timestamp) -> Batch {
    let rules = json!([{ "effect": "reset-after", "order_id": "o-0", "times": 1 }, { "effect": "forget-keys", "order_id": "o-0" }]);
    let batch = Batch::new(named("forgotten", fifo), vec![plain(2, fifo, now)], rules);
    Batch { ours_by_stripe: true, ..batch }
}

/// A charge fails before it reached the provider, and the next message is the same order with another amount.
fn overtaken(fifo: bool, now: Timestamp) -> Batch {
    let mut maker = Maker::new(fifo, 0, now);
    let records = ["5.00", "99.99"].map(|amount| maker.message(&order("o-0", amount), "group-0"));
    let rules = json!([{ "effect": "reset-before", "order_id": "o-0", "times": 1 }]);
    Batch::new(named("overtaken", fifo), vec![json!({ "Records": records })], rules)
}

fn named(what: &str, fifo: bool) -> String {
    format!("{what}, {} queue", if fifo { "FIFO" } else { "standard" })
}
