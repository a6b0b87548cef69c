//! Spans against collectors that answer, fail, or never answer.

use std::{
    io,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message;
use tokio::time::Instant;

use super::*;
use crate::{
    charge::{Call, Facts, Outcome, Whom},
    clock::{Clock, Timestamp},
    decision::{AckReason, Decision, PoisonReason, RetryReason},
    event,
    gateway::{GatewayError, GatewayErrorKind, Transport},
    order::{Order, OrderRules},
    telemetry,
};

const SECOND: Duration = Duration::from_secs(1);

type Received = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

fn spans(transport: Transport) -> Spans {
    Spans::to(&Uri::from_static("http://collector.test/v1/traces"), "shop", transport).unwrap()
}

/// A collector that takes everything.
fn collector() -> (Spans, Received) {
    let received = Received::default();
    let takes = Arc::clone(&received);
    let transport = Transport::from_fn(move |request: Request<Full<Bytes>>| {
        let takes = Arc::clone(&takes);
        Box::pin(async move {
            assert_eq!(request.headers()["content-type"], "application/x-protobuf");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            takes.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
            Ok(Response::new(Bytes::new()))
        })
    });
    (spans(transport), received)
}

fn all(received: &Received) -> Vec<Span> {
    let received = received.lock().unwrap();
    let resources = received.iter().flat_map(|request| &request.resource_spans);
    resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
}

fn judged(decision: Decision, calls: Vec<Call>) -> Judged {
    let event = r#"{"Records":[{"messageId":"m-1","body":"{}","eventSourceARN":"arn:aws:sqs:eu-west-1:1:orders",
        "attributes":{"AWSTraceHeader":"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8"}}]}"#;
    let rules = OrderRules { default_currency: None, max_amount_minor: 1000 };
    Judged {
        record: event::records(event).unwrap().remove(0),
        order: Order::parse(r#"{"order_id":"o-1","amount":1,"currency":"EUR"}"#, &rules).ok(),
        outcome: Outcome { decision, facts: Facts { fence: Some(2), calls, ..Facts::default() } },
        behind: None,
        began: Timestamp::from_millis(1_700_000_000_000),
        took: Duration::from_millis(70),
    }
}

fn charged() -> Judged {
    judged(Decision::Ack(AckReason::Charged), Vec::new())
}

/// Key and value of each attribute, as lines.
fn attributes(span: &Span) -> String {
    let line = |attribute: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        let value = match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::IntValue(number)) => number.to_string(),
            Some(_) | None => "neither text nor number".to_owned(),
        };
        format!("{}={value}\n", attribute.key)
    };
    span.attributes.iter().map(line).collect()
}

