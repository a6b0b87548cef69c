//! Delivers a batch to one of the two functions as a queue would: what failed comes again, until it goes to the
//! dead-letter queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use charge_once::{
    clock::Clock,
    local::{
        answer::Reading,
        environment::Provider,
        log::RecordLine,
        runtime_api::InvocationOutcome,
        sample::freshened,
        stack::{Invocation, Stack, StackConfig},
    },
};
use serde_json::{Value, json};

use super::batch::{Batch, records};

/// The queue's `maxReceiveCount`.
const MAX_RECEIVES: usize = 4;
/// After a crash the queue's visibility timeout passes: longer than a lease, which lasts for the invocation and 5 s,
/// and is respected for 5 s more. The functions' clocks are the machine's.
const AFTER_A_CRASH: Duration = Duration::from_secs(17);

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Theirs,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    List,
    Error(String),
    Crashed,
    TimedOut,
    /// Lambda cannot read the answer.
    Unreadable(String),
}

/// One delivery.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) ending: Ending,
    /// By place in the event: whether the message stays in the queue.
    pub(super) failed: BTreeMap<usize, bool>,
    /// By place in the event: what our log says; theirs has no such lines.
    pub(super) lines: BTreeMap<usize, RecordLine>,
}

impl Round {
    /// The reason that our log gives for a message.
    pub(super) fn told(&self, place: usize) -> String {
        self.lines.get(&place).map(|line| line.text("reason")).unwrap_or_default()
    }
}

/// What came of a batch.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Of each event.
    pub(super) rounds: Vec<Vec<Round>>,
    /// By order: amount in minor units and currency of each charge.
    pub(super) charges: BTreeMap<String, Vec<String>>,
}

impl Seen {
    /// Every message that left the queue: its event, its place there, and the delivery that ended it.
    pub(super) fn acked(&self) -> Vec<(usize, usize, &Round)> {
        let mut acked = Vec::new();
        for (event, rounds) in self.rounds.iter().enumerate() {
            for round in rounds {
                let gone = round.failed.iter().filter(|(_, failed)| !**failed);
                acked.extend(gone.map(|(place, _)| (event, *place, round)));
            }
        }
        acked
    }
}

/// Delivers all events of `batch` on a fresh ledger and a fresh provider.
pub(super) async fn run(batch: &Batch, side: Side) -> Seen {
    let stack = Stack::start(config(batch, side)).await.unwrap();
    let mut seen = Seen::default();
    for event in &batch.events {
        let mut rounds: Vec<Round> = Vec::new();
        let mut left: Vec<usize> = (0..records(event).len()).collect();
        while rounds.len() < MAX_RECEIVES && (rounds.is_empty() || !left.is_empty()) {
            if rounds.last().is_some_and(|round| round.ending == Ending::Crashed) {
                tokio::time::sleep(AFTER_A_CRASH).await;
            }
            let delivered = delivery(event, &left, rounds.len());
            let first = seen.rounds.is_empty() && rounds.is_empty();
            let killed_at = batch.killed_at.as_deref().filter(|_order| first);
            let round = read(&delivered, &left, &invoke(&stack, &delivered, killed_at).await);
            left.retain(|place| round.failed[place]);
            rounds.push(round);
        }
        seen.rounds.push(rounds);
    }
    for charge in stack.charges() {
        let money = format!("{} {}", charge.amount_minor, charge.currency);
        seen.charges.entry(charge.order_id).or_default().push(money);
    }
    seen
}

fn config(batch: &Batch, side: Side) -> StackConfig {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bootstrap = match side {
        Side::Ours => PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        Side::Theirs => root.join("scripts/powertools"),
    };
    let settings: &[(&str, &str)] = match side {
        Side::Ours => &[("CHARGE_TIMEOUT", "2s"), ("LEASE_SECONDS", "5"), ("CONCURRENCY", batch.concurrency)],
        Side::Theirs => &[
            ("PROVIDER_TIMEOUT", "2"),
            ("VALIDATED_FIELDS", "[amount, currency]"),
            ("QUEUE_TYPE", if batch.is_fifo() { "fifo" } else { "standard" }),
        ],
    };
    StackConfig {
        bootstrap,
        provider: if side == Side::Ours && batch.ours_by_stripe { Provider::Stripe } else { Provider::Http },
        script: batch.script.clone(),
        data: None,
        log: None,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        timeout: batch.timeout,
        clock: Clock::system(),
    }
}

/// The messages of `event` that are left, as they are received for the next time.
fn delivery(event: &Value, left: &[usize], received: usize) -> Vec<u8> {
    let mut delivered = event.clone();
    if received > 0 {
        let mut again: Vec<Value> = left.iter().map(|place| records(event)[*place].clone()).collect();
        for record in &mut again {
            if let Some(attributes) = record.get_mut("attributes").and_then(Value::as_object_mut) {
                attributes.insert("ApproximateReceiveCount".to_owned(), json!((received + 1).to_string()));
            }
        }
        delivered["Records"] = json!(again);
    }
    freshened(delivered.to_string().as_bytes(), Clock::system().now())
}

async fn invoke(stack: &Stack, event: &[u8], killed_at: Option<&str>) -> Invocation {
    let invocation = stack.invoke(event.to_vec());
    let Some(order_id) = killed_at else { return invocation.await.unwrap() };
    let asked = stack.provider().until(|provider| {
        provider.requests().iter().any(|request| request.order_id.as_deref() == Some(order_id))
    });
    let kill = async {
        asked.await;
        stack.kill_function().await;
    };
    tokio::join!(invocation, kill).0.unwrap()
}

fn read(event: &[u8], left: &[usize], invocation: &Invocation) -> Round {
    let (ending, listed) = match (&invocation.outcome, invocation.reading(event)) {
        (InvocationOutcome::Error(error), _) => (Ending::Error(error.error_type.clone()), None),
        (InvocationOutcome::Crashed, _) => (Ending::Crashed, None),
        (InvocationOutcome::TimedOut, _) => (Ending::TimedOut, None),
        (InvocationOutcome::Response(_), Some(Reading::Partial(ids))) => (Ending::List, Some(ids)),
        (InvocationOutcome::Response(_), Some(Reading::Failure(why))) => {
            (Ending::Unreadable(why.to_string()), None)
        }
        (InvocationOutcome::Response(_), Some(Reading::Success) | None) => {
            (Ending::List, Some(BTreeSet::new()))
        }
    };
    let event: Value = serde_json::from_slice(event).unwrap();
    let id = |at: usize| event["Records"][at]["messageId"].as_str().unwrap_or_default();
    let is_failed = |at| listed.as_ref().is_none_or(|ids| ids.contains(id(at)));
    let line = |at: usize| {
        // A record without an id is told by its position.
        let (field, value) =
            if id(at).is_empty() { ("position", at.to_string()) } else { ("message_id", id(at).to_owned()) };
        invocation.records.iter().find(|line| line.text(field) == value).cloned()
    };
    let places = || left.iter().copied().enumerate();
    Round {
        ending,
        failed: places().map(|(at, place)| (place, is_failed(at))).collect(),
        lines: places().filter_map(|(at, place)| Some((place, line(at)?))).collect(),
    }
}
