//! HTTP to the provider: one pool, and a clear line between "never sent" and "anything may have happened".

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use super::{GatewayError, GatewayErrorKind};

/// Longest time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest body that is read.
const BODY_LIMIT: usize = 1024 * 1024;
/// How long an idle connection is kept; providers close theirs after about a minute.
const IDLE: Duration = Duration::from_secs(30);

/// What silence proves.
const SILENT: GatewayErrorKind = GatewayErrorKind::Unknown { server_error: false };

/// A pooled HTTP/1.1 client that follows no redirects and reads at most 1 MiB of a body. Cheap to clone.
#[derive(Clone)]
pub struct Transport(Way);

#[derive(Clone)]
enum Way {
    Pool(Box<Pool>),
    Function(Arc<dyn Fn(Request<Full<Bytes>>) -> Answering + Send + Sync>),
}

type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An answer on its way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response<Bytes>, GatewayError>> + Send>>;

impl Transport {
    /// A client with the public roots, TLS 1.2 at least. The TLS stack is the one of the AWS SDK.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults.
    pub fn new() -> Result<Self, rustls::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https);
        Ok(Self(Way::Pool(Box::new(client))))
    }

    /// A transport without sockets, for tests and simulations that decide what becomes of each request.
    pub fn from_fn(send: impl Fn(Request<Full<Bytes>>) -> Answering + Send + Sync + 'static) -> Self {
        Self(Way::Function(Arc::new(send)))
    }

    /// Sends a request and reads the whole answer, all within `within`.
    ///
    /// # Errors
    /// [`GatewayErrorKind::NotSent`] if no connection came about; [`GatewayErrorKind::Unknown`] for everything
    /// after that: the provider may have acted on what it had received.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Bytes>, GatewayError> {
        let exchange = async {
            match &self.0 {
                Way::Pool(client) => exchange(client, request).await,
                Way::Function(send) => send(request).await,
            }
        };
        tokio::time::timeout(within, exchange)
            .await
            .unwrap_or_else(|_elapsed| Err(GatewayError::new(SILENT, "no answer in time")))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

async fn exchange(client: &Pool, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, GatewayError> {
    let response = client.request(request).await.map_err(|error| {
        let (kind, context) = match error.is_connect() {
            true => (GatewayErrorKind::NotSent, "no connection"),
            false => (SILENT, "the connection broke"),
        };
        GatewayError { source: Some(Box::new(error)), ..GatewayError::new(kind, context) }
    })?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| GatewayError {
        source: Some(error),
        ..GatewayError::new(SILENT, "the answer could not be read to its end")
    })?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// Reads a JSON object from an answer. The parser's own error is dropped: it may quote what the provider sent.
pub(super) fn read_object<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    // A struct would also be read from a list, member by member.
    let object = body.trim_ascii_start().starts_with(b"{");
    serde_json::from_slice(body).ok().filter(|_| object)
}

/// Whether a status that would end or hold an order came from something in front of the provider, which says nothing
/// about an order: with a page or a text, as ingresses and proxies write them, or with what API Gateway says of a route
/// that it does not have.
pub(super) fn is_not_the_providers(response: &Response<Bytes>) -> bool {
    let would_end = [
        StatusCode::BAD_REQUEST,
        StatusCode::PAYMENT_REQUIRED,
        StatusCode::NOT_FOUND,
        StatusCode::UNPROCESSABLE_ENTITY,
    ];
    let body = response.body();
    if !would_end.contains(&response.status()) || body.trim_ascii().is_empty() {
        return false;
    }
    match read_object::<serde_json::Map<String, serde_json::Value>>(body) {
        None => true,
        Some(fields) => {
            let no_route = fields.len() == 1 && fields.contains_key("message");
            no_route && response.status() == StatusCode::NOT_FOUND
        }
    }
}

/// `Retry-After` in seconds or as a date, clamped to 1 s to 900 s.
pub(super) fn retry_after(headers: &http::HeaderMap, now: crate::clock::Timestamp) -> Option<Duration> {
    let value = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match value.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() => u64::MAX,
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            date.as_secs().saturating_sub(u64::try_from(now.as_secs()).unwrap_or(0))
        }
    };
    Some(Duration::from_secs(seconds.clamp(1, 900)))
}
