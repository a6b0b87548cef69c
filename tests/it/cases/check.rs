//! Compares what happened with what a case expects.

use std::collections::{BTreeMap, BTreeSet};

use charge_once::local::{
    dynamodb::Row, log::RecordLine, runtime_api::InvocationOutcome, sqs_endpoint::VisibilityCall,
    stack::Invocation,
};
use serde_json::Value;

use super::case::{Charge, Ending, Expect};

/// What happened in a case.
pub(super) struct Observed {
    pub(super) event: Vec<u8>,
    /// The last delivery.
    pub(super) invocation: Invocation,
    /// Of all deliveries.
    pub(super) log: Vec<String>,
    /// Of all deliveries.
    pub(super) charges: Vec<Charge>,
    pub(super) ledger: Vec<Row>,
    /// `GET /bucket/key` of every request to S3.
    pub(super) s3_requests: Vec<String>,
    /// Original messageId and reason of every message in a dead-letter queue.
    pub(super) dead_letters: BTreeMap<String, String>,
}

/// Everything that is not as expected.
pub(super) fn problems(expect: &Expect, seen: &Observed) -> Vec<String> {
    let mut problems = Vec::new();
    for problem in [
        ending(expect, seen),
        failures(expect, seen),
        decisions(expect, seen),
        charges(expect, seen),
        visibility(expect, seen),
        texts(expect, seen),
        records(expect, seen),
        s3(expect, seen),
        dead_letters(expect, seen),
    ] {
        problems.extend(problem);
    }
    if !problems.is_empty() {
        problems.push(format!("outcome: {:?}", seen.invocation.outcome));
        problems.extend(seen.log.iter().map(|line| format!("log: {line}")));
    }
    problems
}

fn ending(expect: &Expect, seen: &Observed) -> Vec<String> {
    let ended = match seen.invocation.outcome {
        InvocationOutcome::Response(_) => Some(Ending::Ok),
        InvocationOutcome::Error(_) => Some(Ending::Error),
        InvocationOutcome::Crashed | InvocationOutcome::TimedOut => None,
    };
    let mut problems = Vec::new();
    for wanted in [expect.invocation, expect.local_tool].into_iter().flatten() {
        if ended != Some(wanted) {
            problems.push(format!("the invocation must end as {wanted:?}"));
        }
    }
    if let InvocationOutcome::Error(error) = &seen.invocation.outcome
        && error.error_message.is_empty()
    {
        problems.push("the error has no message".into());
    }
    problems
}

