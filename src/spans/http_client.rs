//! The exporter's requests over the crate's own HTTP client, so that no second one is linked.

use std::{future::Future, pin::Pin, time::Duration};

use http_body_util::Full;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

use crate::{gateway::Transport, telemetry::ErrorChain};

/// Longest time for one request; a flush usually ends before.
const LONGEST: Duration = Duration::from_secs(10);

/// A client that logs why a request failed at `debug`: the exporter itself only says that it did.
#[derive(Debug)]
pub(super) struct OwnClient(pub(super) Transport);

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for OwnClient {
    // Written out, because the trait is made by a macro that nothing else here needs.
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Answering<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            self.0.send(request.map(Full::new), LONGEST).await.map_err(|error| {
                tracing::debug!(error = %ErrorChain(&error), "spans were not sent");
                error.into()
            })
        })
    }
}
