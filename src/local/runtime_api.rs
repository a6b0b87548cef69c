//! The Lambda Runtime API on loopback: hands events to the function and takes its answers back.
//!
//! See "Using the Lambda runtime API for custom runtimes" in the AWS Lambda Developer Guide.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use crate::{backoff::Random, clock::Clock};

/// What became of one invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvocationOutcome {
    /// The function answered.
    Response(Bytes),
    /// The function reported an error.
    Error(FunctionError),
    /// The function's process ended before it answered.
    Crashed,
    /// No answer came within the function's timeout.
    TimedOut,
}

/// An error as the function reported it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionError {
    /// What kind of error it is.
    #[serde(default)]
    pub error_type: String,
    /// The function's own words.
    #[serde(default)]
    pub error_message: String,
}

struct Pending {
    request_id: String,
    deadline_ms: i64,
    event: Bytes,
}

struct Shared {
    clock: Clock,
    queue: mpsc::UnboundedSender<Pending>,
    // A lock around the receiving end: pollers line up, each event goes to exactly one of them.
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<Pending>>,
    outstanding: Mutex<HashMap<String, oneshot::Sender<InvocationOutcome>>>,
    polls: watch::Sender<u64>,
    init_error: Mutex<Option<FunctionError>>,
}

impl Shared {
    fn answer(&self, request_id: &str, outcome: InvocationOutcome) -> StatusCode {
        let waiting = self.outstanding.lock().unwrap_or_else(PoisonError::into_inner).remove(request_id);
        match waiting {
            // A receiver that is gone has timed out; Lambda accepts the late answer and drops it.
            Some(waiting) => {
                drop(waiting.send(outcome));
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}

/// A Lambda Runtime API that serves until it is dropped.
pub struct RuntimeApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    random: Random,
    _server: JoinSet<()>,
}

impl std::fmt::Debug for RuntimeApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeApi").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RuntimeApi {
    /// Starts on a free loopback port; deadlines are told by `clock`.
    ///
    /// # Errors
    /// No loopback port could be bound.
    pub async fn start(clock: Clock) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (queue, events) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            clock,
            queue,
            events: tokio::sync::Mutex::new(events),
            outstanding: Mutex::default(),
            polls: watch::Sender::new(0),
            init_error: Mutex::default(),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It only ends when the listener does; then every invocation times out and says so.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, random: Random::System, _server: server })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`: host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts the function's requests for an event; it changes for the first time when the function is ready.
    pub fn polls(&self) -> watch::Receiver<u64> {
        self.shared.polls.subscribe()
    }

    /// The error the function reported instead of becoming ready, if any.
    pub fn take_init_error(&self) -> Option<FunctionError> {
        self.shared.init_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands `event` to the function and waits up to `timeout` for the answer. Several invocations may be
    /// outstanding; they are begun in the order of the calls.
    pub async fn invoke(&self, event: Bytes, timeout: Duration) -> InvocationOutcome {
        let request_id = self.random.token();
        let deadline_ms = self.shared.clock.now().plus(timeout).as_millis();
        let (answered, answer) = oneshot::channel();
        self.outstanding().insert(request_id.clone(), answered);
        let pending = Pending { request_id: request_id.clone(), deadline_ms, event };
        if self.shared.queue.send(pending).is_err() {
            return InvocationOutcome::Crashed;
        }
        match tokio::time::timeout(timeout, answer).await {
            Ok(outcome) => outcome.unwrap_or(InvocationOutcome::Crashed),
            Err(_elapsed) => {
                self.outstanding().remove(&request_id);
                InvocationOutcome::TimedOut
            }
        }
    }

    /// Ends every outstanding invocation as [`InvocationOutcome::Crashed`]: the function's process is gone.
    pub fn function_ended(&self) {
        self.outstanding().clear();
    }

    fn outstanding(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<InvocationOutcome>>> {
        self.shared.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.polls.send_modify(|polls| *polls = polls.saturating_add(1));
    loop {
        let pending = shared.events.lock().await.recv().await;
        let Some(pending) = pending else { return StatusCode::GONE.into_response() };
        // An invocation that timed out or whose process died while it waited is not begun any more.
        if !shared
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(&pending.request_id)
        {
            continue;
        }
        let response = Response::builder()
            .header("content-type", "application/json")
            .header("lambda-runtime-aws-request-id", &pending.request_id)
            .header("lambda-runtime-deadline-ms", pending.deadline_ms)
            .header("lambda-runtime-invoked-function-arn", FUNCTION_ARN)
            .header("lambda-runtime-trace-id", TRACE_ID)
            .body(Body::from(pending.event));
        return response.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response());
    }
}

/// The function's name in its environment, its ARN and the Invoke API.
pub const FUNCTION_NAME: &str = "charge-once";
const FUNCTION_ARN: &str = "arn:aws:lambda:eu-central-1:123456789012:function:charge-once";
const TRACE_ID: &str = "Root=1-00000000-000000000000000000000000;Sampled=0";

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answer(&id, InvocationOutcome::Response(body))
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answer(&id, InvocationOutcome::Error(function_error(&body)))
}

async fn init_error(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    *shared.init_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(function_error(&body));
    StatusCode::ACCEPTED
}

fn function_error(body: &[u8]) -> FunctionError {
    serde_json::from_slice(body).unwrap_or_else(|_| FunctionError {
        error_type: "Unreadable".into(),
        error_message: String::from_utf8_lossy(body).into_owned(),
    })
}

#[cfg(test)]
mod tests;
