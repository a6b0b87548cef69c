//! The API as a function sees it.

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

use super::*;

/// The function's side of the API.
struct Side {
    api: Arc<RuntimeApi>,
}

impl Side {
    async fn start() -> Self {
        Self {
            api: Arc::new(
                RuntimeApi::start(Clock::from_fn(|| crate::clock::Timestamp::from_millis(1_000)))
                    .await
                    .unwrap(),
            ),
        }
    }

    fn invoke(&self, event: &'static str) -> tokio::task::JoinHandle<InvocationOutcome> {
        let api = Arc::clone(&self.api);
        tokio::task::spawn_local(async move { api.invoke(event.into(), Duration::from_secs(30)).await })
    }

    async fn call(&self, method: &str, path: &str, body: &'static str) -> http::Response<Bytes> {
        let uri = format!("http://{}/2018-06-01/runtime/{path}", self.api.address());
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (parts, body) = client.request(request).await.unwrap().into_parts();
        http::Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }

    /// Takes the next event; answers its request id and the event.
    async fn next(&self) -> (String, Bytes) {
        let response = self.call("GET", "invocation/next", "").await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("lambda-runtime-deadline-ms"), "31000");
        (header("lambda-runtime-aws-request-id"), response.into_body())
    }
}

fn locally(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

#[test]
fn answers_find_their_invocations_in_any_order() {
    locally(async {
        let side = Side::start().await;
        let (first, second) = (side.invoke("1"), side.invoke("2"));
        let ((a, event_a), (b, event_b)) = (side.next().await, side.next().await);
        assert_eq!((&event_a[..], &event_b[..]), (&b"1"[..], &b"2"[..]));
        side.call("POST", &format!("invocation/{b}/response"), "two").await;
        let error = r#"{"errorType":"T","errorMessage":"one"}"#;
        side.call("POST", &format!("invocation/{a}/error"), error).await;
        assert_eq!(second.await.unwrap(), InvocationOutcome::Response("two".into()));
        let error = FunctionError { error_type: "T".into(), error_message: "one".into() };
        assert_eq!(first.await.unwrap(), InvocationOutcome::Error(error));
    });
}

#[test]
fn an_answer_counts_once_and_only_for_a_known_invocation() {
    locally(async {
        let side = Side::start().await;
        let invocation = side.invoke("1");
        let (id, _event) = side.next().await;
        let path = format!("invocation/{id}/response");
        assert_eq!(side.call("POST", &path, "a").await.status(), StatusCode::ACCEPTED);
        assert_eq!(side.call("POST", &path, "b").await.status(), StatusCode::BAD_REQUEST);
        assert_eq!(invocation.await.unwrap(), InvocationOutcome::Response("a".into()));
    });
}

#[test]
fn an_ended_function_fails_what_it_had_begun() {
    locally(async {
        let side = Side::start().await;
        let invocation = side.invoke("1");
        side.next().await;
        side.api.function_ended();
        assert_eq!(invocation.await.unwrap(), InvocationOutcome::Crashed);
    });
}

#[test]
fn an_init_error_is_kept_for_whoever_waits() {
    locally(async {
        let side = Side::start().await;
        side.call("POST", "init/error", r#"{"errorType":"T","errorMessage":"LEDGER_TABLE is not set"}"#)
            .await;
        assert_eq!(side.api.take_init_error().unwrap().error_message, "LEDGER_TABLE is not set");
        assert_eq!(side.api.take_init_error(), None);
    });
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_invocation_times_out() {
    let api = RuntimeApi::start(Clock::system()).await.unwrap();
    assert_eq!(api.invoke("{}".into(), Duration::from_secs(30)).await, InvocationOutcome::TimedOut);
}