fn failures(expect: &Expect, seen: &Observed) -> Vec<String> {
    let Some(wanted) = &expect.failures else { return Vec::new() };
    let InvocationOutcome::Response(answer) = &seen.invocation.outcome else {
        return vec!["the function gave no list of failures".into()];
    };
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let listed = answer["batchItemFailures"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut listed: Vec<&str> = listed.iter().filter_map(|item| item["itemIdentifier"].as_str()).collect();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    listed.sort_unstable();
    wanted.sort_unstable();
    if listed == wanted { Vec::new() } else { vec![format!("failures {listed:?}, must be {wanted:?}")] }
}

fn decisions(expect: &Expect, seen: &Observed) -> Vec<String> {
    let lines = |message_id: &str| -> Vec<&RecordLine> {
        seen.invocation.records.iter().filter(|line| line.text("message_id") == message_id).collect()
    };
    let mut problems = Vec::new();
    for (message_id, wanted) in &expect.decisions {
        let decisions: BTreeSet<String> =
            lines(message_id).iter().map(|line| line.text("decision")).collect();
        if decisions != BTreeSet::from([wanted.clone()]) {
            problems.push(format!("decisions of {message_id} are {decisions:?}, must be {wanted}"));
        }
    }
    for (message_id, wanted) in &expect.reasons {
        let reasons: Vec<String> = lines(message_id).iter().map(|line| line.text("reason")).collect();
        if reasons.is_empty() || !reasons.iter().all(|reason| reason.starts_with(wanted.as_str())) {
            problems.push(format!("reasons of {message_id} are {reasons:?}, must begin with {wanted}"));
        }
    }
    problems
}

fn charges(expect: &Expect, seen: &Observed) -> Vec<String> {
    let mut problems = Vec::new();
    let sorted = |charges: &[Charge]| {
        let mut charges = charges.to_vec();
        charges.sort();
        charges
    };
    if let Some(wanted) = &expect.charges {
        let surplus: Vec<Charge> =
            seen.charges.iter().filter(|charge| !expect.optional.contains(charge)).cloned().collect();
        if sorted(&surplus) != sorted(wanted) {
            problems.push(format!("charges {surplus:?}, must be {wanted:?}"));
        }
    }
    for wanted in &expect.charges_include {
        if !seen.charges.contains(wanted) {
            problems.push(format!("{wanted:?} was not charged"));
        }
    }
    for wanted in &expect.charges_exact_or_none {
        let other = seen.charges.iter().find(|it| it.order_id == wanted.order_id && *it != wanted);
        problems.extend(other.map(|other| format!("{other:?} was charged, must be {wanted:?} or nothing")));
    }
    if let Some(most) = expect.max_charges
        && seen.charges.len() > most
    {
        problems.push(format!("{} charges, at most {most} allowed", seen.charges.len()));
    }
    for order_id in &expect.never_charged {
        if seen.charges.iter().any(|charge| charge.order_id == *order_id) {
            problems.push(format!("{order_id} was charged"));
        }
    }
    problems.extend(twice(&seen.charges));
    problems
}

/// The promise that every case checks, whatever else it is about.
fn twice(charges: &[Charge]) -> Vec<String> {
    let mut counts = BTreeMap::<&str, u32>::new();
    for charge in charges {
        *counts.entry(&charge.order_id).or_default() += 1;
    }
    counts.retain(|_, count| *count > 1);
    counts.iter().map(|(order_id, count)| format!("{order_id} was charged {count} times")).collect()
}

fn visibility(expect: &Expect, seen: &Observed) -> Vec<String> {
    let changes = &seen.invocation.visibility;
    let mut problems = Vec::new();
    if let Some((least, most)) = expect.visibility_range {
        let outside = changes.iter().filter(|change| !(least..=most).contains(&change.seconds));
        problems.extend(outside.map(|change| format!("{change:?} is outside {least}..={most}")));
    }
    if let Some(url) = &expect.queue_url {
        if changes.is_empty() {
            problems.push("no visibility was changed".into());
        }
        let elsewhere = changes.iter().filter(|change| change.queue_url != *url);
        problems.extend(elsewhere.map(|change| format!("{change:?} must go to {url}")));
    }
    let handles = receipt_handles(&seen.event);
    for (message_id, bounds) in &expect.visibility {
        let Some(handle) = handles.get(message_id) else {
            problems.push(format!("the event has no message {message_id}"));
            continue;
        };
        let of_message: Vec<&VisibilityCall> =
            changes.iter().filter(|change| change.receipt_handle == *handle).collect();
        let right = match bounds {
            None => of_message.is_empty(),
            Some((least, most)) => {
                of_message.len() == 1 && of_message.iter().all(|it| (*least..=*most).contains(&it.seconds))
            }
        };
        if !right {
            problems.push(format!("visibility of {message_id} is {of_message:?}, must be {bounds:?}"));
        }
    }
    problems
}

fn receipt_handles(event: &[u8]) -> BTreeMap<String, String> {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let records = event["Records"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |record: &Value, name: &str| record[name].as_str().map(str::to_owned);
    records
        .iter()
        .filter_map(|record| Some((text(record, "messageId")?, text(record, "receiptHandle")?)))
        .collect()
}

fn texts(expect: &Expect, seen: &Observed) -> Vec<String> {
    let answer = match &seen.invocation.outcome {
        InvocationOutcome::Response(answer) => String::from_utf8_lossy(answer).into_owned(),
        InvocationOutcome::Error(error) => error.error_message.clone(),
        InvocationOutcome::Crashed | InvocationOutcome::TimedOut => String::new(),
    };
    let compact: String = answer.split_whitespace().collect();
    let mut problems = Vec::new();
    for text in expect.must_not_contain.iter() {
        if answer.contains(text) || compact.contains(text) {
            problems.push(format!("the answer contains {text:?}"));
        }
    }
    for text in expect.logs_must_not_contain.iter() {
        let lines = seen.log.iter().filter(|line| line.contains(text));
        problems.extend(lines.map(|line| format!("a log line contains {text:?}: {line}")));
    }
    problems
}

fn records(expect: &Expect, seen: &Observed) -> Vec<String> {
    let rows: BTreeMap<String, &Row> =
        seen.ledger.iter().filter_map(|row| Some((row.get("pk")?.as_str()?.to_owned(), row))).collect();
    let mut problems = Vec::new();
    for wanted in &expect.records_after {
        let pk = wanted["pk"].as_str().unwrap_or_default();
        let Some(row) = rows.get(pk) else {
            problems.push(format!("the ledger has no {pk}; it has {:?}", rows.keys()));
            continue;
        };
        for (name, value) in wanted.as_object().into_iter().flatten() {
            // `null` says that the attribute must be absent.
            let found = row.get(name).unwrap_or(&Value::Null);
            if found != value {
                problems.push(format!("{pk}: {name} is {found}, must be {value}"));
            }
        }
    }
    problems
}

fn s3(expect: &Expect, seen: &Observed) -> Vec<String> {
    let changes = seen.s3_requests.iter().filter(|request| !request.starts_with("GET "));
    let mut problems: Vec<String> = changes.map(|request| format!("S3 was asked to {request}")).collect();
    if let Some(count) = expect.s3_requests
        && seen.s3_requests.len() != count
    {
        problems.push(format!("requests to S3 are {:?}, must be {count}", seen.s3_requests));
    }
    problems
}

fn dead_letters(expect: &Expect, seen: &Observed) -> Vec<String> {
    let Some(wanted) = &expect.dead_letters else { return Vec::new() };
    let alike = wanted.len() == seen.dead_letters.len()
        && wanted.iter().all(|(id, reason)| {
            seen.dead_letters.get(id).is_some_and(|found| found.starts_with(reason.as_str()))
        });
    if alike { Vec::new() } else { vec![format!("dead letters {:?}, must be {wanted:?}", seen.dead_letters)] }
}
