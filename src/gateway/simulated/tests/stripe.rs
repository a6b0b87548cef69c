//! Stripe's PaymentIntents.

use super::*;
use crate::gateway::simulated::{Contract, Effect, Operation, Rule};

const CONFIRM: &str = "off_session=true&error_on_requires_action=true";

fn confirm(intent: &str, key: &str) -> Request {
    post(&format!("/{intent}/confirm"), key, CONFIRM)
}

fn cancel(intent: &str, key: &str) -> Request {
    post(&format!("/{intent}/cancel"), key, "cancellation_reason=abandoned")
}

#[test]
fn an_intent_is_created_confirmed_and_retrieved() {
    let mut provider = provider(Script::default());
    let (status, intent) = ask(&mut provider, &post("", "k", &intent_form("o-1", "pm_card_visa")));
    assert_eq!((status, &intent["status"]), (200, &json!("requires_confirmation")));
    assert_eq!(intent["metadata"], json!({"order_id": "o-1", "attempt": "2"}));
    assert_eq!((&intent["amount"], &intent["currency"]), (&json!(4990), &json!("eur")));
    assert_eq!(intent["latest_charge"], Value::Null);
    assert!(provider.charges().is_empty());

    let id = intent["id"].as_str().unwrap();
    let (status, intent) = ask(&mut provider, &confirm(id, "c"));
    assert_eq!((status, &intent["status"]), (200, &json!("succeeded")));
    assert_eq!(intent["latest_charge"], "ch_sim_1");
    assert_eq!(ask(&mut provider, &get(id)), (200, intent));

    let charge = provider.charges().remove(0);
    assert_eq!((charge.order_id.as_str(), charge.attempt, charge.currency.as_str()), ("o-1", 2, "EUR"));
    assert_eq!(charge.gateway, Contract::Stripe);
}

#[test]
fn an_intent_charges_at_most_once_whatever_the_keys() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm_card_visa");
    ask(&mut provider, &confirm(&id, "c-1"));
    for key in ["c-2", "c-3"] {
        let (status, body) = ask(&mut provider, &confirm(&id, key));
        assert_eq!((status, &body["error"]["code"]), (400, &json!("payment_intent_unexpected_state")));
        assert_eq!(body["error"]["payment_intent"]["status"], "succeeded");
    }
    let (status, body) = ask(&mut provider, &cancel(&id, "s"));
    assert_eq!((status, &body["error"]["code"]), (400, &json!("payment_intent_unexpected_state")));
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn a_decline_opens_the_intent_again_and_is_replayed() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm_card_chargeDeclinedInsufficientFunds");
    let (status, body) = ask(&mut provider, &confirm(&id, "c"));
    let error = &body["error"];
    assert_eq!(
        (status, &error["type"], &error["code"]),
        (402, &json!("card_error"), &json!("card_declined"))
    );
    assert_eq!(error["decline_code"], "insufficient_funds");
    assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
    assert_eq!(error["payment_intent"]["last_payment_error"]["decline_code"], "insufficient_funds");

    let replayed = answer(&mut provider, &confirm(&id, "c"));
    assert_eq!((replayed.status.as_u16(), replayed.header("idempotent-replayed")), (402, Some("true")));
    let (status, body) = ask(&mut provider, &confirm(&id, "c-2"));
    assert_eq!((status, &body["error"]["code"]), (400, &json!("payment_intent_unexpected_state")));
    assert!(provider.charges().is_empty());
}

#[test]
fn a_declined_intent_can_be_paid_with_another_card() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm_card_chargeDeclined");
    ask(&mut provider, &confirm(&id, "c"));
    let other = post(&format!("/{id}/confirm"), "c-2", "payment_method=pm_card_visa");
    assert_eq!(ask(&mut provider, &other).1["status"], "succeeded");
}

