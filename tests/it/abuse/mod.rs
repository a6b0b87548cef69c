//! What a hostile producer, a broken provider, a failing store and a failing queue do to the real binary: in each case
//! the decision is the right one, the log says what happened, and whatever was not charged stays in the queue.
//!
//! `make abuse` prints the time and memory of each case; no test depends on them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests that print what they measured"
)]

mod events;
mod gateways;
mod logs;
mod server;
mod stores;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        runtime_api::InvocationOutcome,
        stack::{Invocation, Stack, StackConfig},
    },
};
use serde_json::{Value, json};

/// What the function is given in every case.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One invocation under abuse, and what is to be looked at afterwards.
struct Abused {
    name: String,
    stack: Stack,
    invocation: Invocation,
}

/// Starts the function with these settings and hands it one event.
async fn abuse(name: &str, provider: Provider, settings: &[(&str, &str)], event: String) -> Abused {
    let settings: BTreeMap<_, _> = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider,
        script: Script::default(),
        data: None,
        log: None,
        settings,
        timeout: TIMEOUT,
        clock: Clock::system(),
    };
    let stack = Stack::start(config).await.unwrap();
    let begun = Instant::now();
    let invocation = stack.invoke(event.into_bytes()).await.unwrap();
    let took = begun.elapsed();
    let name = name.to_owned();
    let memory = stack.peak_memory().await.unwrap_or_default() / 1024 / 1024;
    println!("| {name} | {} | {} ms | {memory} MiB |", summary(&invocation), took.as_millis());
    Abused { name, stack, invocation }
}

/// How often which reason was decided.
fn summary(invocation: &Invocation) -> String {
    let mut reasons = BTreeMap::<String, usize>::new();
    for record in &invocation.records {
        *reasons.entry(format!("{} {}", record.text("decision"), record.text("reason"))).or_default() += 1;
    }
    let counted = reasons
        .iter()
        .map(|(reason, count)| if *count == 1 { reason.clone() } else { format!("{count} x {reason}") });
    match &invocation.outcome {
        InvocationOutcome::Error(error) => format!("invocation fails: {}", error.error_type),
        InvocationOutcome::Response(_) | InvocationOutcome::Crashed | InvocationOutcome::TimedOut => {
            counted.collect::<Vec<_>>().join(", ")
        }
    }
}

impl Abused {
    /// The records that the answer keeps in the queue.
    fn kept(&self) -> usize {
        let InvocationOutcome::Response(answer) = &self.invocation.outcome else {
            panic!("{}: {:?}", self.name, self.invocation.outcome)
        };
        let answer: Value = serde_json::from_slice(answer).unwrap();
        answer["batchItemFailures"].as_array().unwrap().len()
    }

    /// How many records were decided so.
    fn decided(&self, decision: &str, reason: &str) -> usize {
        let so = |record: &&_| {
            let record: &charge_once::local::log::RecordLine = record;
            record.text("decision") == decision && record.text("reason").starts_with(reason)
        };
        self.invocation.records.iter().filter(so).count()
    }

    /// One record, decided so and kept unless it was acknowledged; whatever was not charged is not lost.
    fn assert_one(&self, decision: &str, reason: &str) {
        assert_eq!(self.decided(decision, reason), 1, "{}: {:#?}", self.name, self.invocation.log);
        assert_eq!(self.kept(), usize::from(decision != "ack"), "{}", self.name);
    }

    /// Every line is one JSON object: nothing from outside broke it.
    fn assert_log_is_whole(&self) {
        for line in &self.invocation.log {
            assert!(
                serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()),
                "{}: {line}",
                self.name
            );
        }
    }

    fn assert_logged(&self, text: &str) {
        let lines = &self.invocation.log;
        assert!(
            lines.iter().any(|line| line.contains(text)),
            "{}: no line says {text}: {lines:#?}",
            self.name
        );
    }
}

fn order(number: usize) -> String {
    json!({"order_id": format!("o-{number}"), "amount": 49.90, "currency": "EUR", "payment_method": "pm_card_visa"})
        .to_string()
}

/// The event that brings these bodies.
fn event(bodies: impl IntoIterator<Item = String>) -> String {
    let now = Clock::system().now().as_millis().to_string();
    let record = |(number, body)| {
        json!({
            "messageId": format!("m-{number}"),
            "receiptHandle": format!("rh-{number}"),
            "body": body,
            "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": now},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
        })
    };
    json!({"Records": bodies.into_iter().enumerate().map(record).collect::<Vec<_>>()}).to_string()
}
