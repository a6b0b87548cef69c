//! The Lambda Invoke API on loopback, for `aws lambda invoke --endpoint-url` and `cargo lambda invoke`.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Path, State},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

use crate::{
    clock::Clock,
    local::{
        runtime_api::{FUNCTION_NAME, FunctionError, InvocationOutcome},
        sample::{freshened, without_bom},
        stack::Stack,
    },
};

/// How the event shall be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvocationType {
    /// The caller waits for the answer.
    RequestResponse,
    /// The caller only hands the event over.
    Event,
    /// Nothing is invoked.
    DryRun,
}

struct Api {
    stack: Arc<Stack>,
    clock: Clock,
    invoked: mpsc::UnboundedSender<InvocationOutcome>,
    // Invocations of type `Event`: they end with the API, not with the caller's connection.
    background: tokio::sync::Mutex<JoinSet<()>>,
}

/// Serves `POST /2015-03-31/functions/{name}/invocations` until it is dropped.
#[derive(Debug)]
pub struct InvokeApi {
    address: SocketAddr,
    _server: JoinSet<()>,
}

impl InvokeApi {
    /// Starts on `address`, a loopback one. Every outcome is also sent to `invoked`.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(
        address: SocketAddr,
        stack: Arc<Stack>,
        clock: Clock,
        invoked: mpsc::UnboundedSender<InvocationOutcome>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let api = Arc::new(Api { stack, clock, invoked, background: tokio::sync::Mutex::default() });
        let router = Router::new()
            .route("/2015-03-31/functions/{name}/invocations", post(invoke))
            .layer(DefaultBodyLimit::disable())
            .with_state(api);
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It only ends when it is dropped.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, _server: server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn invoke(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    event: Bytes,
) -> Response {
    if !names_the_function(&name) {
        return reject(
            StatusCode::NOT_FOUND,
            "ResourceNotFoundException",
            &format!("Function not found: {name}"),
        );
    }
    let Some(invocation_type) = invocation_type(&headers) else {
        return reject(StatusCode::BAD_REQUEST, "InvalidParameterValueException", "unknown invocation type");
    };
    let event = Bytes::from(freshened(without_bom(&event), api.clock.now()));
    match invocation_type {
        InvocationType::RequestResponse => answer(api.run(event).await),
        InvocationType::Event => {
            let running = Arc::clone(&api);
            let mut background = api.background.lock().await;
            while background.try_join_next().is_some() {}
            background.spawn(async move {
                running.run(event).await;
            });
            empty(StatusCode::ACCEPTED)
        }
        InvocationType::DryRun => empty(StatusCode::NO_CONTENT),
    }
}

impl Api {
    async fn run(&self, event: Bytes) -> InvocationOutcome {
        let outcome = self.stack.outcome_of(event).await.unwrap_or_else(|error| {
            InvocationOutcome::Error(FunctionError {
                error_type: "Runtime.ExitError".into(),
                error_message: error.to_string(),
            })
        });
        // Without a listener nobody wants to know.
        drop(self.invoked.send(outcome.clone()));
        outcome
    }
}

/// The plain name, with a qualifier, or an ARN; `cargo lambda invoke` without a name says `@@bootstrap@@`.
fn names_the_function(name: &str) -> bool {
    let name = name.rsplit_once(":function:").map_or(name, |(_arn, name)| name);
    let name = name.split_once(':').map_or(name, |(name, _qualifier)| name);
    [FUNCTION_NAME, "bootstrap", "@@bootstrap@@", "_"].contains(&name)
}

fn invocation_type(headers: &HeaderMap) -> Option<InvocationType> {
    match headers.get("x-amz-invocation-type").map(|value| value.to_str()) {
        None | Some(Ok("RequestResponse")) => Some(InvocationType::RequestResponse),
        Some(Ok("Event")) => Some(InvocationType::Event),
        Some(Ok("DryRun")) => Some(InvocationType::DryRun),
        Some(Ok(_) | Err(_)) => None,
    }
}

fn answer(outcome: InvocationOutcome) -> Response {
    let (error, payload) = match outcome {
        InvocationOutcome::Response(payload) => (false, payload),
        InvocationOutcome::Error(error) => (true, error_payload(&error.error_type, &error.error_message)),
        InvocationOutcome::Crashed => {
            (true, error_payload("Runtime.ExitError", "the function's process ended before it answered"))
        }
        InvocationOutcome::TimedOut => (true, error_payload("Sandbox.Timedout", "the function timed out")),
    };
    let mut response = Response::builder()
        .header("content-type", "application/json")
        .header("x-amz-executed-version", "$LATEST");
    if error {
        response = response.header("x-amz-function-error", "Unhandled");
    }
    response.body(Body::from(payload)).unwrap_or_default()
}

fn error_payload(error_type: &str, message: &str) -> Bytes {
    json!({ "errorType": error_type, "errorMessage": message }).to_string().into()
}

fn reject(status: StatusCode, error_type: &str, message: &str) -> Response {
    let body = json!({ "Type": "User", "Message": message }).to_string();
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("x-amzn-errortype", error_type)
        .body(Body::from(body))
        .unwrap_or_default()
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_has_several_names() {
        for name in [
            "charge-once",
            "charge-once:live",
            "arn:aws:lambda:eu-central-1:123456789012:function:charge-once",
            "@@bootstrap@@",
        ] {
            assert!(names_the_function(name), "{name}");
        }
        assert!(!names_the_function("another"));
    }

    #[test]
    fn errors_carry_the_header_that_the_cli_shows() {
        let header = |outcome| answer(outcome).headers().contains_key("x-amz-function-error");
        assert!(!header(InvocationOutcome::Response(Bytes::new())));
        assert!(header(InvocationOutcome::Crashed));
        assert!(header(InvocationOutcome::TimedOut));
    }
}
