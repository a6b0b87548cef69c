//! An OTLP/HTTP collector on loopback that keeps the spans it receives.

use std::sync::Arc;

use axum::{Router, body::Bytes, extract::State, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

/// The collector; it ends when it is dropped.
pub(crate) struct Collector {
    port: u16,
    bodies: Arc<watch::Sender<Vec<Bytes>>>,
    _serving: JoinSet<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let bodies = Arc::new(watch::Sender::new(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&bodies));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, bodies, _serving: serving }
    }

    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests' bodies so far.
    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.bodies.borrow().clone()
    }

    /// Every span so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.bodies().into_iter().map(|body| ExportTraceServiceRequest::decode(body).unwrap());
        let resources = requests.flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Waits until so many spans of records have come.
    pub(crate) async fn wait_for_records(&self, count: usize) -> Vec<Span> {
        let mut bodies = self.bodies.subscribe();
        loop {
            let mut records = self.spans();
            records.retain(|span| span.name.starts_with("process"));
            if records.len() >= count {
                return records;
            }
            bodies.changed().await.unwrap();
        }
    }
}

async fn take(State(bodies): State<Arc<watch::Sender<Vec<Bytes>>>>, body: Bytes) {
    bodies.send_modify(|bodies| bodies.push(body));
}

/// The value of a span's attribute, if it is text.
pub(crate) fn text(span: &Span, key: &str) -> String {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key);
    match attribute.and_then(|attribute| attribute.value.clone()?.value) {
        Some(Value::StringValue(text)) => text,
        _ => String::new(),
    }
}
