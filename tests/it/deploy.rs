//! What the documents offer beside the template: the sketches for CDK and Terraform keep its invariants, and the
//! dashboard for Grafana asks for metrics that exist, and the image is built of what is said.

#![expect(clippy::unwrap_used, reason = "a document that cannot be read fails the test")]

use std::{collections::BTreeSet, path::Path};

use charge_once::{clock::Clock, worker::Monitor};
use serde_json::Value;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The first code block of `docs/deploy.md` in that language, with single spaces only.
fn sketch(language: &str) -> String {
    let document = read("docs/deploy.md");
    let block = document.split(&format!("```{language}\n")).nth(1).unwrap();
    block.split("```").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_keeps(sketch: &str, must: &[&str]) {
    for text in must {
        assert!(sketch.contains(text), "{text} is missing");
    }
    for never in
        ["dynamodb:DeleteItem", "filter", "reserved", "sqs:SendMessage", "'*'", "resources = [\"*\"]"]
    {
        assert!(!sketch.contains(never), "{never}");
    }
    let quotes = sketch.replace('\'', "\"");
    let actions = ["Receive", "Delete", "ChangeMessageVisibility", "UpdateItem", "GetItem", "GetSecretValue"];
    for action in actions {
        assert!(
            quotes.contains(&format!("{action}\"")) || quotes.contains(&format!("{action}Message\"")),
            "{action}"
        );
    }
}

#[test]
fn the_cdk_sketch_keeps_the_invariants() {
    assert_keeps(
        &sketch("typescript"),
        &[
            "visibilityTimeout: Duration.seconds(6 * FUNCTION_TIMEOUT.toSeconds())",
            "timeout: FUNCTION_TIMEOUT",
            "maxReceiveCount: MAX_RECEIVE_COUNT",
            "MAX_RECEIVE_COUNT: String(MAX_RECEIVE_COUNT)",
            "MAX_RECEIVE_COUNT = 10",
            "retentionPeriod: Duration.days(14)",
            "functionResponseTypes: ['ReportBatchItemFailures']",
            "maximumConcurrency: 10",
            "timeToLiveAttribute: 'expires_at'",
            "pointInTimeRecoveryEnabled: true",
            "deletionProtection: true",
            "enforceSSL: true",
            "indexName: 'attention'",
        ],
    );
    assert_eq!(sketch("typescript").matches("removalPolicy: RemovalPolicy.RETAIN").count(), 3);
}

#[test]
fn the_terraform_sketch_keeps_the_invariants() {
    assert_keeps(
        &sketch("hcl"),
        &[
            "visibility_timeout_seconds = 6 * local.function_timeout",
            "timeout = local.function_timeout",
            "maxReceiveCount = local.max_receive_count",
            "MAX_RECEIVE_COUNT = tostring(local.max_receive_count)",
            "max_receive_count = 10",
            "message_retention_seconds = 1209600",
            "function_response_types = [\"ReportBatchItemFailures\"]",
            "maximum_concurrency = 10",
            "ttl { attribute_name = \"expires_at\" enabled = true }",
            "point_in_time_recovery { enabled = true }",
            "deletion_protection_enabled = true",
            "aws:SecureTransport",
            "name = \"attention\"",
        ],
    );
    let hcl = sketch("hcl");
    assert_eq!(hcl.matches("prevent_destroy = true").count(), 3);
    assert_eq!(hcl.matches('{').count(), hcl.matches('}').count());
}

/// Settings that a sketch gives are settings.
#[test]
fn the_sketches_set_only_what_is_read() {
    let known: BTreeSet<&str> = charge_once::config::SETTINGS.iter().map(|setting| setting.name).collect();
    for (language, start) in [("typescript", "environment: {"), ("hcl", "variables = {")] {
        let sketch = sketch(language);
        let variables = sketch.split(start).nth(1).unwrap().split('}').next().unwrap().to_owned();
        let is_name =
            |word: &&str| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let words = variables.split([' ', ':', ',', '(', ')']).filter(is_name);
        let set: BTreeSet<&str> = words.collect();
        assert!(set.is_subset(&known), "{:?}", set.difference(&known));
        assert!(set.contains("LEDGER_TABLE") && set.contains("MAX_RECEIVE_COUNT"), "{set:?}");
    }
}

/// Every text of a JSON document.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(list) => list.iter().for_each(|value| texts(value, found)),
        Value::Object(members) => members.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_the_worker_has() {
    let metrics = Monitor::new(Clock::system()).to_prometheus();
    let exposed: BTreeSet<&str> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let dashboard: Value = serde_json::from_str(&read("docs/grafana-worker.json")).unwrap();
    let mut all = Vec::new();
    texts(&dashboard, &mut all);
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = all.iter().flat_map(|text| text.split(|c: char| !is_letter(c)));
    let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("charge_once_")).collect();
    assert!(asked.is_subset(&exposed), "{:?}", asked.difference(&exposed));
    for needed in [
        "charged_total",
        "duplicate_total",
        "retried_total",
        "poisoned_total",
        "provider_latency_seconds_sum",
    ] {
        assert!(asked.contains(format!("charge_once_{needed}").as_str()), "{needed}");
    }
    assert!(all.contains(&"ApproximateNumberOfMessagesVisible"), "the backlog");

    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    assert!(panels.iter().all(|panel| !panel["targets"].as_array().unwrap().is_empty()));
}

/// The last `ARG` of a name wins, so a second one would build something else than the page about the worker says.
#[test]
fn the_image_holds_the_command_line_alone_unless_asked() {
    let file = read("Dockerfile");
    let arguments: Vec<&str> = file.lines().filter(|line| line.starts_with("ARG ")).collect();
    assert_eq!(arguments, ["ARG FEATURES=cli"]);
}