#[test]
fn a_card_that_wants_the_customer() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm_card_authenticationRequired");
    let present = post(&format!("/{id}/confirm"), "c-1", "");
    assert_eq!(ask(&mut provider, &present).1["status"], "requires_action");
    let (status, body) = ask(&mut provider, &confirm(&id, "c-2"));
    assert_eq!((status, &body["error"]["code"]), (402, &json!("authentication_required")));
    assert_eq!(body["error"]["payment_intent"]["status"], "requires_payment_method");
}

#[test]
fn a_cancelled_intent_keeps_its_reason_and_never_charges() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm_card_visa");
    let (status, intent) = ask(&mut provider, &cancel(&id, "s"));
    assert_eq!((status, &intent["status"]), (200, &json!("canceled")));
    assert_eq!(intent["cancellation_reason"], "abandoned");
    for request in [confirm(&id, "c"), cancel(&id, "s-2")] {
        assert_eq!(ask(&mut provider, &request).1["error"]["payment_intent"]["status"], "canceled");
    }
    assert!(provider.charges().is_empty());
}

#[test]
fn an_open_intent_expires_by_itself_and_a_paid_one_does_not() {
    let hands = Hands::default();
    let expiring = Script { intents_expire_after_ms: Some(1000), ..Script::default() };
    let mut provider = Provider::new(hands.clock(), expiring);
    let (open, paid) = (created(&mut provider, "o-1", "pm"), created(&mut provider, "o-2", "pm"));
    ask(&mut provider, &confirm(&paid, "c"));
    hands.forward(999);
    assert_eq!(ask(&mut provider, &get(&open)).1["status"], "requires_confirmation");
    hands.forward(1);
    let (_, intent) = ask(&mut provider, &get(&open));
    assert_eq!(
        (&intent["status"], &intent["cancellation_reason"]),
        (&json!("canceled"), &json!("automatic"))
    );
    assert_eq!(ask(&mut provider, &get(&paid)).1["status"], "succeeded");
}

