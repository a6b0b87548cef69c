//! From finished spans to the collector: kept until the shell says when there is time to send them.
//!
//! The SDK's own processors export from threads of theirs, or wait for the exporter in the middle of the work. In
//! Lambda the first never happens, because the environment is frozen after the answer; the second holds up orders.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Uri;
use opentelemetry::{Context, Key, trace::TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter as Export, SpanProcessor},
};

use super::http_client::OwnClient;
use crate::{gateway::Transport, telemetry::ErrorChain};

/// More spans do not wait; a worker that makes so many between two flushes has a collector that cannot keep up.
const MOST_WAITING: usize = 16_384;
/// Spans of one request, as the specification's batching exporter has by default.
const PER_REQUEST: usize = 512;

/// Makes spans, keeps them, sends them.
#[derive(Debug)]
pub(super) struct Pipeline {
    tracer: SdkTracer,
    finished: Finished,
    exporter: SpanExporter,
    warned: AtomicBool,
}

impl Pipeline {
    /// Headers, timeout, sampler and resource are read from the standard variables by the libraries.
    pub(super) fn new(
        endpoint: &Uri,
        service: &str,
        transport: Transport,
    ) -> Result<Self, ExporterBuildError> {
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(OwnClient(transport))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.to_string())
            .build()?;
        let resource = resource(service);
        exporter.set_resource(&resource);
        let finished = Finished::default();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_span_processor(finished.clone())
            .build();
        let tracer = provider.tracer("charge-once");
        Ok(Self { tracer, finished, exporter, warned: AtomicBool::new(false) })
    }

    pub(super) fn tracer(&self) -> &SdkTracer {
        &self.tracer
    }

    /// Sends what is finished; what does not get out in time is given up.
    pub(super) async fn flush(&self, within: Duration) {
        let Waiting { mut spans, dropped } = std::mem::take(&mut *self.finished.waiting());
        if dropped > 0 {
            self.warn_once(&format!("{dropped} spans were dropped, because {MOST_WAITING} waited already"));
        }
        let sent = tokio::time::timeout(within, async {
            while !spans.is_empty() {
                let rest = spans.split_off(spans.len().min(PER_REQUEST));
                self.exporter.export(std::mem::replace(&mut spans, rest)).await?;
            }
            OTelSdkResult::Ok(())
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.warn_once(&ErrorChain(&error).to_string()),
            Err(_elapsed) => self.warn_once("the collector did not answer in time"),
        }
    }

    /// One line for a process: a collector that is gone fails every time, and nobody's order depends on it.
    fn warn_once(&self, error: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(error, "spans could not be sent and are given up; this is said once");
        }
    }
}

/// What the standard variables say of this process, and the service's name if they leave it out.
fn resource(service: &str) -> Resource {
    let stated = Resource::builder().build();
    let name = stated.get(&Key::from_static_str("service.name"));
    match name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        true => stated,
        false => Resource::builder().with_service_name(service.to_owned()).build(),
    }
}

/// Finished spans that wait to be sent.
#[derive(Clone, Debug, Default)]
struct Finished(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<SpanData>,
    dropped: usize,
}

impl Finished {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanProcessor for Finished {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        let mut waiting = self.waiting();
        if waiting.spans.len() < MOST_WAITING {
            waiting.spans.push(span);
        } else {
            waiting.dropped = waiting.dropped.saturating_add(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}
