//! Spans from the real binaries, as a collector receives them; and a collector that is not there.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        stack::{Invocation, Stack, StackConfig},
        worker_process::WorkerCommand,
    },
    queue::{Outgoing, memory::QueueSettings},
};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::collector::{Collector, text};

const MAX_WAIT: Duration = Duration::from_secs(60);
const TRACE: &str = "5759e988bd862e3fe1be46a994272793";
const OTHER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn config(endpoint: Option<&str>) -> StackConfig {
    let mut settings = BTreeMap::new();
    if let Some(endpoint) = endpoint {
        settings.insert("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), endpoint.to_owned());
        settings.insert("OTEL_EXPORTER_OTLP_HEADERS".to_owned(), "x-key=hush".to_owned());
    }
    StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        script: Script::default(),
        data: None,
        log: None,
        settings,
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    }
}

fn order(id: &str, amount: i64) -> String {
    json!({"order_id": id, "amount": amount, "currency": "EUR", "customer": "cus_hush"}).to_string()
}

/// A good order with both headers, a good one with a broken header, one that is poison, and no JSON at all.
fn event() -> Vec<u8> {
    let record = |number: usize, body: String, trace_header: &str, traceparent: &str| {
        json!({
            "messageId": format!("m-{number}"),
            "receiptHandle": format!("rh-{number}"),
            "body": body,
            "attributes": {"ApproximateReceiveCount": "1", "AWSTraceHeader": trace_header},
            "messageAttributes": {"traceparent": {"stringValue": traceparent, "dataType": "String"}},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
        })
    };
    let xray = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let w3c = format!("00-{OTHER_TRACE}-00f067aa0ba902b7-01");
    let records = [
        record(1, order("o-span-1", 5), xray, &w3c),
        record(2, order("o-span-2", 5), "Root=1-x", "00-x"),
        record(3, order("o-span-3", -5), xray, "00-x"),
        record(4, "not JSON, 4242424242424242".to_owned(), "", &w3c),
    ];
    json!({"Records": records}).to_string().into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a collector shows of a record: message, decision, reason, and the traces it is linked to.
fn shown(span: &Span) -> (String, String, String, Vec<String>) {
    let traces = span.links.iter().map(|link| hex(&link.trace_id)).collect();
    (
        text(span, "messaging.message.id"),
        text(span, "charge_once.decision"),
        text(span, "charge_once.reason"),
        traces,
    )
}

#[tokio::test]
async fn every_record_is_a_span_that_has_come_when_the_answer_has() {
    let collector = Collector::start().await;
    let stack = Stack::start(config(Some(&collector.endpoint()))).await.unwrap();
    stack.invoke(event()).await.unwrap();

    let spans = collector.spans();
    let records: Vec<&Span> = spans.iter().filter(|span| span.name == "process orders").collect();
    let row = |id: &str, decision: &str, reason: &str, traces: &[&str]| {
        let traces = traces.iter().map(|trace| (*trace).to_owned()).collect();
        (id.to_owned(), decision.to_owned(), reason.to_owned(), traces)
    };
    let expected = [
        row("m-1", "ack", "CHARGED", &[TRACE, OTHER_TRACE]),
        row("m-2", "ack", "CHARGED", &[]),
        row("m-3", "poison", "AMOUNT_NOT_POSITIVE", &[TRACE]),
        row("m-4", "poison", "BODY_NOT_JSON", &[OTHER_TRACE]),
    ];
    assert_eq!(records.iter().map(|span| shown(span)).collect::<Vec<_>>(), expected);
    assert_eq!(hex(&records[0].links[0].span_id), "53995c3f42cd8ad8");

    let calls = |parent: &Span| {
        let below = spans.iter().filter(|span| span.parent_span_id == parent.span_id);
        below.map(|span| span.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(calls(records[0]), ["ledger", "provider", "ledger"]);
    assert_eq!(calls(records[3]), [""; 0]);
    for hushed in ["hush", "4242424242424242", "sk_test"] {
        let all = collector.bodies().concat();
        assert!(!String::from_utf8_lossy(&all).contains(hushed), "{hushed} was sent");
    }
}

fn decisions(invocation: &Invocation) -> Vec<(String, String)> {
    invocation.records.iter().map(|line| (line.text("message_id"), line.text("reason"))).collect()
}

fn warnings(invocation: &Invocation) -> usize {
    invocation.log.iter().filter(|line| line.contains("spans could not be sent")).count()
}

#[tokio::test]
async fn a_collector_that_is_gone_or_silent_changes_no_decision() {
    let usual = Stack::start(config(None)).await.unwrap().invoke(event()).await.unwrap();
    assert_eq!((decisions(&usual).len(), warnings(&usual)), (4, 0));

    // Nobody accepts from the second; a connection to it stays without an answer.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let endpoints = [address(&gone), address(&silent)];
    drop(gone);
    for endpoint in endpoints {
        let stack = Stack::start(config(Some(&endpoint))).await.unwrap();
        let first = stack.invoke(event()).await.unwrap();
        let again = stack.invoke(event()).await.unwrap();
        assert_eq!((decisions(&first), &first.outcome), (decisions(&usual), &usual.outcome));
        assert_eq!(first.charges.len(), 2);
        assert_eq!((warnings(&first), warnings(&again)), (1, 0), "{:?} {:?}", first.log, again.log);
    }
}

#[tokio::test]
async fn the_worker_sends_its_spans_while_it_works() {
    let collector = Collector::start().await;
    let stack = Stack::without_function(config(Some(&collector.endpoint()))).await.unwrap();
    stack.queues().create("orders", QueueSettings::standard()).unwrap();
    for number in 0..3 {
        let body = order(&format!("o-worker-{number}"), 7);
        stack.queues().send_one("orders", Outgoing { body, ..Outgoing::default() }).unwrap();
    }
    let command = WorkerCommand {
        charge_once: PathBuf::from(env!("CARGO_BIN_EXE_charge-once")),
        queue: "orders",
        loops: 1,
        visibility: Duration::from_secs(30),
    };
    let mut worker = command.start(&stack).unwrap();
    let spans = tokio::time::timeout(MAX_WAIT, collector.wait_for_records(3)).await.unwrap();
    assert!(spans.iter().all(|span| shown(span).2 == "CHARGED"), "{spans:?}");
    worker.kill().await.unwrap();
}

/// A bad address stops the start with the variable's name.
#[tokio::test]
async fn an_address_that_is_none_stops_the_start() {
    let error = Stack::start(config(Some("collector:4318"))).await.unwrap_err();
    let error = charge_once::telemetry::ErrorChain(&error).to_string();
    assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{error}");
}
