//! One process that serves several invocations at once, as on Lambda Managed Instances: nothing mixes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use charge_once::{
    clock::Clock,
    gateway::simulated::{Effect, Rule, Script},
    local::{
        environment::Provider,
        runtime_api::InvocationOutcome,
        stack::{Stack, StackConfig},
    },
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const AT_ONCE: usize = 8;

/// A batch of a good and a poison order, all named after `number`.
fn event(number: usize) -> Vec<u8> {
    let record = |kind: &str, amount: i64| {
        json!({
            "messageId": format!("{kind}-{number}"),
            "receiptHandle": format!("rh-{kind}-{number}"),
            "body": json!({"order_id": format!("o-{kind}-{number}"), "amount": amount, "currency": "EUR"}).to_string(),
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
        })
    };
    json!({"Records": [record("good", 5), record("bad", -1)]}).to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_invocations_at_once_do_not_mix() {
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        // Long enough that all are under way together.
        script: Script::of([Rule::always(Effect::Delay { ms: 300 })]),
        data: None,
        log: None,
        settings: [("AWS_LAMBDA_MAX_CONCURRENCY".to_owned(), AT_ONCE.to_string())].into(),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    let stack = Arc::new(Stack::start(config).await.unwrap());
    let mut invocations = JoinSet::new();
    for number in 0..AT_ONCE {
        let stack = Arc::clone(&stack);
        invocations.spawn(async move { (number, stack.outcome_of(event(number).into()).await.unwrap()) });
    }
    while let Some(done) = invocations.join_next().await {
        let (number, outcome) = done.unwrap();
        let InvocationOutcome::Response(answer) = outcome else { panic!("{outcome:?}") };
        let expected = json!({"batchItemFailures": [{"itemIdentifier": format!("bad-{number}")}]});
        assert_eq!(serde_json::from_slice::<Value>(&answer).unwrap(), expected);
    }
    assert_eq!(stack.charges().len(), AT_ONCE);
    assert_one_request_a_batch(&stack.take_log().unwrap());
}

/// Both lines of a batch carry the same request id, and no other batch's do.
fn assert_one_request_a_batch(log: &[String]) {
    let mut requests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if let (Some(request), Some(message)) = (line["request_id"].as_str(), line["message_id"].as_str()) {
            let number = message.rsplit('-').next().unwrap().to_owned();
            requests.entry(request.to_owned()).or_default().push(number);
        }
    }
    assert_eq!(requests.len(), AT_ONCE);
    for numbers in requests.values() {
        assert_eq!((numbers.len(), &numbers[0]), (2, &numbers[1]));
    }
}
