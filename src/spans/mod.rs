//! A span for each record, sent over OTLP (feature `otel`). In a build without the feature nothing is made or sent.
//!
//! A span is made once its record is decided about, from what is known then anyway: nothing is carried along while
//! an order is worked on, and a collector that is slow or gone cannot hold anything up.

#[cfg(feature = "otel")]
mod http_client;
#[cfg(feature = "otel")]
mod link;
#[cfg(feature = "otel")]
mod pipeline;
#[cfg(feature = "otel")]
mod span;
#[cfg(feature = "otel")]
#[cfg(test)]
mod tests;

use std::{future::Future, time::Duration};

use crate::batch::Judged;

/// Where the spans of records go: nowhere, unless there is a collector.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    #[cfg(feature = "otel")]
    pipeline: Option<std::sync::Arc<pipeline::Pipeline>>,
}

/// The collector cannot be used.
#[cfg(feature = "otel")]
#[derive(Debug, thiserror::Error)]
#[error("the exporter of spans cannot be built")]
pub struct SpansError(#[source] opentelemetry_otlp::ExporterBuildError);

impl Spans {
    /// Nothing is made and nothing is sent.
    pub fn off() -> Self {
        Self::default()
    }

    /// Spans are sent to the OTLP/HTTP collector at `endpoint`, path included. `service` names their source where
    /// the standard variables do not.
    ///
    /// # Errors
    /// The standard variables ask for something that this build has not, such as a compression.
    #[cfg(feature = "otel")]
    pub fn to(
        endpoint: &http::Uri,
        service: &str,
        transport: crate::gateway::Transport,
    ) -> Result<Self, SpansError> {
        let pipeline = pipeline::Pipeline::new(endpoint, service, transport).map_err(SpansError)?;
        Ok(Self { pipeline: Some(std::sync::Arc::new(pipeline)) })
    }

    /// Makes the span of a record, with the Lambda request that brought it.
    #[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "nothing is made"))]
    pub fn note(&self, judged: &Judged, request_id: Option<&str>) {
        #[cfg(feature = "otel")]
        if let Some(pipeline) = &self.pipeline {
            span::make(pipeline.tracer(), judged, request_id);
        }
    }

    /// Sends what was made. Spans that cannot be sent within `within` are given up; the first time, a line says so.
    #[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "nothing is sent"))]
    pub async fn flush(&self, within: Duration) {
        #[cfg(feature = "otel")]
        if let Some(pipeline) = &self.pipeline {
            pipeline.flush(within).await;
        }
    }

    /// Sends what was made, again and again, and once more when `stop` completes; each time within `every`.
    pub async fn flush_until(&self, stop: impl Future<Output = ()>, every: Duration) {
        tokio::pin!(stop);
        while tokio::time::timeout(every, &mut stop).await.is_err() {
            self.flush(every).await;
        }
        self.flush(every).await;
    }
}