#[tokio::test]
async fn a_record_is_a_span_with_its_calls_below_it() {
    let (spans, received) = collector();
    let call = |whom, after: u64, took| Call {
        whom,
        began: charged().began.plus(Duration::from_millis(after)),
        took: Duration::from_millis(took),
    };
    let calls = vec![call(Whom::Ledger, 0, 5), call(Whom::Provider, 5, 60), call(Whom::Ledger, 65, 5)];
    spans.note(&judged(Decision::Ack(AckReason::Charged), calls), Some("r-1"));
    spans.flush(SECOND).await;

    let all = all(&received);
    let names: Vec<&str> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["ledger", "provider", "ledger", "process orders"]);
    let record = &all[3];
    assert!(all[..3].iter().all(|it| it.parent_span_id == record.span_id && it.trace_id == record.trace_id));
    assert_eq!((record.kind, record.parent_span_id.len(), record.status.as_ref().unwrap().code), (5, 0, 0));
    assert_eq!(record.start_time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!(record.end_time_unix_nano - record.start_time_unix_nano, 70_000_000);
    assert_eq!(all[1].end_time_unix_nano - all[1].start_time_unix_nano, 60_000_000);
    assert_eq!(record.links.len(), 1);
    insta::assert_snapshot!(attributes(record), @r"
    messaging.system=aws_sqs
    messaging.operation.name=process
    messaging.operation.type=process
    charge_once.decision=ack
    charge_once.reason=CHARGED
    charge_once.receive_count=1
    messaging.destination.name=orders
    messaging.message.id=m-1
    faas.invocation_id=r-1
    charge_once.order_id=o-1
    charge_once.attempt=1
    charge_once.fence=2
    ");
}

#[tokio::test]
async fn what_is_not_acknowledged_is_an_error_with_its_reason() {
    let (spans, received) = collector();
    spans.note(&judged(Decision::retry(RetryReason::Store), Vec::new()), None);
    spans.note(&judged(Decision::Poison(PoisonReason::Mismatch), Vec::new()), None);
    spans.flush(SECOND).await;
    let statuses: Vec<_> =
        all(&received).into_iter().map(|span| span.status.unwrap()).map(|it| (it.code, it.message)).collect();
    assert_eq!(statuses, [(2, "STORE_UNAVAILABLE".to_owned()), (2, "MISMATCH".to_owned())]);
}

#[tokio::test]
async fn many_spans_go_in_several_requests_and_the_source_is_named() {
    let (spans, received) = collector();
    (0..1100).for_each(|_| spans.note(&charged(), None));
    spans.flush(SECOND).await;
    spans.flush(SECOND).await;
    let requests = received.lock().unwrap().len();
    assert_eq!((requests, all(&received).len()), (3, 1100));
    let resource = received.lock().unwrap()[0].resource_spans[0].resource.clone().unwrap();
    let name = resource.attributes.iter().find(|it| it.key == "service.name").unwrap().value.clone();
    assert_eq!(name.unwrap().value, Some(Value::StringValue("shop".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn the_last_spans_are_sent_when_the_work_ends() {
    let (spans, received) = collector();
    spans.note(&charged(), None);
    let work = async {
        tokio::time::sleep(3 * SECOND / 2).await;
        assert_eq!(all(&received).len(), 1, "sent while the work went on");
        spans.note(&charged(), None);
    };
    spans.flush_until(work, SECOND).await;
    assert_eq!(all(&received).len(), 2);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long three flushes with a span each take over this transport, and what they log.
async fn three_flushes(transport: Transport) -> (Duration, Vec<String>) {
    let log = Log::default();
    let level = tracing::level_filters::LevelFilter::INFO;
    let _guard = tracing::subscriber::set_default(telemetry::subscriber(level, Clock::system(), log.clone()));
    let (spans, began) = (spans(transport), Instant::now());
    for _ in 0..3 {
        spans.note(&charged(), None);
        spans.flush(Duration::from_millis(200)).await;
    }
    let lines = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (began.elapsed(), lines.lines().map(str::to_owned).collect())
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_silent_costs_the_time_allowed_and_one_line() {
    let (took, log) = three_flushes(Transport::from_fn(|_| Box::pin(std::future::pending()))).await;
    assert_eq!(took, Duration::from_millis(600));
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(log[0].contains("did not answer in time"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_gone_or_refuses_costs_one_line() {
    let gone = Transport::from_fn(|_| {
        Box::pin(async { Err(GatewayError::new(GatewayErrorKind::NotSent, "no connection")) })
    });
    let refuses = Transport::from_fn(|_| {
        Box::pin(async { Ok(Response::builder().status(400).body(Bytes::new()).unwrap()) })
    });
    for transport in [gone, refuses] {
        let (_, log) = three_flushes(transport).await;
        assert_eq!(log.len(), 1, "{log:?}");
        assert!(log[0].contains("spans could not be sent"), "{log:?}");
    }
}

#[tokio::test]
async fn without_a_collector_nothing_is_made() {
    let spans = Spans::off();
    spans.note(&charged(), None);
    spans.flush(SECOND).await;
    assert!(spans.pipeline.is_none());
}
