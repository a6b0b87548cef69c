//! A DynamoDB that throttles now and then, before or after it has done what it was asked for.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{net::TcpListener, task::JoinSet};

/// One request of so many is throttled, and one of so many loses its answer.
const THROTTLED: usize = 29;
const ANSWER_LOST: usize = 101;

/// Stands between the function and the embedded DynamoDB.
pub(super) struct Throttle {
    url: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    client: Client<HttpConnector, Body>,
    upstream: Mutex<String>,
    requests: AtomicUsize,
    throttled: AtomicUsize,
}

impl Throttle {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            client: Client::builder(TokioExecutor::new()).build_http(),
            upstream: Mutex::default(),
            requests: AtomicUsize::new(0),
            throttled: AtomicUsize::new(0),
        });
        let app = Router::new().fallback(pass_on).with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, shared, _server: server }
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn connect_to(&self, url: &str) {
        *self.shared.upstream.lock().unwrap() = url.to_owned();
    }

    pub(super) fn throttled(&self) -> usize {
        self.shared.throttled.load(Ordering::Relaxed)
    }
}

async fn pass_on(State(shared): State<Arc<Shared>>, mut request: Request) -> Response {
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    if number.is_multiple_of(THROTTLED) {
        shared.throttled.fetch_add(1, Ordering::Relaxed);
        return refusal(StatusCode::BAD_REQUEST, "ThrottlingException");
    }
    let upstream = shared.upstream.lock().unwrap().clone();
    let path = request.uri().path().to_owned();
    *request.uri_mut() = format!("{upstream}{path}").parse::<Uri>().unwrap();
    match shared.client.request(request).await {
        Ok(_) if number.is_multiple_of(ANSWER_LOST) => {
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError")
        }
        Ok(answer) => answer.map(Body::new),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

fn refusal(status: StatusCode, code: &str) -> Response {
    let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"soak"}}"#);
    (status, [("content-type", "application/x-amz-json-1.0")], body).into_response()
}
