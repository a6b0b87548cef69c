//! Local mode as people meet it: the command line, and the Invoke API that other tools call.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use charge_once::{
    backoff::Random,
    clock::Clock,
    gateway::simulated::{Script, Simulated},
    generate::{Recipe, event, event_of},
    local::{
        environment::Provider,
        invoke_api::InvokeApi,
        runtime_api::InvocationOutcome,
        stack::{Stack, StackConfig},
    },
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::mpsc,
};

async fn charge_once(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap()
}

async fn report(args: &[&str]) -> Value {
    let bootstrap = env!("CARGO_BIN_EXE_bootstrap");
    let output = charge_once(&[&["local", "--json", "--bootstrap", bootstrap], args].concat()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn config(script: Script) -> StackConfig {
    StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        script,
        data: None,
        log: None,
        settings: BTreeMap::new(),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    }
}

fn one_order() -> Vec<u8> {
    let body = r#"{"order_id":"o-1","amount":49.90,"currency":"EUR"}"#;
    event_of(body, false, 1, Clock::system().now()).to_string().into()
}

/// A name in the temporary folder that nothing else has; removed with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(extension: &str) -> Self {
        Self(std::env::temp_dir().join(format!("charge-once-test-{}{extension}", Random::System.token())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn the_samples_are_charged_once_however_often_they_come() {
    let once = report(&[]).await;
    let twice = report(&["--twice"]).await;
    assert_eq!(once["summary"]["double_charges"], 0);
    assert_eq!(twice["summary"]["double_charges"], 0);
    assert_eq!(once["summary"]["charged"], twice["summary"]["charged"]);
    assert_eq!(once["summary"]["failed"], 0);
    assert!(once["summary"]["charged"].as_u64().unwrap() > 100, "{}", once["summary"]);
}

#[tokio::test]
async fn a_person_sees_tables_and_one_last_line() {
    let output = charge_once(&["local", "--bootstrap", env!("CARGO_BIN_EXE_bootstrap")]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\x1b'), "colour although this is no terminal");
    for expected in ["01-one-order\n", "49.90 EUR", "CHARGED", "DUPLICATE", "The ledger, "] {
        assert!(text.contains(expected), "{expected} is missing");
    }
    assert!(text.lines().last().unwrap().ends_with("double charges 0"), "{text}");
}

#[tokio::test]
async fn a_kept_ledger_remembers_the_order() {
    let (folder, file) = (Scratch::new(""), Scratch::new(".json"));
    std::fs::write(&file.0, one_order()).unwrap();
    let args = ["--data", folder.path(), file.path()];
    let (first, second) = (report(&args).await, report(&args).await);
    assert_eq!((&first["summary"]["charged"], &first["summary"]["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!((&second["summary"]["charged"], &second["summary"]["duplicates"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_generated_event_goes_through() {
    let output =
        charge_once(&["queue", "event", "--count", "40", "--duplicates", "20", "--poison", "10"]).await;
    let file = Scratch::new(".json");
    std::fs::write(&file.0, output.stdout).unwrap();
    let summary = &report(&[file.path()]).await["summary"];
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(count("charged") + count("duplicates") + count("poison"), 40, "{summary}");
    assert!(count("duplicates") > 0 && count("poison") > 0, "{summary}");
}

#[tokio::test]
async fn what_cannot_be_done_is_said_in_one_sentence() {
    let file = Scratch::new(".json");
    std::fs::write(&file.0, "no event").unwrap();
    let bootstrap = env!("CARGO_BIN_EXE_bootstrap");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["local", "/nowhere/event.json"], 1, "error: /nowhere/event.json cannot be read"),
        (&["local", file.path()], 1, "is not JSON"),
        (&["local", "--bootstrap", "/nowhere"], 1, "cargo build --bin bootstrap"),
        (&["local", "--bootstrap", bootstrap, "--set", "CONCURRENCY=many"], 1, "CONCURRENCY"),
        (&["local", "--bootstrap", "Cargo.toml"], 1, "Cargo.toml could not be started"),
        (&["local", "--faults", "implode=3%"], 2, "implode"),
        (&["local", "--faults", "decline=150%"], 2, "from 0% to 100%"),
        (&["queue", "event", "--poison", "101%"], 2, "from 0% to 100%"),
    ];
    for (args, code, words) in cases {
        let output = charge_once(args).await;
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(words), "{args:?}: {error}");
    }
}

/// Somebody's own function: here the same binary elsewhere, with a provider that local mode does not know.
#[tokio::test]
async fn a_foreign_function_is_judged_by_what_it_wrote_and_may_have_settings_of_its_own() {
    let copy = Scratch::new("");
    std::fs::copy(env!("CARGO_BIN_EXE_bootstrap"), &copy.0).unwrap();
    let elsewhere = Simulated::start(Clock::system(), Script::default()).await.unwrap();
    let url = format!("GATEWAY_URL={}/charges", elsewhere.base_url().trim_end_matches('/'));
    let args = ["local", "--bootstrap", copy.path(), "--set", &url, "--set", "RECEIPTS_URL=http://127.0.0.1"];
    let says = async |more: &[&str]| {
        let output = charge_once(&[&args[..], more].concat()).await;
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        out.lines().next_back().unwrap().to_owned()
    };
    assert_eq!(
        says(&["events/01-one-order.json", "--twice"]).await,
        "2 events, 2 records: 1 done, 1 duplicate, 0 poison, 0 retried, 0 held; nothing was charged at the \
         simulated provider, which would show what was done twice"
    );
    assert_eq!(
        says(&["--queue", "20", "--gateway", "http"]).await,
        "Every order is in exactly one place, by the ledger: nothing was charged at the simulated provider, which \
         would show what was done twice."
    );
}

#[tokio::test]
async fn a_function_started_by_hand_says_how_it_is_started() {
    let output = Command::new(env!("CARGO_BIN_EXE_bootstrap"))
        .env_clear()
        .envs([("LEDGER_TABLE", "t"), ("GATEWAY", "stripe"), ("GATEWAY_SECRET", "sk_test_local")])
        .output()
        .await
        .unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.contains("charge-once local --bootstrap PATH-OF-THIS-PROGRAM"), "{line}");
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test]
async fn a_killed_function_is_started_again() {
    let stack = Stack::start(config(Script::default())).await.unwrap();
    stack.kill_function().await;
    let invocation = stack.invoke(one_order()).await.unwrap();
    assert_eq!(invocation.charges.len(), 1, "{invocation:?}");
}

/// Calls the Invoke API and answers status, `X-Amz-Function-Error` and payload.
async fn invoke(api: &InvokeApi, function: &str, kind: &str, event: Vec<u8>) -> (StatusCode, bool, Bytes) {
    let uri = format!("http://{}/2015-03-31/functions/{function}/invocations", api.address());
    let request =
        Request::post(uri).header("x-amz-invocation-type", kind).body(Full::new(Bytes::from(event)));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (parts, body) = client.request(request.unwrap()).await.unwrap().into_parts();
    let failed = parts.headers.contains_key("x-amz-function-error");
    (parts.status, failed, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn the_invoke_api_answers_as_lambda_does() {
    let stack = Arc::new(Stack::start(config(Script::default())).await.unwrap());
    let (invoked, mut outcomes) = mpsc::unbounded_channel();
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let api = InvokeApi::start(free, Arc::clone(&stack), Clock::system(), invoked).await.unwrap();

    let (status, failed, payload) = invoke(&api, "charge-once", "RequestResponse", one_order()).await;
    assert_eq!((status, failed, &payload[..]), (StatusCode::OK, false, &br#"{"batchItemFailures":[]}"#[..]));

    let (status, failed, payload) = invoke(&api, "charge-once", "RequestResponse", b"{}".to_vec()).await;
    assert_eq!((status, failed), (StatusCode::OK, true));
    assert!(serde_json::from_slice::<Value>(&payload).unwrap()["errorMessage"].is_string());

    let recipe = Recipe { count: 3, fifo: false, duplicates_percent: 0, poison_percent: 0, seed: 5 };
    let batch = event(&recipe, Clock::system().now()).to_string().into_bytes();
    let (status, _, payload) = invoke(&api, "charge-once", "Event", batch).await;
    assert_eq!((status, payload.len()), (StatusCode::ACCEPTED, 0));
    for _ in 0..2 {
        outcomes.recv().await.unwrap();
    }
    assert!(matches!(outcomes.recv().await.unwrap(), InvocationOutcome::Response(_)));
    assert_eq!(stack.charges().len(), 4);

    assert_eq!(invoke(&api, "another", "RequestResponse", one_order()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(invoke(&api, "charge-once", "Later", one_order()).await.0, StatusCode::BAD_REQUEST);
}

/// Whoever stops `charge-once` by its process id, as supervisors do, signals it alone.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_ends_the_function_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(["local", "--serve", "--port", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("The function is up"));
    let id = child.id().unwrap().to_string();
    let functions = children_of(&id);
    assert_eq!(functions.len(), 1);
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().await.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    // The kernel has only to clear away what was killed, which no event tells.
    while functions.iter().any(|id| is_running(id)) {
        tokio::task::yield_now().await;
    }
}

#[cfg(target_os = "linux")]
fn stat(id: &str) -> Option<(char, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.to_owned()))
}

#[cfg(target_os = "linux")]
fn is_running(id: &str) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

#[cfg(target_os = "linux")]
fn children_of(parent: &str) -> Vec<String> {
    let names =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    names.filter(|id| stat(id).is_some_and(|(_, of)| of == parent)).collect()
}
