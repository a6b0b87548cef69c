//! What goes in and out of the [`Provider`](super::Provider), free of sockets, so that a test can drive it in one
//! thread and decide for itself what "hangs" or "late" means.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::Value;

use super::call::Call;

/// A request as it reached the provider.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The path without the query.
    pub path: String,
    /// The query without its question mark; empty if there is none.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Request {
    /// A request without headers and body. `target` is a path, with a query behind a question mark or without.
    pub fn new(method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// The same request with a body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The same request with the header `Idempotency-Key`, quoted as the IETF draft asks.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        insert(&mut self.headers, "idempotency-key", &format!("\"{key}\""));
        self
    }

    /// The same request with the header `Authorization: Bearer`.
    #[must_use]
    pub fn with_bearer(mut self, secret: &str) -> Self {
        insert(&mut self.headers, "authorization", &format!("Bearer {secret}"));
        self
    }

    /// The idempotency key, without the quotes of a structured-field string where it has them.
    pub fn idempotency_key(&self) -> Option<String> {
        let text = self.header("idempotency-key")?;
        let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Some(
            inner
                .map_or_else(|| text.to_owned(), |quoted| quoted.replace("\\\"", "\"").replace("\\\\", "\\")),
        )
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    pub(super) fn query_value(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers, without `Content-Length`. Boxed, because an answer is often the error of a `Result`.
    pub headers: Box<HeaderMap>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// An answer with a JSON body.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    pub(super) fn text(status: StatusCode, content_type: &'static str, body: String) -> Self {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { status, headers: Box::new(headers), body: body.into() }
    }

    /// A header's value as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        insert(&mut self.headers, name, value);
        self
    }
}

/// Values that no header may carry are left out: they can only come from a caller's own header, echoed.
fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Puts a field into a JSON object.
pub(super) fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// What the caller gets to see.
#[derive(Debug)]
pub enum Reply {
    /// The answer arrives.
    Answer(Answer),
    /// Only the first half of the body arrives, then the connection ends.
    Truncated(Answer),
    /// The body arrives one byte at a time, with this pause before each.
    Drip(Answer, Duration),
    /// The connection is reset without a byte of an answer.
    Reset,
    /// Nothing ever arrives.
    Hang,
    /// The request is being worked on for this long, its key in use all the while; then
    /// [`Provider::finish`](super::Provider::finish) executes it and says what to answer, whether or not the
    /// caller still waits.
    Delayed(Duration, Ticket),
}

/// A request that was accepted and not yet executed; spent by
/// [`Provider::finish`](super::Provider::finish).
#[derive(Debug)]
#[must_use = "a request that is never finished keeps its idempotency key in use"]
pub struct Ticket(pub(super) Box<Pending>);

/// A request and what was understood of it.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) call: Call,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_with_and_without_quotes() {
        let mut request = Request::new(Method::POST, "/charges").with_key("co1-ab");
        assert_eq!(request.idempotency_key().as_deref(), Some("co1-ab"));
        request.headers.insert("idempotency-key", HeaderValue::from_static("co1-ab"));
        assert_eq!(request.idempotency_key().as_deref(), Some("co1-ab"));
        request.headers.insert("idempotency-key", HeaderValue::from_static(r#""a\"b""#));
        assert_eq!(request.idempotency_key().as_deref(), Some(r#"a"b"#));
    }

    #[test]
    fn the_query_is_decoded() {
        let request = Request::new(Method::GET, "/charges?x=1&order_id=o%3A1");
        assert_eq!(
            (request.path.as_str(), request.query_value("order_id").as_deref()),
            ("/charges", Some("o:1"))
        );
    }
}
