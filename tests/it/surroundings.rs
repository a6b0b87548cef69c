//! The real binary where what surrounds it is not as it should be: a secret that cannot be read or is rotated, a
//! ledger that throttles, a queue that changes no visibility, a deadline that is none.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use charge_once::{
    clock::{Clock, Timestamp},
    gateway::simulated::Script,
    generate::{self, Recipe},
    local::{
        answer::Reading,
        environment::Provider,
        stack::{Invocation, Stack, StackConfig, StackError, message_ids},
    },
};
use serde_json::{Value, json};

use crate::support::aws::{Reply, Service};

const SECRET_ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:stripe-AbCdEf";
const OLD: &str = "sk_test_the_old_one";
const NEW: &str = "sk_test_the_new_one";

async fn start(settings: &[(&str, &str)], clock: Clock) -> Result<Stack, StackError> {
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Stack::start(StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Stripe,
        script: Script::default(),
        data: None,
        log: None,
        settings,
        timeout: Duration::from_secs(30),
        clock,
    })
    .await
}

/// Orders sent just now.
fn orders(count: u32) -> Vec<u8> {
    let recipe = Recipe { count, fifo: false, duplicates_percent: 0, poison_percent: 0, seed: 1 };
    generate::event(&recipe, Clock::system().now()).to_string().into_bytes()
}

fn of_records(invocation: &Invocation, field: &str) -> Vec<String> {
    invocation.records.iter().map(|record| record.text(field)).collect()
}

/// The metrics line of the invocation.
fn metrics(invocation: &Invocation) -> Value {
    let lines = invocation.log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.into_iter().find(|line| line.get("_aws").is_some()).unwrap()
}

/// Secrets Manager with one secret, and what it holds now.
async fn secrets_manager() -> (Service, Arc<Mutex<&'static str>>) {
    let held = Arc::new(Mutex::new(OLD));
    let service = Service::start({
        let held = Arc::clone(&held);
        move |operation, body| {
            assert_eq!(operation, "GetSecretValue");
            match body.get("SecretId").and_then(Value::as_str).unwrap() {
                SECRET_ARN => {
                    Reply::Success(json!({"ARN": SECRET_ARN, "SecretString": *held.lock().unwrap()}))
                }
                "denied" => Reply::Failure("AccessDeniedException"),
                _ => Reply::Failure("ResourceNotFoundException"),
            }
        }
    })
    .await;
    (service, held)
}

