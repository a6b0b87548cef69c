//! An S3 endpoint on loopback, as far as reading objects goes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{Method, StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use tokio::{net::TcpListener, task::JoinSet};

/// What is answered when an object is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Object {
    Text(String),
    Error { status: u16, code: String },
    Size { size: usize },
    Bytes { hex: String },
}

/// The endpoint; it ends when it is dropped.
pub(crate) struct FakeS3 {
    port: u16,
    bucket: Arc<Bucket>,
    _serving: JoinSet<()>,
}

struct Bucket {
    objects: BTreeMap<String, Object>,
    requests: Mutex<Vec<String>>,
}

impl FakeS3 {
    /// Serves these objects, by `bucket/key`.
    pub(crate) async fn start(objects: BTreeMap<String, Object>) -> Self {
        let bucket = Arc::new(Bucket { objects, requests: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&bucket));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, bucket, _serving: serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Method and path of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.bucket.requests.lock().unwrap().clone()
    }
}

async fn answer(State(bucket): State<Arc<Bucket>>, method: Method, uri: Uri) -> Response {
    bucket.requests.lock().unwrap().push(format!("{method} {}", uri.path()));
    match bucket.objects.get(uri.path().trim_start_matches('/')) {
        Some(Object::Text(text)) => text.clone().into_response(),
        Some(Object::Size { size }) => vec![b' '; *size].into_response(),
        Some(Object::Bytes { hex }) => bytes(hex).into_response(),
        Some(Object::Error { status, code }) => refusal(StatusCode::from_u16(*status).unwrap(), code),
        None => refusal(StatusCode::NOT_FOUND, "NoSuchKey"),
    }
}

fn refusal(status: StatusCode, code: &str) -> Response {
    let body = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>No.</Message><RequestId>R</RequestId></Error>"#
    );
    (status, [(CONTENT_TYPE, "application/xml")], body).into_response()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
