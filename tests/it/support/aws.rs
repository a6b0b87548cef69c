//! A service of AWS that speaks JSON, on loopback, whose answers the test decides.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

/// What a call is answered with.
pub(crate) enum Reply {
    Success(Value),
    /// An error of the service, by its name in the API.
    Failure(&'static str),
    /// The same in the service's own words.
    Refusal(&'static str, String),
}

pub(crate) struct Service {
    url: String,
    calls: Arc<AtomicUsize>,
    _server: JoinSet<()>,
}

impl Service {
    /// Answers each call, given its operation (`GetSecretValue`) and its body.
    pub(crate) async fn start(
        answer: impl Fn(&str, &Value) -> Reply + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let router = Router::new().fallback(move |headers: HeaderMap, body: Bytes| async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let target = headers.get("x-amz-target").unwrap().to_str().unwrap();
            let operation = target.rsplit('.').next().unwrap();
            let (status, body) = match answer(operation, &serde_json::from_slice(&body).unwrap()) {
                Reply::Success(body) => (StatusCode::OK, body),
                Reply::Failure(code) => {
                    (StatusCode::BAD_REQUEST, json!({"__type": code, "message": "as the test asked"}))
                }
                Reply::Refusal(code, message) => {
                    (StatusCode::BAD_REQUEST, json!({"__type": code, "message": message}))
                }
            };
            (status, [("content-type", "application/x-amz-json-1.1")], body.to_string()).into_response()
        });
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, calls, _server: server }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// How often it has been called.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}
