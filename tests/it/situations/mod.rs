//! The situations in which a lease and an idempotency key alone charge twice, each through the real binary,
//! with a one-shot and with a two-phase provider. One charge each.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use charge_once::{
    clock::{Clock, Timestamp},
    gateway::simulated::{Effect, Operation, Rule, Script},
    local::{
        environment::Provider,
        runtime_api::InvocationOutcome,
        stack::{Invocation, Stack, StackConfig},
    },
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::proxy::LossyProxy;

pub(crate) mod proxy;

const BOTH: [Provider; 2] = [Provider::Http, Provider::Stripe];

/// The operation by which a provider moves money.
fn charging(provider: Provider) -> Operation {
    match provider {
        Provider::Http => Operation::Charge,
        Provider::Stripe => Operation::Confirm,
    }
}

async fn stack(provider: Provider, script: Script, settings: &[(&str, &str)]) -> Stack {
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider,
        script,
        data: None,
        log: None,
        settings,
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    Stack::start(config).await.unwrap()
}

/// The order, as the message `message_id` brings it for the `receives`th time.
fn delivery(message_id: &str, receives: u32) -> Vec<u8> {
    delivery_of("pm_card_visa", Clock::system().now(), message_id, receives)
}

fn delivery_of(payment_method: &str, sent_at: Timestamp, message_id: &str, receives: u32) -> Vec<u8> {
    let body =
        json!({"order_id": "o-1", "amount": 49.90, "currency": "EUR", "payment_method": payment_method});
    let now = sent_at.as_millis().to_string();
    let record = json!({
        "messageId": message_id,
        "receiptHandle": format!("{message_id}-{receives}"),
        "body": body.to_string(),
        "attributes": {"ApproximateReceiveCount": receives.to_string(), "SentTimestamp": now},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
    });
    json!({ "Records": [record] }).to_string().into_bytes()
}

fn decision(invocation: &Invocation) -> (String, String) {
    let line: Value = invocation
        .log
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line.get("decision").is_some())
        .unwrap_or_else(|| panic!("no record line in {:#?}", invocation.log));
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (text("decision"), text("reason"))
}

/// What a minute does to a lease: it ends.
fn let_the_lease_end(stack: &Stack) {
    for mut row in stack.ledger().unwrap() {
        row.insert("lease_until".into(), json!(Clock::system().now().as_millis() - 60_000));
        stack.put_row(&row).unwrap();
    }
}

