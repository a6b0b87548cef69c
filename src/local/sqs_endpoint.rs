//! The memory queues behind SQS's own protocol, AWS JSON 1.0, on loopback: any SQS client can use them.
//!
//! Requests are neither signed for nor checked for a signature. A queue is found by the last segment of its
//! URL, so URLs of a real account and Region work too. Queue tags are accepted and not kept.

mod actions;
mod md5;
mod recorder;
mod wire;

use std::{io, net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    serve::ListenerExt,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use self::recorder::Recorder;
pub use self::recorder::{VisibilityCall, VisibilityFailure};
use crate::queue::memory::{ACCOUNT, MemoryQueues, SqsError};

/// A batch of 1 MiB whose every byte is escaped as `\u00XX`, and the names around it.
const MAX_REQUEST: usize = 8_388_608;

/// A running SQS endpoint; it stops when dropped.
#[derive(Debug)]
pub struct SqsEndpoint {
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    queues: MemoryQueues,
    url: String,
    recorder: Recorder,
}

impl SqsEndpoint {
    /// Serves the queues on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(queues: MemoryQueues) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared { queues, url, recorder: Recorder::default() });
        let app = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .with_state(Arc::clone(&shared));
        // Answers are small; without this each could wait for the client's delayed acknowledgement.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY is not available");
            }
        });
        let mut server = JoinSet::new();
        server.spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%error, "the SQS endpoint ended");
            }
        });
        Ok(Self { shared, _server: server })
    }

    /// Where it listens: the value for `AWS_ENDPOINT_URL_SQS`.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// The URL of the queue of that name.
    pub fn queue_url(&self, name: &str) -> String {
        self.shared.queue_url(name)
    }

    /// The queues it serves.
    pub fn queues(&self) -> &MemoryQueues {
        &self.shared.queues
    }

    /// Every visibility change asked for so far, in order, also those that failed.
    pub fn visibility_changes(&self) -> Vec<VisibilityCall> {
        self.shared.recorder.calls()
    }

    /// From now on a visibility change for an unknown queue or receipt handle succeeds: for events written by
    /// hand, whose messages are in no queue.
    pub fn accept_unknown_visibility(&self) {
        self.shared.recorder.accept_unknown();
    }

    /// From now on visibility changes fail like this; `None` ends it.
    pub fn fail_visibility(&self, failure: impl Into<Option<VisibilityFailure>>) {
        self.shared.recorder.fail(failure.into());
    }
}

impl Shared {
    fn queue_url(&self, name: &str) -> String {
        format!("{}/{ACCOUNT}/{name}", self.url)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let action = target.strip_prefix("AmazonSQS.").unwrap_or_default();
    let mut response = match shared.act(action, &body).await {
        Ok(answer) => answer.to_string().into_response(),
        Err(error) => refusal(&error),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    response
}

fn refusal(error: &SqsError) -> Response {
    let body =
        json!({ "__type": format!("com.amazonaws.sqs#{}", error.code()), "message": error.to_string() });
    let query_error = format!("{};Sender", query_code(error));
    (StatusCode::BAD_REQUEST, [("x-amzn-query-error", query_error)], body.to_string()).into_response()
}

/// The error's name in the older query protocol, which clients still report.
fn query_code(error: &SqsError) -> String {
    match error {
        SqsError::QueueDoesNotExist => "AWS.SimpleQueueService.NonExistentQueue".to_owned(),
        SqsError::QueueNameExists(_) => "QueueAlreadyExists".to_owned(),
        SqsError::MessageNotInflight
        | SqsError::EmptyBatchRequest
        | SqsError::TooManyEntriesInBatchRequest(_)
        | SqsError::BatchEntryIdsNotDistinct(_)
        | SqsError::InvalidBatchEntryId
        | SqsError::BatchRequestTooLong(_)
        | SqsError::UnsupportedOperation(_) => format!("AWS.SimpleQueueService.{}", error.code()),
        SqsError::ReceiptHandleIsInvalid(_)
        | SqsError::OverLimit
        | SqsError::InvalidMessageContents
        | SqsError::MissingParameter(_)
        | SqsError::InvalidParameterValue(_)
        | SqsError::InvalidAttributeName(_)
        | SqsError::InvalidAttributeValue(_)
        | SqsError::ResourceNotFound(_) => error.code().to_owned(),
    }
}
