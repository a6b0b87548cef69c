//! Makes SQS events and messages of any number: true digests, FIFO attributes, duplicates and poison as asked for.

use serde_json::{Map, Value, json};

use crate::{clock::Timestamp, queue::Outgoing, record::MessageGroupId};

/// What an event shall look like.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// How many records.
    pub count: u32,
    /// Whether the records come from a FIFO queue, one group a customer.
    pub fifo: bool,
    /// How many of a hundred records repeat an earlier order under a new message id.
    pub duplicates_percent: u8,
    /// How many of a hundred records hold no usable order.
    pub poison_percent: u8,
    /// The same seed makes the same event.
    pub seed: u64,
}

/// One message, as a producer would send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The text.
    pub body: String,
    /// The order in it; `None` for poison.
    pub order_id: Option<String>,
    /// The message group, where the queue is FIFO: the customer.
    pub group: String,
}

impl Generated {
    /// The message to send; with a `deduplication_id` to a FIFO queue.
    pub fn outgoing(self, deduplication_id: Option<String>) -> Outgoing {
        Outgoing {
            body: self.body,
            group: deduplication_id.is_some().then(|| MessageGroupId::new(self.group)).flatten(),
            deduplication_id,
            ..Outgoing::default()
        }
    }
}

/// How many customers the orders of an event come from.
const CUSTOMERS: u32 = 20;

/// An event after `recipe`, sent at `now`.
pub fn event(recipe: &Recipe, now: Timestamp) -> Value {
    let mut maker = Maker::new(recipe, CUSTOMERS);
    json!({ "Records": (1..=recipe.count).map(|number| maker.record(number, now)).collect::<Vec<_>>() })
}

/// The messages after `recipe`, from so many `customers`. A repeated order has the group of its first message.
pub fn messages(recipe: &Recipe, customers: u32) -> impl Iterator<Item = Generated> {
    let mut maker = Maker::new(recipe, customers);
    (1..=recipe.count).map(move |number| maker.message(number))
}

/// An event of one record with `body`, sent at `now`; the identifiers come from `seed`.
pub fn event_of(body: &str, fifo: bool, seed: u64, now: Timestamp) -> Value {
    let mut rng = fastrand::Rng::with_seed(seed);
    json!({ "Records": [record(body, fifo.then_some("group-1"), 1, now, &mut rng)] })
}

/// The messages of such an event, to send them to a queue. On FIFO queues no message is sent twice in five minutes
/// because its deduplication id repeats: duplicates are messages of their own.
pub fn outgoing(recipe: &Recipe, now: Timestamp) -> impl Iterator<Item = Outgoing> {
    let salt = now.as_millis();
    let send = move |(number, message): (usize, Generated)| {
        message.outgoing(recipe.fifo.then(|| format!("{salt}-{number}")))
    };
    messages(recipe, CUSTOMERS).enumerate().map(send)
}

struct Maker<'a> {
    rng: fastrand::Rng,
    recipe: &'a Recipe,
    customers: u32,
    orders: Vec<Generated>,
}

impl<'a> Maker<'a> {
    fn new(recipe: &'a Recipe, customers: u32) -> Self {
        let rng = fastrand::Rng::with_seed(recipe.seed);
        Self { rng, recipe, customers: customers.max(1), orders: Vec::new() }
    }

    fn record(&mut self, number: u32, now: Timestamp) -> Value {
        let Generated { body, group, .. } = self.message(number);
        record(&body, self.recipe.fifo.then_some(&group), number, now, &mut self.rng)
    }

    fn message(&mut self, number: u32) -> Generated {
        let lot = self.rng.u8(0..100);
        if lot < self.recipe.poison_percent {
            let group = group(&mut self.rng, self.customers);
            return Generated { body: self.poison(number), order_id: None, group };
        }
        let poison_or_duplicate = self.recipe.poison_percent.saturating_add(self.recipe.duplicates_percent);
        if lot < poison_or_duplicate
            && let Some(earlier) = self.rng.choice(&self.orders)
        {
            return earlier.clone();
        }
        let order = self.order(number);
        self.orders.push(order.clone());
        order
    }

    /// An order with the same number and seed is the same one, whatever share of duplicates and poison is asked for.
    fn order(&self, number: u32) -> Generated {
        let mut rng = fastrand::Rng::with_seed(self.recipe.seed.rotate_left(32) ^ u64::from(number));
        let group = group(&mut rng, self.customers);
        let order_id = format!("gen-{}-{number:05}", self.recipe.seed);
        let (units, cents) = (rng.u32(1..500), rng.u32(0..100));
        let body = format!(
            r#"{{"order_id":"{order_id}","amount":{units}.{cents:02},"currency":"EUR","customer":"{group}","payment_method":"pm_card_visa"}}"#,
        );
        Generated { body, order_id: Some(order_id), group }
    }

