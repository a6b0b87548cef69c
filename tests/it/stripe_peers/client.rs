//! A client that knows nothing of this crate.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::Value;

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) replayed: bool,
    pub(super) body: Value,
}

async fn send(method: Method, url: &str, key: Option<&str>, form: &[(&str, &str)]) -> Answer {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let mut request =
        Request::builder().method(method).uri(url).header("authorization", "Bearer sk_test_peer");
    if !form.is_empty() {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response: Response<_> =
        client.request(request.body(Full::new(Bytes::from(form))).unwrap()).await.unwrap();
    let replayed = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer { status, replayed, body: serde_json::from_slice(&body).unwrap_or_default() }
}

pub(super) async fn get(url: &str) -> Value {
    send(Method::GET, url, None, &[]).await.body
}

pub(super) async fn post(url: &str, key: Option<&str>, form: &[(&str, &str)]) -> Answer {
    send(Method::POST, url, key, form).await
}