#[test]
fn processing_settles_and_then_the_intent_is_paid_once() {
    let hands = Hands::default();
    let script = Script::of([Rule::always(Effect::processing()).on(Operation::Confirm)]);
    let mut provider = Provider::new(hands.clock(), script);
    let id = created(&mut provider, "o-1", "pm");
    assert_eq!(ask(&mut provider, &confirm(&id, "c")).1["status"], "processing");
    for request in [confirm(&id, "c-2"), cancel(&id, "s")] {
        assert_eq!(ask(&mut provider, &request).1["error"]["code"], "payment_intent_unexpected_state");
    }
    hands.forward(30_000);
    assert_eq!(ask(&mut provider, &get(&id)).1["status"], "succeeded");
    assert_eq!(ask(&mut provider, &confirm(&id, "c")).1["status"], "processing", "a replay is verbatim");
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn a_processing_charge_that_fails_opens_the_intent_again() {
    let mut provider = provider(Script::of([Rule::always(Effect::processing())]));
    let id = created(&mut provider, "o-1", "pm");
    ask(&mut provider, &confirm(&id, "c"));
    provider.settle_processing(Err("insufficient_funds".into()));
    let (_, intent) = ask(&mut provider, &get(&id));
    assert_eq!(intent["status"], "requires_payment_method");
    assert_eq!(intent["last_payment_error"]["decline_code"], "insufficient_funds");
}

#[test]
fn keys_are_judged_by_parameters_and_endpoint() {
    let mut provider = provider(Script::default());
    let id = created(&mut provider, "o-1", "pm");
    let reordered = "metadata[attempt]=2&currency=eur&amount=4990&payment_method=pm\
                     &metadata%5Border_id%5D=o-1&payment_method_types[]=card";
    let replayed = answer(&mut provider, &post("", "create-o-1", reordered));
    assert_eq!((replayed.status.as_u16(), replayed.header("idempotent-replayed")), (200, Some("true")));
    let other_amount = post("", "create-o-1", &intent_form("o-1", "pm").replace("4990", "4991"));
    for request in [other_amount, confirm(&id, "create-o-1")] {
        let (status, body) = ask(&mut provider, &request);
        assert_eq!((status, &body["error"]["type"]), (400, &json!("idempotency_error")));
    }
    assert!(provider.charges().is_empty());
}

#[test]
fn a_key_in_use_and_a_forgotten_key() {
    let hands = Hands::default();
    let script = Script::of([Rule::always(Effect::Delay { ms: 5 }).on(Operation::Create).nth(1)]);
    let mut provider = Provider::new(hands.clock(), script);
    let create = post("", "k", &intent_form("o-1", "pm"));
    let Reply::Delayed(_, ticket) = provider.handle(&create) else { panic!("not delayed") };
    let (status, body) = ask(&mut provider, &create);
    assert_eq!((status, &body["error"]["code"]), (409, &json!("idempotency_key_in_use")));
    provider.finish(ticket);
    assert_eq!(ask(&mut provider, &create).1["id"], "pi_sim_1");
    hands.forward(24 * HOUR);
    assert_eq!(ask(&mut provider, &create).1["id"], "pi_sim_2");
}

#[test]
fn unusable_requests_are_refused_in_stripes_words() {
    let mut provider = provider(Script::default());
    let cases = [
        (post("", "a", "amount=0&currency=eur"), 400, "parameter_invalid_integer"),
        (post("", "a", "amount=10"), 400, "parameter_missing"),
        (post("", "a", "amount=10&currency=eur&colour=red"), 400, "parameter_unknown"),
        (post("", "a", "amount=10&currency=eur&payment_method=pm_missing"), 400, "resource_missing"),
        (get("pi_none"), 404, "resource_missing"),
        (confirm("pi_none", "b"), 404, "resource_missing"),
        (Request::new(Method::GET, "/v1/charges"), 404, "url_invalid"),
        (Request::new(Method::GET, "/v1/payment_intents"), 404, "url_invalid"),
    ];
    for (request, status, code) in cases {
        let (got, body) = ask(&mut provider, &request);
        assert_eq!((got, body["error"]["code"].as_str()), (status, Some(code)), "{request:?}");
    }
    assert_eq!(
        ask(&mut provider, &post("", "a", "amount=10&currency=eur")).1["status"],
        "requires_payment_method"
    );
    assert_eq!(
        ask(&mut provider, &confirm("pi_sim_1", "c")).1["error"]["code"],
        "payment_intent_unexpected_state"
    );
}

#[test]
fn create_may_confirm_at_once() {
    let mut provider = provider(Script::default());
    let form = format!("{}&confirm=true", intent_form("o-1", "pm_card_visa"));
    assert_eq!(ask(&mut provider, &post("", "k", &form)).1["status"], "succeeded");
    let declining = format!("{}&confirm=true", intent_form("o-2", "pm_card_chargeDeclined"));
    assert_eq!(ask(&mut provider, &post("", "k-2", &declining)).0, 402);
}

#[test]
fn every_answer_has_a_request_id_and_a_wrong_secret_is_401() {
    let mut provider = provider(Script::default());
    let first = answer(&mut provider, &get("pi_none"));
    assert_eq!(first.header("request-id"), Some("req_sim_1"));
    provider.require_secret(Some("sk_test"));
    let refused = answer(&mut provider, &get("pi_none").with_bearer("sk_live"));
    assert_eq!((refused.status.as_u16(), refused.header("request-id")), (401, Some("req_sim_2")));
    assert_eq!(ask(&mut provider, &get("pi_none").with_bearer("sk_test")).0, 404);
}

#[test]
fn calls_on_an_intent_belong_to_its_order() {
    let script = Script::of([Rule::always(Effect::status(500)).order("o-2").on(Operation::Confirm)]);
    let mut provider = provider(script);
    let (first, second) = (created(&mut provider, "o-1", "pm"), created(&mut provider, "o-2", "pm"));
    assert_eq!(ask(&mut provider, &confirm(&first, "c-1")).0, 200);
    assert_eq!(ask(&mut provider, &confirm(&second, "c-2")).0, 500);
    assert_eq!(provider.requests()[3].order_id.as_deref(), Some("o-2"));
    assert_eq!(charged(&mut provider), ["o-1"]);
}
