//! What a record looks like as a span, in the words of the semantic conventions for messaging where they have one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer},
};
use opentelemetry_sdk::trace::SdkTracer;

use super::link::links;
use crate::{
    batch::Judged,
    charge::{Call, Whom},
    clock::Timestamp,
    decision::Decision,
};

/// Makes the span of a record and those of its calls. Nothing of the body is in them but the order's identifier.
pub(super) fn make(tracer: &SdkTracer, judged: &Judged, request_id: Option<&str>) {
    let queue = judged.record.queue.as_ref().map(|queue| queue.name());
    let name = queue.map_or_else(|| "process".to_owned(), |queue| format!("process {queue}"));
    let builder = SpanBuilder::from_name(name)
        .with_kind(SpanKind::Consumer)
        .with_start_time(instant(judged.began))
        .with_attributes(attributes(judged, queue, request_id))
        .with_links(links(&judged.record));
    let span = tracer.build_with_context(builder, &Context::new());
    let context = Context::new().with_span(span);
    for call in &judged.outcome.facts.calls {
        make_call(tracer, call, &context);
    }
    if let Some(status) = status(&judged.outcome.decision) {
        context.span().set_status(status);
    }
    context.span().end_with_timestamp(instant(judged.began.plus(judged.took)));
}

fn make_call(tracer: &SdkTracer, call: &Call, record: &Context) {
    let name = match call.whom {
        Whom::Ledger => "ledger",
        Whom::Provider => "provider",
    };
    let builder =
        SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_start_time(instant(call.began));
    let span = tracer.build_with_context(builder, record);
    Context::new().with_span(span).span().end_with_timestamp(instant(call.began.plus(call.took)));
}

fn attributes(judged: &Judged, queue: Option<&str>, request_id: Option<&str>) -> Vec<KeyValue> {
    let Judged { record, order, outcome, .. } = judged;
    let (decision, reason) = (outcome.decision.name(), outcome.decision.reason());
    let failed = (!outcome.decision.is_ack()).then(|| reason.clone());
    let mut attributes = vec![
        KeyValue::new("messaging.system", "aws_sqs"),
        KeyValue::new("messaging.operation.name", "process"),
        KeyValue::new("messaging.operation.type", "process"),
        KeyValue::new("charge_once.decision", decision),
        KeyValue::new("charge_once.reason", reason),
        KeyValue::new("charge_once.receive_count", i64::from(record.receive_count)),
    ];
    let text = |text: &str| Value::from(text.to_owned());
    let optional = [
        ("messaging.destination.name", queue.map(text)),
        ("messaging.message.id", record.message_id.as_ref().map(|id| text(id.as_str()))),
        ("faas.invocation_id", request_id.map(text)),
        ("error.type", failed.map(Value::from)),
        ("charge_once.order_id", order.as_ref().map(|order| text(order.id().as_str()))),
        ("charge_once.attempt", order.as_ref().map(|order| i64::from(order.attempt()).into())),
        (
            "charge_once.fence",
            outcome.facts.fence.and_then(|fence| i64::try_from(fence).ok()).map(Value::from),
        ),
        ("charge_once.charge_id", outcome.facts.charge_id.as_deref().map(text)),
    ];
    attributes.extend(optional.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key, value?))));
    attributes
}

/// Acknowledged records leave the status to the reader, as the conventions ask.
fn status(decision: &Decision) -> Option<Status> {
    match decision {
        Decision::Ack(_) => None,
        Decision::Retry { .. } | Decision::Poison(_) => Some(Status::error(decision.reason())),
    }
}

fn instant(timestamp: Timestamp) -> SystemTime {
    let millis = u64::try_from(timestamp.as_millis()).unwrap_or_default();
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}
