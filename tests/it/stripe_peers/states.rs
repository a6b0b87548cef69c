//! The states of a PaymentIntent: the real gateway, and the real function, against localstripe.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use charge_once::{
    backoff::Random,
    clock::Clock,
    decision::Code,
    gateway::{
        GatewayErrorKind, HandleStatus, IdempotencyKey, Operation, Sighting, Transport, TwoPhaseGateway,
        secret::{Credential, Secret},
        simulated::Script,
        stripe::StripeGateway,
    },
    generate::event_of,
    local::{
        environment::Provider,
        runtime_api::InvocationOutcome,
        stack::{Stack, StackConfig},
    },
    order::{Order, OrderRules},
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    client::{get, post},
    peer,
};
use crate::situations::proxy::LossyProxy;

const WITHIN: Duration = Duration::from_secs(10);
const GOOD: &str = "4242424242424242";
const DECLINES: &str = "4000000000000341";

fn localstripe() -> String {
    peer("LOCALSTRIPE_URL")
}

fn gateway() -> StripeGateway {
    let credential = Credential::fixed(Some(Secret::new("sk_test_peer").unwrap()), Clock::system());
    let url = localstripe().parse().unwrap();
    StripeGateway::new(Transport::new().unwrap(), url, credential, "peer", Clock::system()).unwrap()
}

/// A payment method that nothing else charges, so that its charges are those of one order.
async fn payment_method(number: &str) -> String {
    let form = [
        ("type", "card"),
        ("card[number]", number),
        ("card[exp_month]", "12"),
        ("card[exp_year]", "2030"),
        ("card[cvc]", "123"),
    ];
    let answer = post(&format!("{}/v1/payment_methods", localstripe()), None, &form).await;
    answer.body["id"].as_str().unwrap_or_else(|| panic!("{}", answer.body)).to_owned()
}