fn assert_charged_once(stack: &Stack, provider: Provider) {
    let charges = stack.charges();
    assert_eq!(charges.len(), 1, "{provider:?}: {charges:?}");
    assert_eq!((charges[0].order_id.as_str(), charges[0].amount_minor), ("o-1", 4990));
    let rows = stack.ledger().unwrap();
    assert_eq!((rows.len(), &rows[0]["state"]), (1, &json!("PAID")), "{provider:?}");
    assert_eq!(rows[0]["charge_id"].as_str(), Some(charges[0].charge_id.as_str()), "{provider:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_times_out_after_charging() {
    for provider in BOTH {
        let hang = Rule::always(Effect::HangAfter {}).on(charging(provider)).times(1);
        let stack = stack(provider, Script::of([hang]), &[("CHARGE_TIMEOUT", "300ms")]).await;
        let first = stack.invoke(delivery("m-1", 1)).await.unwrap();
        let second = stack.invoke(delivery("m-1", 2)).await.unwrap();
        match provider {
            // Nothing to ask: the outcome is unknown until the provider repeats its answer.
            Provider::Http => assert_eq!(decision(&first), ("retry".into(), "GATEWAY:UNKNOWN".into())),
            // The handle says what became of it.
            Provider::Stripe => assert_eq!(decision(&first), ("ack".into(), "CHARGED".into())),
        }
        assert_eq!(decision(&second).0, "ack", "{provider:?}");
        assert_charged_once(&stack, provider);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_is_killed_in_the_middle_of_a_charge() {
    for provider in BOTH {
        let hang = Rule::always(Effect::HangAfter {}).on(charging(provider)).times(1);
        let stack = Arc::new(stack(provider, Script::of([hang]), &[]).await);
        let mut first = JoinSet::new();
        first.spawn({
            let stack = Arc::clone(&stack);
            async move { stack.invoke(delivery("m-1", 1)).await.unwrap() }
        });
        stack.provider().until(|provider| provider.charges().len() == 1).await;
        stack.kill_function().await;
        assert_eq!(first.join_next().await.unwrap().unwrap().outcome, InvocationOutcome::Crashed);

        let busy = stack.invoke(delivery("m-1", 2)).await.unwrap();
        assert_eq!(decision(&busy), ("retry".into(), "BUSY".into()), "the dead owner's lease is respected");
        let_the_lease_end(&stack);
        let taken_over = stack.invoke(delivery("m-1", 3)).await.unwrap();
        assert_eq!(decision(&taken_over), ("ack".into(), "CHARGED".into()));
        assert_charged_once(&stack, provider);
    }
}

/// Delivers the order until the provider has seen the operation, and kills the process there.
async fn kill_at(stack: &Arc<Stack>, event: Vec<u8>, operation: Operation) {
    let mut first = JoinSet::new();
    first.spawn({
        let stack = Arc::clone(stack);
        async move { stack.invoke(event).await.unwrap() }
    });
    let seen = |it: &charge_once::gateway::simulated::LoggedRequest| it.operation == Some(operation);
    stack.provider().until(|provider| provider.requests().iter().any(seen)).await;
    stack.kill_function().await;
    assert_eq!(first.join_next().await.unwrap().unwrap().outcome, InvocationOutcome::Crashed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_order_whose_process_is_killed_before_the_seal_is_never_charged() {
    let hang = Rule::always(Effect::HangBefore {}).on(Operation::Cancel).times(1);
    let stack = Arc::new(stack(Provider::Stripe, Script::of([hang]), &[]).await);
    let event = |receives| delivery_of("pm_card_chargeDeclined", Clock::system().now(), "m-1", receives);
    kill_at(&stack, event(1), Operation::Cancel).await;
    assert_eq!(stack.ledger().unwrap()[0]["state"], json!("PREPARED"), "not declined before it is sealed");
    let_the_lease_end(&stack);
    let second = stack.invoke(event(2)).await.unwrap();
    assert_eq!(decision(&second).0, "poison");
    assert_eq!((stack.charges().len(), &stack.ledger().unwrap()[0]["state"]), (0, &json!("DECLINED")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_was_not_recorded_is_found_after_twenty_days_in_the_dead_letter_queue() {
    const DAYS: Duration = Duration::from_secs(20 * 24 * 3600);
    let hang = Rule::always(Effect::HangAfter {}).on(Operation::Confirm).times(1);
    let stack = Arc::new(stack(Provider::Stripe, Script::of([hang]), &[]).await);
    let sent_at = Clock::system().now().minus(DAYS);
    kill_at(&stack, delivery_of("pm_card_visa", sent_at, "m-1", 1), Operation::Confirm).await;
    stack.provider().forget_keys();
    for mut row in stack.ledger().unwrap() {
        for instant in ["first_seen_at", "first_sent_at", "state_changed_at", "lease_until"] {
            row.insert(instant.into(), json!(sent_at.as_millis()));
        }
        stack.put_row(&row).unwrap();
    }
    let redriven = stack.invoke(delivery_of("pm_card_visa", sent_at, "m-2", 1)).await.unwrap();
    assert_eq!(decision(&redriven), ("ack".into(), "CHARGED".into()));
    assert_charged_once(&stack, Provider::Stripe);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_owner_finishes_late() {
    for provider in BOTH {
        // The first owner's request is on its way until the second owner's arrives.
        let late = Rule::always(Effect::Late { after: Some(1) }).on(charging(provider)).times(1);
        let settings = [("AWS_LAMBDA_MAX_CONCURRENCY", "2"), ("CHARGE_TIMEOUT", "3s")];
        let stack = Arc::new(stack(provider, Script::of([late]), &settings).await);
        let mut stale = JoinSet::new();
        stale.spawn({
            let stack = Arc::clone(&stack);
            async move { stack.outcome_of(delivery("m-1", 1).into()).await.unwrap() }
        });
        let sent = charging(provider);
        stack
            .provider()
            .until(|it| it.requests().iter().any(|request| request.operation == Some(sent)))
            .await;
        let_the_lease_end(&stack);
        let second = stack.invoke(delivery("m-1", 2)).await.unwrap();
        assert_eq!(decision(&second), ("ack".into(), "CHARGED".into()));
        let answer = stale.join_next().await.unwrap().unwrap();
        assert!(matches!(answer, InvocationOutcome::Response(_)), "{answer:?}");
        assert_charged_once(&stack, provider);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reply_to_a_ledger_write_is_lost() {
    for provider in BOTH {
        let writes = if matches!(provider, Provider::Http) { 2 } else { 3 };
        for lost in 1..=writes {
            let proxy = LossyProxy::start().await;
            let settings = [("AWS_ENDPOINT_URL_DYNAMODB", proxy.url())];
            let stack =
                stack(provider, Script::default(), &settings.each_ref().map(|(k, v)| (*k, v.as_str()))).await;
            proxy.connect_to(&stack.dynamodb_url());
            proxy.lose_reply_to("UpdateItem", lost);
            let invocation = stack.invoke(delivery("m-1", 1)).await.unwrap();
            assert_eq!(decision(&invocation), ("ack".into(), "CHARGED".into()), "{provider:?}, write {lost}");
            assert_eq!(proxy.lost(), 1, "{provider:?}, write {lost}");
            assert_charged_once(&stack, provider);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_producer_sends_the_order_again_under_a_new_message_id() {
    for provider in BOTH {
        let stack = stack(provider, Script::default(), &[]).await;
        let first = stack.invoke(delivery("m-1", 1)).await.unwrap();
        let again = stack.invoke(delivery("m-2", 1)).await.unwrap();
        assert_eq!(decision(&first), ("ack".into(), "CHARGED".into()));
        assert_eq!(decision(&again), ("ack".into(), "DUPLICATE".into()));
        assert_charged_once(&stack, provider);
    }
}

/// The setting that must stop the start, and what the function says.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_setting_stops_the_start_with_its_name() {
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        script: Script::default(),
        data: None,
        log: None,
        settings: [("CONCURRENCY".to_owned(), "many".to_owned())].into(),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    let error = Stack::start(config).await.unwrap_err().to_string();
    assert!(error.contains("CONCURRENCY must be an integer from 1 to 1000"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_sends_nothing_to_the_dead_letter_queue() {
    let stack = stack(Provider::Stripe, Script::default(), &[("CONCURRENCY", "2")]).await;
    stack.provider().require_secret(Some("sk_test_the_new_one"));
    let event = {
        let now = Clock::system().now().as_millis().to_string();
        let record = |number: usize| {
            let order_id = format!("o-{number}");
            let body = json!({"order_id": order_id, "amount": 1, "currency": "EUR", "payment_method": "pm_card_visa"});
            json!({
                "messageId": format!("m-{number}"),
                "receiptHandle": format!("rh-{number}"),
                "body": body.to_string(),
                "attributes": {"SentTimestamp": now},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
            })
        };
        json!({ "Records": (0..12).map(record).collect::<Vec<_>>() }).to_string().into_bytes()
    };
    let refused = stack.invoke(event.clone()).await.unwrap();
    assert_eq!(refused.records.len(), 12);
    assert!(refused.records.iter().all(|record| record.text("decision") == "retry"), "{:#?}", refused.log);
    let left = refused.records.iter().filter(|record| record.text("reason") == "NOT_STARTED:BREAKER").count();
    assert!(left >= 9, "the breaker opens at the first refusal: {left}");
    assert_eq!(stack.charges().len(), 0);

    stack.provider().require_secret(Some("sk_test_local"));
    let healed = stack.invoke(event).await.unwrap();
    assert!(healed.records.iter().all(|record| record.text("reason") == "CHARGED"), "{:#?}", healed.log);
    assert_eq!(stack.charges().len(), 12);
}
