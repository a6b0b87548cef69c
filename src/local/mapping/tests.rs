use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Mutex, atomic::AtomicUsize},
};

use tokio::time::Instant;

use super::*;
use crate::{
    backoff::Random,
    clock::{Clock, Timestamp},
    queue::{
        Outgoing,
        memory::{QueueSettings, RedrivePolicy},
    },
    record::MessageGroupId,
};

/// A function that does with a batch what the test says, and remembers every event.
struct Scripted<F> {
    answer: F,
    events: Mutex<Vec<Value>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl<F: Fn(&Value) -> InvocationOutcome + Sync> Scripted<F> {
    fn new(answer: F) -> Self {
        Self {
            answer,
            events: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }
    }

    /// The bodies in the order they were delivered.
    fn bodies(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let records = events.iter().flat_map(|event| event["Records"].as_array().unwrap());
        records.map(|record| record["body"].as_str().unwrap().to_owned()).collect()
    }
}

impl<F: Fn(&Value) -> InvocationOutcome + Sync> Invoke for Scripted<F> {
    type Error = Infallible;

    async fn invoke(&self, event: Bytes) -> Result<InvocationOutcome, Infallible> {
        let running = self.running.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let event: Value = serde_json::from_slice(&event).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let outcome = (self.answer)(&event);
        self.events.lock().unwrap().push(event);
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(outcome)
    }
}

fn queues(name: &str, settings: QueueSettings) -> MemoryQueues {
    let begin = Instant::now();
    let clock = Clock::from_fn(move || Timestamp::from_millis(1_700_000_000_000).plus(begin.elapsed()));
    let queues = MemoryQueues::new(clock, Random::seeded(1));
    let dead = if settings.fifo.is_some() { QueueSettings::fifo() } else { QueueSettings::standard() };
    let dlq = if settings.fifo.is_some() { "dead.fifo" } else { "dead" };
    queues.create(dlq, dead).unwrap();
    let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn(dlq), max_receive_count: 3 };
    queues.create(name, QueueSettings { redrive: Some(redrive), ..settings }).unwrap();
    queues
}

fn send(queues: &MemoryQueues, queue: &str, bodies: &[&str], group: Option<&str>) {
    for body in bodies {
        let message = Outgoing {
            body: (*body).to_owned(),
            group: group.and_then(MessageGroupId::new),
            deduplication_id: group.map(|_| (*body).to_owned()),
            ..Outgoing::default()
        };
        queues.send_one(queue, message).unwrap();
    }
}

fn mapping<'a>(queues: &'a MemoryQueues, queue: &'a str) -> Mapping<'a> {
    Mapping { queues, queue, batch_size: 10, concurrency: 2 }
}

fn failures(ids: &[&Value]) -> InvocationOutcome {
    let entries: Vec<_> = ids.iter().map(|id| json!({ "itemIdentifier": id })).collect();
    InvocationOutcome::Response(json!({ "batchItemFailures": entries }).to_string().into())
}

fn counts_of(counts: &Counts) -> [u64; 3] {
    [counts.invocations(), counts.deliveries(), counts.failed()]
}

#[tokio::test(start_paused = true)]
async fn what_is_not_reported_is_deleted_and_the_rest_comes_again_until_it_is_dead() {
    let queues = queues("orders", QueueSettings::standard());
    send(&queues, "orders", &["good", "bad"], None);
    let function = Scripted::new(|event: &Value| {
        let records = event["Records"].as_array().unwrap();
        let bad = records.iter().find(|record| record["body"] == "bad");
        failures(&bad.map(|record| &record["messageId"]).into_iter().collect::<Vec<_>>())
    });
    let counts = Counts::default();
    mapping(&queues, "orders").run_until_empty(&function, &counts).await.unwrap();
    assert_eq!(function.bodies(), ["good", "bad", "bad", "bad"]);
    assert_eq!(queues.depth("dead").unwrap().total(), 1);
    assert_eq!(counts_of(&counts), [3, 4, 0]);
}

#[tokio::test(start_paused = true)]
async fn without_a_usable_answer_the_batch_comes_again_after_its_timeout() {
    let useless = [
        InvocationOutcome::Crashed,
        InvocationOutcome::TimedOut,
        InvocationOutcome::Response(Bytes::from_static(b"no JSON")),
        failures(&[&json!("not in the batch")]),
    ];
    for outcome in useless {
        let queues = queues("orders", QueueSettings::standard());
        send(&queues, "orders", &["a", "b"], None);
        let begun = Instant::now();
        let first = AtomicUsize::new(0);
        let function = Scripted::new(|_: &Value| match first.fetch_add(1, Ordering::SeqCst) {
            0 => outcome.clone(),
            _ => failures(&[]),
        });
        let counts = Counts::default();
        mapping(&queues, "orders").run_until_empty(&function, &counts).await.unwrap();
        assert_eq!(function.bodies(), ["a", "b", "a", "b"], "{outcome:?}");
        assert_eq!(counts_of(&counts), [2, 4, 1]);
        assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn batches_run_side_by_side_up_to_the_limit() {
    let queues = queues("orders", QueueSettings::standard());
    let bodies: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    send(&queues, "orders", &bodies.iter().map(String::as_str).collect::<Vec<_>>(), None);
    let function = Scripted::new(|_: &Value| failures(&[]));
    mapping(&queues, "orders").run_until_empty(&function, &Counts::default()).await.unwrap();
    assert_eq!(function.most_running.load(Ordering::SeqCst), 2);
    assert_eq!(function.bodies().into_iter().collect::<BTreeSet<_>>().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_fifo_group_waits_for_its_head_and_others_go_on() {
    let queues = queues("orders.fifo", QueueSettings::fifo());
    send(&queues, "orders.fifo", &["a1", "a2"], Some("a"));
    send(&queues, "orders.fifo", &["b1"], Some("b"));
    let first = AtomicUsize::new(0);
    let function = Scripted::new(|event: &Value| {
        let records = event["Records"].as_array().unwrap();
        let of_a = records.iter().filter(|record| record["attributes"]["MessageGroupId"] == "a");
        match first.fetch_add(1, Ordering::SeqCst) {
            0 => failures(&of_a.map(|record| &record["messageId"]).collect::<Vec<_>>()),
            _ => failures(&[]),
        }
    });
    let one_at_a_time = Mapping { batch_size: 10, concurrency: 1, ..mapping(&queues, "orders.fifo") };
    one_at_a_time.run_until_empty(&function, &Counts::default()).await.unwrap();
    assert_eq!(function.bodies(), ["a1", "a2", "b1", "a1", "a2"]);
}

#[tokio::test(start_paused = true)]
async fn the_event_is_what_lambda_makes_of_a_message() {
    let queues = queues("orders", QueueSettings::standard());
    send(&queues, "orders", &["hello"], None);
    let function = Scripted::new(|_: &Value| failures(&[]));
    mapping(&queues, "orders").run_until_empty(&function, &Counts::default()).await.unwrap();
    let record = function.events.lock().unwrap()[0]["Records"][0].clone();
    assert_eq!(record["md5OfBody"], "5d41402abc4b2a76b9719d911017c592");
    assert_eq!(record["eventSourceARN"], "arn:aws:sqs:us-east-1:000000000000:orders");
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "1");
    assert_eq!((&record["awsRegion"], &record["eventSource"]), (&json!("us-east-1"), &json!("aws:sqs")));
}