fn body(order_id: &str, amount: &str, method: &str) -> String {
    format!(r#"{{"order_id":"{order_id}","amount":{amount},"currency":"EUR","payment_method":"{method}"}}"#)
}

async fn order(number: &str) -> Order {
    let id = format!("o-{}", Random::System.token());
    Order::parse(&body(&id, "49.90", &payment_method(number).await), &rules()).unwrap()
}

fn rules() -> OrderRules {
    OrderRules { default_currency: None, max_amount_minor: 99_999_999 }
}

fn key(order: &Order, operation: Operation) -> IdempotencyKey {
    IdempotencyKey::new("stripe:peer:test", order.id(), order.attempt(), operation)
}

async fn prepared(gateway: &StripeGateway, order: &Order) -> String {
    gateway.prepare(order, &key(order, Operation::Create { generation: 0 }), WITHIN).await.unwrap()
}

async fn intent(handle: &str) -> Value {
    get(&format!("{}/v1/payment_intents/{handle}", localstripe())).await
}

fn is_charged(sighting: &Sighting) -> bool {
    sighting.is_ours && matches!(sighting.status, HandleStatus::Succeeded(_))
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn a_good_card_is_charged_and_the_intent_says_so_afterwards() {
    let (gateway, order) = (gateway(), order(GOOD).await);
    let handle = prepared(&gateway, &order).await;
    let before = gateway.inspect(&order, &handle, WITHIN).await.unwrap();
    assert_eq!(before, Sighting { is_ours: true, status: HandleStatus::Ready { untouched: true } });
    let commit = key(&order, Operation::Commit { fence: 1 });
    assert!(is_charged(&gateway.commit(&order, &handle, &commit, WITHIN).await.unwrap()));
    assert!(is_charged(&gateway.inspect(&order, &handle, WITHIN).await.unwrap()));
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn a_declined_intent_is_sealed_for_good() {
    let (gateway, order) = (gateway(), order(DECLINES).await);
    let handle = prepared(&gateway, &order).await;
    let commit = key(&order, Operation::Commit { fence: 1 });
    let declined = gateway.commit(&order, &handle, &commit, WITHIN).await.unwrap();
    assert_eq!(declined.status, HandleStatus::Failed(Code::new("card_declined")));
    let seal = key(&order, Operation::Seal { generation: 0, fence: 1 });
    let sealed = gateway.seal(&order, &handle, &seal, WITHIN).await.unwrap();
    assert!(sealed.is_ours && matches!(sealed.status, HandleStatus::Sealed(_)), "{sealed:?}");
    let commit = key(&order, Operation::Commit { fence: 2 });
    let refused = gateway.commit(&order, &handle, &commit, WITHIN).await.unwrap_err();
    assert!(matches!(refused.kind, GatewayErrorKind::Rejected(_)), "{refused}");
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn a_charged_intent_cannot_be_sealed() {
    let (gateway, order) = (gateway(), order(GOOD).await);
    let handle = prepared(&gateway, &order).await;
    gateway.commit(&order, &handle, &key(&order, Operation::Commit { fence: 1 }), WITHIN).await.unwrap();
    let seal = key(&order, Operation::Seal { generation: 0, fence: 1 });
    let refused = gateway.seal(&order, &handle, &seal, WITHIN).await.unwrap_err();
    assert!(matches!(refused.kind, GatewayErrorKind::Rejected(_)), "{refused}");
    assert!(is_charged(&gateway.inspect(&order, &handle, WITHIN).await.unwrap()));
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn an_intent_of_another_amount_or_order_is_not_ours() {
    let (gateway, order) = (gateway(), order(GOOD).await);
    let handle = prepared(&gateway, &order).await;
    let method = order.payment_method().unwrap();
    let other_amount = Order::parse(&body(order.id().as_str(), "49.91", method), &rules()).unwrap();
    let other_order = Order::parse(&body("o-other", "49.90", method), &rules()).unwrap();
    for other in [other_amount, other_order] {
        assert!(!gateway.inspect(&other, &handle, WITHIN).await.unwrap().is_ours);
    }
    assert!(gateway.inspect(&order, &handle, WITHIN).await.unwrap().is_ours);
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn eight_confirms_at_once_charge_once() {
    let (gateway, order) = (gateway(), order(GOOD).await);
    let handle = prepared(&gateway, &order).await;
    let before = charges().await;
    let keys: Vec<_> = (1..=8).map(|fence| key(&order, Operation::Commit { fence })).collect();
    let answers = join_all(keys.iter().map(|key| gateway.commit(&order, &handle, key, WITHIN))).await;
    assert_eq!(answers.iter().flatten().filter(|sighting| is_charged(sighting)).count(), 1, "{answers:?}");
    assert_eq!(intent(&handle).await["status"], "succeeded");
    assert_eq!(charges().await - before, 1);
}

/// How many charges localstripe has; only this test and the next make any while they count.
async fn charges() -> usize {
    get(&format!("{}/v1/charges?limit=1000", localstripe())).await["data"].as_array().unwrap().len()
}

/// The function behind a proxy to localstripe.
async fn function(proxy: &LossyProxy) -> Arc<Stack> {
    let settings = [("GATEWAY_URL", proxy.url()), ("GATEWAY_SECRET", "sk_test_peer".to_owned())];
    let config = StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Stripe,
        script: Script::default(),
        data: None,
        log: None,
        settings: settings
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    Arc::new(Stack::start(config).await.unwrap())
}

/// What a minute does to a lease: it ends.
fn let_the_lease_end(stack: &Stack) {
    for mut row in stack.ledger().unwrap() {
        row.insert("lease_until".into(), json!(Clock::system().now().as_millis() - 60_000));
        stack.put_row(&row).unwrap();
    }
}

/// Delivers the order until the function has nothing left to report.
async fn deliver_until_done(stack: &Stack, event: &[u8]) {
    for _ in 0..10 {
        let invocation = stack.invoke(event.to_vec()).await.unwrap();
        if matches!(&invocation.outcome, InvocationOutcome::Response(answer) if &answer[..] == br#"{"batchItemFailures":[]}"#)
        {
            return;
        }
        let_the_lease_end(stack);
    }
    panic!("not settled: {:?}", stack.ledger());
}

#[tokio::test]
#[ignore = "needs localstripe; run by make peers"]
async fn wherever_the_function_dies_the_order_is_charged_once() {
    // After each request that localstripe has executed and the function has no reply to.
    for (request, card, charged) in [
        ("POST /v1/payment_intents HTTP", GOOD, 1),
        ("/confirm HTTP", GOOD, 1),
        ("/confirm HTTP", DECLINES, 0),
        ("/cancel HTTP", DECLINES, 0),
    ] {
        let proxy = LossyProxy::start().await;
        proxy.connect_to(&localstripe());
        let stack = function(&proxy).await;
        let id = format!("o-{}", Random::System.token());
        let order = body(&id, "49.90", &payment_method(card).await);
        let event = event_of(&order, false, 1, Clock::system().now()).to_string().into_bytes();
        let before = succeeded_of(&id).await;
        proxy.lose_reply_to(request, 1);
        let dying = stack.invoke(event.clone());
        let killing = async {
            proxy.has_lost().await;
            stack.kill_function().await;
        };
        tokio::join!(async { drop(dying.await) }, killing);
        let_the_lease_end(&stack);
        match charged {
            1 => deliver_until_done(&stack, &event).await,
            _ => settle_declined(&stack, &event).await,
        }
        assert_eq!(succeeded_of(&id).await - before, charged, "{request} {card}");
    }
}

/// A declined order is reported as poison; what counts is what the ledger says of it.
async fn settle_declined(stack: &Stack, event: &[u8]) {
    for _ in 0..10 {
        stack.invoke(event.to_vec()).await.unwrap();
        if stack.ledger().unwrap().iter().any(|row| row.get("state") == Some(&"DECLINED".into())) {
            return;
        }
        let_the_lease_end(stack);
    }
    panic!("not declined: {:?}", stack.ledger());
}

/// How many intents of an order have charged.
async fn succeeded_of(order_id: &str) -> usize {
    let list = get(&format!("{}/v1/payment_intents?limit=1000", localstripe())).await;
    let intents = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    intents
        .iter()
        .filter(|intent| intent["metadata"]["order_id"] == order_id && intent["status"] == "succeeded")
        .count()
}
