//! The ledger's commands: a record in words, a person's decision, a doubt settled without a message.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use charge_once::{
    clock::{Clock, Timestamp},
    gateway::simulated::{Effect, Operation, Rule, Script},
    ledger::{Applied, Found, Intent, Ledger, Resolution, State, Verdict, dynamodb::DynamoDbLedger},
    local::{
        environment::Provider,
        stack::{LEDGER_TABLE, Stack, StackConfig},
    },
    order::OrderId,
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Bench, order, text};

fn held(bench: &Bench, id: &str, fence: u64) {
    let more = json!({
        "fence": fence, "held_reason": "UNKNOWN_EXPIRED", "attention": "HELD", "first_sent_at": 1500,
    });
    bench.record(&order(id), "HELD", more);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_shown_in_words_and_a_missing_one_too() {
    let bench = Bench::start().await;
    held(&bench, "o-1", 3);
    let shown = text(&bench.run(&["ledger", "show", "o-1"]).await.stdout);
    insta::assert_snapshot!(shown, @r"
    order           o-1, attempt 1, 49.90 EUR
    state           HELD: UNKNOWN_EXPIRED, waits for a person
    money           not known; look for the order_id at the provider
    next delivery   goes to the DLQ; decide with `charge-once ledger resolve`
    first seen      1970-01-01T00:00:01.000Z
    first sent      1970-01-01T00:00:01.500Z
    since           1970-01-01T00:00:02.000Z
    provider        http:default
    fence           3
    ");
    let missing = text(&bench.run(&["ledger", "show", "o-2"]).await.stdout);
    insta::assert_snapshot!(missing, @r"
    o-2: no record. Nothing was begun, or its record is past RECORD_DAYS.
    next delivery   charges it; an order older than RECORD_DAYS or LEDGER_EPOCH is held instead
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_attention_is_listed_the_oldest_first() {
    let bench = Bench::start().await;
    for (id, changed_at) in [("young", 3000), ("old", 1000)] {
        let more = json!({ "held_reason": "RESTORED", "attention": "HELD", "state_changed_at": changed_at });
        bench.record(&order(id), "HELD", more);
    }
    bench.record(&order("doubt"), "SENT", json!({ "lease_until": 0, "attention": "UNSETTLED" }));
    bench.record(&order("killed"), "SENT", json!({ "lease_until": 4000 }));
    bench.record(&order("fine"), "PAID", json!({}));
    let list = async |more: &[&str]| {
        let listed = bench.json(&[&["ledger", "list", "--json"], more].concat()).await;
        let ids = listed.as_array().unwrap().iter().map(|one| one["order_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(list(&[]).await, ["old", "young"]);
    assert_eq!(list(&["--limit", "1"]).await, ["old"]);
    assert_eq!(list(&["--attention", "unsettled"]).await, ["doubt"]);
    assert_eq!(list(&["--attention", "abandoned"]).await.len(), 2, "also what nobody marked");
    assert_eq!(list(&["--attention", "unsettled", "--older-than", "100000d"]).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_order_is_resolved_each_way() {
    let bench = Bench::start().await;
    for id in ["paid", "declined", "retry"] {
        held(&bench, id, 3);
    }
    let dry = text(&bench.run(&["ledger", "resolve", "paid", "--paid", "ch_9"]).await.stdout);
    insta::assert_snapshot!(dry, @r"
    paid, 49.90 EUR, is HELD: UNKNOWN_EXPIRED, waits for a person
    and would be PAID: charged once
    Nothing was written. To write it: add --confirm --fence 3
    ");
    assert_eq!(bench.row("paid")["state"], "HELD");

    let confirm = ["--confirm", "--fence", "3", "--json"];
    for verdict in [&["paid", "--paid", "ch_9"][..], &["declined", "--declined"], &["retry", "--retry"]] {
        bench.json(&[&["ledger", "resolve"], verdict, &confirm[..]].concat()).await;
    }
    let paid = bench.row("paid");
    assert_eq!(
        [&paid["state"], &paid["charge_id"], &paid["error"], &paid["fence"], &paid["attention"]],
        [&json!("PAID"), &json!("ch_9"), &json!("RESOLVED:alex"), &json!(4), &Value::Null]
    );
    assert!(paid["state_changed_at"].as_i64().unwrap() > 1_700_000_000_000, "it says when");
    assert!(paid["expires_at"].is_i64());
    assert_eq!(bench.row("declined")["state"], "DECLINED");
    let retry = bench.row("retry");
    assert_eq!(
        [&retry["state"], &retry["lease_until"], &retry["first_sent_at"], &retry["handle_generation"]],
        [&json!("CLAIMED"), &json!(0), &Value::Null, &json!(1)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_about_a_record_that_changed_is_refused() {
    let bench = Bench::start().await;
    held(&bench, "changed", 4);
    bench.record(&order("open"), "SENT", json!({ "fence": 3, "lease_until": 0 }));
    for (id, words) in [("changed", "has changed since you looked"), ("open", "not a person's to decide")] {
        let before = bench.row(id);
        let output =
            bench.run(&["ledger", "resolve", id, "--paid", "ch_9", "--confirm", "--fence", "3"]).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
        assert_eq!(bench.row(id), before, "nothing was written");
    }
    let unseen = bench.run(&["ledger", "resolve", "changed", "--retry", "--confirm"]).await;
    assert_eq!(unseen.status.code(), Some(2), "a decision needs the fence that was seen");
}

/// A provider that charges and does not say so, and an order left in doubt by it.
async fn in_doubt(provider: Provider, rules: Vec<Rule>, settings: &[(&str, &str)]) -> Stack {
    let settings: BTreeMap<_, _> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider,
        script: Script::of(rules),
        data: None,
        log: None,
        settings,
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    let stack = Stack::start(config).await.unwrap();
    let record = json!({
        "messageId": "m-1",
        "receiptHandle": "h-1",
        "body": r#"{"order_id":"o-1","amount":49.90,"currency":"EUR","payment_method":"pm_card_visa"}"#,
        "attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": Clock::system().now().as_millis().to_string(),
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
    });
    stack.invoke(json!({ "Records": [record] }).to_string().into_bytes()).await.unwrap();
    assert_eq!(row(&stack).get("attention"), Some(&json!("UNSETTLED")));
    stack
}

async fn sweep(stack: &Stack, provider: Provider, more: &[(&str, &str)]) -> Value {
    let (swept, code, said) = sweeping(stack, provider, more).await;
    assert_eq!(code, Some(0), "{said}");
    swept
}

/// What became of the first order, how the command ended, and what it said on standard error.
async fn sweeping(stack: &Stack, provider: Provider, more: &[(&str, &str)]) -> (Value, Option<i32>, String) {
    let base = stack.provider().base_url();
    let (gateway, url) = match provider {
        Provider::Http => ("http", format!("{base}/charges")),
        Provider::Stripe => ("stripe", base),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(["ledger", "sweep", "--older-than", "0s", "--confirm", "--json"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", stack.dynamodb_url())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "eu-central-1")
        .env("LEDGER_TABLE", LEDGER_TABLE)
        .env("GATEWAY", gateway)
        .env("GATEWAY_URL", url)
        .env("GATEWAY_SECRET", "sk_test_local")
        .envs(more.iter().copied())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let swept: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    (swept.into_iter().next().unwrap(), output.status.code(), text(&output.stderr))
}

fn row(stack: &Stack) -> Value {
    stack.ledger().unwrap().swap_remove(0).into()
}

fn unanswered(operations: &[(Operation, Effect)]) -> Vec<Rule> {
    operations.iter().map(|(operation, effect)| Rule::always(effect.clone()).on(*operation)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_was_charged_is_swept_to_paid() {
    let rules = unanswered(&[
        (Operation::Confirm, Effect::ResetAfter {}),
        (Operation::Retrieve, Effect::ResetBefore {}),
    ]);
    let stack = in_doubt(Provider::Stripe, rules, &[]).await;
    stack.provider().set_script(Script::default());
    let swept = sweep(&stack, Provider::Stripe, &[]).await;
    let charge = stack.charges()[0].charge_id.clone();
    assert_eq!((&swept["decision"], &swept["charge_id"]), (&json!("ack"), &json!(charge)));
    assert_eq!((&row(&stack)["state"], &row(&stack)["charge_id"]), (&json!("PAID"), &json!(charge)));
    assert_eq!(stack.charges().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_was_not_charged_is_left_to_the_next_delivery() {
    let rules = unanswered(&[
        (Operation::Confirm, Effect::ResetBefore {}),
        (Operation::Retrieve, Effect::ResetBefore {}),
    ]);
    let stack = in_doubt(Provider::Stripe, rules, &[]).await;
    stack.provider().set_script(Script::default());
    let swept = sweep(&stack, Provider::Stripe, &[]).await;
    assert_eq!(swept["reason"], "GATEWAY:WAITS_FOR_DELIVERY");
    let row = row(&stack);
    assert_eq!((&row["state"], &row["lease_until"]), (&json!("PREPARED"), &json!(0)));
    assert_eq!(stack.charges().len(), 0, "the sweeper moves no money");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_one_shot_charge_is_swept_by_look_up_alone() {
    let rules = unanswered(&[(Operation::Charge, Effect::ResetAfter {})]);
    let stack = in_doubt(Provider::Http, rules, &[]).await;
    stack.provider().set_script(Script::default());
    let blind = sweep(&stack, Provider::Http, &[]).await;
    assert_eq!(blind["reason"], "GATEWAY:WAITS_FOR_DELIVERY", "inside the window the same key settles it");
    assert_eq!(row(&stack)["state"], "SENT");
    let found = sweep(&stack, Provider::Http, &[("GATEWAY_LOOKUP", "on")]).await;
    assert_eq!(found["decision"], "ack");
    assert_eq!(row(&stack)["state"], "PAID");
    assert_eq!(stack.charges().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_one_shot_charge_that_nobody_finds_is_held_once_its_key_is_old() {
    let rules = unanswered(&[(Operation::Charge, Effect::ResetBefore {})]);
    let stack = in_doubt(Provider::Http, rules, &[]).await;
    let mut old = stack.ledger().unwrap().swap_remove(0);
    old.insert("first_sent_at".into(), json!(Clock::system().now().as_millis() - 80_000_000));
    stack.put_row(&old).unwrap();
    let swept = sweep(&stack, Provider::Http, &[("GATEWAY_LOOKUP", "on")]).await;
    assert_eq!(swept["reason"], "HELD:UNKNOWN_EXPIRED");
    assert_eq!((&row(&stack)["state"], &row(&stack)["attention"]), (&json!("HELD"), &json!("HELD")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_another_account_is_left_alone() {
    let rules = unanswered(&[(Operation::Charge, Effect::ResetAfter {})]);
    let stack = in_doubt(Provider::Http, rules, &[]).await;
    let before = row(&stack);
    // Settings with which nobody can be asked are no success.
    let settings = [("GATEWAY_LOOKUP", "on"), ("GATEWAY_ACCOUNT", "other")];
    let (swept, code, _) = sweeping(&stack, Provider::Http, &settings).await;
    assert_eq!((swept["reason"].as_str(), code), (Some("GATEWAY:OTHER_PROVIDER"), Some(1)));
    assert_eq!(row(&stack), before);
    let nowhere = [("GATEWAY_LOOKUP", "on"), ("GATEWAY_URL", "http://127.0.0.1:1/charges")];
    let (swept, code, said) = sweeping(&stack, Provider::Http, &nowhere).await;
    assert_eq!((swept["reason"].as_str(), code), (Some("GATEWAY:NOT_SENT"), Some(1)));
    assert!(said.contains("1 order could not be asked about"), "{said}");
}

/// The conditions and writes of a decision in DynamoDB are those of the transition, for every state.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_writes_in_dynamodb_what_the_transition_says() {
    let bench = Bench::start().await;
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::v2026_01_12())
        .region(aws_sdk_dynamodb::config::Region::from_static("eu-central-1"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::for_tests())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(bench.dynamodb.url());
    let ledger = DynamoDbLedger::new(aws_sdk_dynamodb::Client::from_conf(config.build()), super::TABLE);
    let verdicts = [
        Verdict::Paid { charge_id: "ch_9".to_owned(), expires_at: 9 },
        Verdict::Declined { expires_at: 9 },
        Verdict::Retry,
    ];
    let id = OrderId::parse("o-1").unwrap();
    for state in State::ALL {
        for verdict in &verdicts {
            for fence in [3, 4] {
                let more = json!({
                    "fence": 3, "handle": "pi_1", "charge_id": "ch_1", "provider_request_id": "req_1",
                    "held_reason": "RESTORED", "attention": "HELD", "error": "before", "lease_until": 5,
                    "first_sent_at": 6, "expires_at": 7, "handle_generation": 2, "message_id": "m-1",
                });
                bench.record(&order("o-1"), state.as_str(), more);
                let Found::Entry(before) = ledger.get(&id).await.unwrap() else { panic!("no record") };
                let intent = Intent::Resolve(Resolution {
                    fence,
                    token: "person".to_owned(),
                    by: "RESOLVED:alex".to_owned(),
                    verdict: verdict.clone(),
                    now: Timestamp::from_millis(8),
                });
                let allowed = intent.apply(Some(&before));
                let applied = ledger.apply(&id, &intent).await.unwrap();
                let after = ledger.get(&id).await.unwrap();
                let wanted = Found::Entry(Box::new(allowed.clone().unwrap_or(*before)));
                assert_eq!(after, wanted, "{state:?} {verdict:?} {fence}");
                assert_eq!(matches!(applied, Applied::Written { .. }), allowed.is_some());
            }
        }
    }
}