async fn with_secret(service: &Service, arn: &str) -> Result<Stack, StackError> {
    let url = service.url();
    let settings = [
        ("GATEWAY_SECRET", ""),
        ("GATEWAY_SECRET_ARN", arn),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", url.as_str()),
    ];
    start(&settings, Clock::system()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_read_at_start_and_again_after_it_was_rotated() {
    let (service, held) = secrets_manager().await;
    let stack = with_secret(&service, SECRET_ARN).await.unwrap();
    stack.provider().require_secret(Some(OLD));
    let mut log = stack.take_log().unwrap();
    for _ in 0..2 {
        let charged = stack.invoke(orders(3)).await.unwrap();
        log.extend(charged.log);
    }
    assert_eq!((stack.charges().len(), service.calls()), (3, 1), "read once, at start");

    stack.provider().require_secret(Some(NEW));
    *held.lock().unwrap() = NEW;
    let event = generate::event_of(
        r#"{"order_id":"o-4","amount":1,"currency":"EUR","payment_method":"pm_card_visa"}"#,
        false,
        4,
        Clock::system().now(),
    );
    let refused = stack.invoke(event.to_string()).await.unwrap();
    assert_eq!(of_records(&refused, "reason"), ["GATEWAY:AUTH_CONFIG"]);
    assert_eq!((stack.charges().len(), service.calls()), (3, 2), "read again after the refusal");
    let healed = stack.invoke(event.to_string()).await.unwrap();
    assert_eq!(of_records(&healed, "reason"), ["CHARGED"]);

    // A key that stays wrong is not asked for with every order.
    stack.provider().require_secret(Some("sk_test_another"));
    let still_wrong = stack.invoke(orders(5)).await.unwrap();
    let wrong_again = stack.invoke(orders(7)).await.unwrap();
    assert_eq!((stack.charges().len(), service.calls()), (4, 2), "at most every five minutes");

    log.extend([refused, healed, still_wrong, wrong_again].into_iter().flat_map(|it| it.log));
    let told: Vec<_> = log.iter().filter(|line| line.contains("sk_test_")).collect();
    assert!(!log.is_empty() && told.is_empty(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_cannot_be_read_stops_the_start_and_says_why() {
    let (service, _held) = secrets_manager().await;
    for (arn, code) in [("denied", "AccessDeniedException"), ("no-such", "ResourceNotFoundException")] {
        let error = with_secret(&service, arn).await.unwrap_err().to_string();
        assert!(error.contains("GATEWAY_SECRET_ARN") && error.contains(code), "{error}");
        assert!(!error.contains("sk_test_"), "{error}");
    }
    assert_eq!(service.calls(), 2, "neither gets better by asking again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_throttles_is_waited_for_and_nothing_is_charged() {
    let dynamodb = Service::start(|_, _| Reply::Failure("ThrottlingException")).await;
    let url = dynamodb.url();
    let settings = [("AWS_ENDPOINT_URL_DYNAMODB", url.as_str()), ("CONCURRENCY", "1")];
    let stack = start(&settings, Clock::system()).await.unwrap();
    let invocation = stack.invoke(orders(5)).await.unwrap();
    assert_eq!(of_records(&invocation, "decision"), ["retry"; 5]);
    let reasons = of_records(&invocation, "reason");
    assert_eq!(reasons[..3], ["STORE_UNAVAILABLE"; 3], "{reasons:?}");
    assert_eq!(reasons[3..], ["NOT_STARTED:BREAKER"; 2], "{reasons:?}");
    assert!(of_records(&invocation, "error")[0].contains("ThrottlingException"), "{:#?}", invocation.log);
    assert_eq!(stack.provider().requests().len(), 0, "nobody is asked before the order is claimed");
    let metrics = metrics(&invocation);
    let counted = ["Retried", "NotStarted", "BreakerOpened"].map(|name| metrics[name].clone());
    assert_eq!(counted, [json!(3), json!(2), json!(1)]);
}

/// A handle that has expired is refused by its entry or with the whole call, and in more than one word.
#[tokio::test(flavor = "multi_thread")]
async fn visibility_that_cannot_be_changed_changes_no_answer() {
    let refused = |_: &str, call: &Value| {
        let entries = call["Entries"].as_array().unwrap().iter();
        let failed = entries
            .map(|entry| json!({"Id": entry["Id"], "Code": "ReceiptHandleIsInvalid", "SenderFault": true}));
        Reply::Success(json!({"Successful": [], "Failed": failed.collect::<Vec<_>>()}))
    };
    for sqs in [
        Service::start(refused).await,
        Service::start(|_, _| Reply::Failure("InvalidParameterValue")).await,
        Service::start(|_, _| Reply::Failure("com.amazonaws.sqs#MessageNotInflight")).await,
    ] {
        let url = sqs.url();
        let stack = start(&[("AWS_ENDPOINT_URL_SQS", &url)], Clock::system()).await.unwrap();
        let poison = generate::event_of("no order", true, 1, Clock::system().now()).to_string();
        let invocation = stack.invoke(poison.clone()).await.unwrap();
        assert_eq!(of_records(&invocation, "decision"), ["poison"]);
        let kept = Reading::Partial(message_ids(poison.as_bytes()));
        assert_eq!(invocation.reading(poison.as_bytes()), Some(kept));
        assert_eq!((sqs.calls(), metrics(&invocation)["VisibilityChangeFailed"].as_u64()), (1, Some(1)));
    }
}

/// Emulators send 0, or the timeout itself, for the moment at which it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_in_the_past_counts_as_unknown() {
    for deadline_millis in [0, 600_000] {
        let clock = Clock::from_fn(move || Timestamp::from_millis(deadline_millis - 30_000));
        let stack = start(&[], clock).await.unwrap();
        let invocation = stack.invoke(orders(2)).await.unwrap();
        assert_eq!(of_records(&invocation, "reason"), ["CHARGED"; 2], "{deadline_millis}");
    }
}