    /// One of the ways an order is unusable.
    fn poison(&mut self, number: u32) -> String {
        match self.rng.u8(0..3) {
            0 => format!(r#"{{"order_id":"bad-{number:05}","amount":"#),
            1 => format!(r#"{{"order_id":"bad-{number:05}","amount":-1,"currency":"EUR"}}"#),
            _ => format!(r#"{{"order_id":"bad-{number:05}","amount":9.999,"currency":"EUR"}}"#),
        }
    }
}

/// A customer.
fn group(rng: &mut fastrand::Rng, customers: u32) -> String {
    format!("cus_{:02}", rng.u32(1..=customers))
}

fn record(body: &str, group: Option<&str>, number: u32, now: Timestamp, rng: &mut fastrand::Rng) -> Value {
    let mut uuid = || uuid::Builder::from_random_bytes(rng.u128(..).to_be_bytes()).into_uuid().to_string();
    let (message_id, receipt_handle) = (uuid(), uuid());
    let digest = format!("{:x}", md5::compute(body));
    let queue = if group.is_some() { "orders.fifo" } else { "orders" };
    json!({
        "messageId": message_id,
        "receiptHandle": receipt_handle,
        "body": body,
        "attributes": attributes(group, &message_id, number, now),
        "messageAttributes": {},
        "md5OfBody": digest,
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:{queue}"),
        "awsRegion": "eu-central-1",
    })
}

fn attributes(group: Option<&str>, message_id: &str, number: u32, now: Timestamp) -> Map<String, Value> {
    let mut attributes = Map::new();
    let mut set = |name: &str, value: String| attributes.insert(name.to_owned(), value.into());
    set("ApproximateReceiveCount", "1".into());
    set("SentTimestamp", now.as_millis().to_string());
    set("ApproximateFirstReceiveTimestamp", now.as_millis().to_string());
    set("SenderId", "AROAZ3EXAMPLE4SHOP:checkout".into());
    if let Some(group) = group {
        set("MessageGroupId", group.into());
        set("MessageDeduplicationId", message_id.into());
        set("SequenceNumber", format!("{:020}", u64::from(number).saturating_add(FIRST_SEQUENCE_NUMBER)));
    }
    attributes
}

/// About where real queues are; only the order matters.
const FIRST_SEQUENCE_NUMBER: u64 = 18_370_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const RECIPE: Recipe =
        Recipe { count: 200, fifo: false, duplicates_percent: 20, poison_percent: 10, seed: 7 };

    fn records(recipe: &Recipe) -> Vec<Value> {
        event(recipe, Timestamp::from_millis(1_000))["Records"].as_array().unwrap().clone()
    }

    #[test]
    fn the_same_seed_makes_the_same_event() {
        assert_eq!(records(&RECIPE), records(&RECIPE));
        assert_ne!(records(&RECIPE), records(&Recipe { seed: 8, ..RECIPE }));
    }

    #[test]
    fn identifiers_differ_and_digests_are_true() {
        let records = records(&RECIPE);
        let ids: BTreeSet<_> = records.iter().map(|record| record["messageId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 200);
        for record in &records {
            let digest = format!("{:x}", md5::compute(record["body"].as_str().unwrap()));
            assert_eq!(record["md5OfBody"], digest);
        }
    }

    #[test]
    fn duplicates_and_poison_come_as_asked_for() {
        let bodies = |recipe: &Recipe| -> BTreeSet<String> {
            records(recipe).iter().map(|record| record["body"].to_string()).collect()
        };
        assert_eq!(bodies(&Recipe { duplicates_percent: 0, poison_percent: 0, ..RECIPE }).len(), 200);
        assert!(bodies(&RECIPE).len() < 200);
        let all_poison = Recipe { poison_percent: 100, ..RECIPE };
        assert!(bodies(&all_poison).iter().all(|body| body.contains("bad-")));
    }

    #[test]
    fn an_order_is_the_same_in_every_mixture() {
        let orders = |recipe: Recipe| -> std::collections::BTreeMap<String, String> {
            messages(&recipe, CUSTOMERS)
                .filter_map(|message| Some((message.order_id?, message.body)))
                .collect()
        };
        let plain = orders(Recipe { duplicates_percent: 0, poison_percent: 0, ..RECIPE });
        assert!(orders(RECIPE).into_iter().all(|(id, body)| plain[&id] == body));
    }

    #[test]
    fn fifo_records_carry_group_and_rising_sequence_numbers() {
        let records = records(&Recipe { fifo: true, ..RECIPE });
        let sequence = |record: &Value| record["attributes"]["SequenceNumber"].as_str().unwrap().to_owned();
        assert!(records.is_sorted_by(|a, b| sequence(a) < sequence(b)));
        assert!(records.iter().all(|record| record["attributes"]["MessageGroupId"].is_string()));
        assert!(records.iter().all(|record| record["eventSourceARN"].as_str().unwrap().ends_with(".fifo")));
    }

    #[test]
    fn messages_are_those_of_the_event() {
        let bodies: Vec<_> = messages(&RECIPE, CUSTOMERS).map(|message| message.body).collect();
        let event = records(&RECIPE);
        assert_eq!(bodies.len(), event.len());
        assert_eq!(bodies[0], event[0]["body"]);
    }

    #[test]
    fn a_repeated_order_stays_in_its_group() {
        let mut group_of = std::collections::BTreeMap::new();
        for message in messages(&RECIPE, 5) {
            let Some(order_id) = message.order_id else { continue };
            let group = group_of.entry(order_id).or_insert_with(|| message.group.clone());
            assert_eq!(*group, message.group);
        }
    }

    #[test]
    fn a_given_body_is_not_touched() {
        let body = r#"{"order_id":"o-1","amount":49.90}"#;
        let event = event_of(body, false, 1, Timestamp::from_millis(1));
        assert_eq!(event["Records"][0]["body"], body);
    }
}
