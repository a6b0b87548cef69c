//! The one-shot contract.

use super::*;
use crate::gateway::simulated::{Contract, Effect, Operation, Rule, SimulatedCharge};

#[test]
fn a_good_card_is_charged_once_for_a_key() {
    let mut provider = provider(Script::default());
    let first = ask(&mut provider, &charge("o-1", "pm_card_visa"));
    assert_eq!(first, (200, json!({"id": "ch_sim_1", "status": "succeeded"})));
    assert_eq!(ask(&mut provider, &charge("o-1", "pm_card_visa")), first);
    let expected = SimulatedCharge {
        order_id: "o-1".into(),
        attempt: 1,
        amount_minor: 4990,
        currency: "EUR".into(),
        charge_id: "ch_sim_1".into(),
        gateway: Contract::Http,
    };
    assert_eq!(provider.charges(), [expected]);
}

#[test]
fn another_key_charges_again() {
    let mut provider = provider(Script::default());
    ask(&mut provider, &charge("o-1", "pm"));
    ask(&mut provider, &charge("o-1", "pm").with_key("other"));
    assert_eq!(charged(&mut provider), ["o-1", "o-1"]);
}

#[test]
fn a_decline_is_an_answer_and_is_replayed() {
    let mut provider = provider(Script::default());
    let declined = (200, json!({"id": "ch_sim_1", "status": "failed", "code": "insufficient_funds"}));
    for _ in 0..2 {
        assert_eq!(ask(&mut provider, &charge("o-1", "decline_insufficient_funds")), declined);
    }
    assert!(provider.charges().is_empty());
}

#[test]
fn the_same_key_with_other_bytes_is_refused() {
    let mut provider = provider(Script::default());
    ask(&mut provider, &charge("o-1", "pm"));
    let mut other = charge("o-1", "pm");
    other.body = [&other.body[..], b" "].concat().into();
    let (status, body) = ask(&mut provider, &other);
    assert_eq!((status, &body["code"]), (422, &json!("idempotency_key_reused")));
    assert_eq!(answer(&mut provider, &other).header("content-type"), Some("application/problem+json"));
}

#[test]
fn the_same_key_is_refused_while_the_first_is_in_progress() {
    let mut provider = provider(Script::of([Rule::always(Effect::Delay { ms: 50 }).times(1)]));
    let Reply::Delayed(work, ticket) = provider.handle(&charge("o-1", "pm")) else { panic!("not delayed") };
    assert_eq!(work.as_millis(), 50);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 409);
    assert!(provider.charges().is_empty());
    assert_eq!(provider.finish(ticket).status, 200);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn keys_are_forgotten_after_a_day() {
    let hands = Hands::default();
    let mut provider = Provider::new(hands.clock(), Script::default());
    ask(&mut provider, &charge("o-1", "pm"));
    hands.forward(24 * HOUR - 1);
    ask(&mut provider, &charge("o-1", "pm"));
    assert_eq!(charged(&mut provider).len(), 1);
    hands.forward(1);
    ask(&mut provider, &charge("o-1", "pm"));
    assert_eq!(charged(&mut provider).len(), 2);
}

#[test]
fn the_lookup_gives_the_newest_charge() {
    let mut provider = provider(Script::default());
    assert_eq!(ask(&mut provider, &find("o-1")).0, 404);
    ask(&mut provider, &charge("o-1", "decline"));
    let failed = json!({"id": "ch_sim_1", "status": "failed", "code": "generic_decline", "attempt": 1});
    assert_eq!(ask(&mut provider, &find("o-1")), (200, failed));
    ask(&mut provider, &charge("o-1", "pm").with_key("second"));
    let succeeded = json!({"id": "ch_sim_2", "status": "succeeded", "attempt": 1});
    assert_eq!(ask(&mut provider, &find("o-1")), (200, succeeded));
    assert_eq!(ask(&mut provider, &find("o-2")).0, 404);
}

#[test]
fn a_charge_in_processing_settles_and_its_replay_follows() {
    let hands = Hands::default();
    let script = Script::of([Rule::always(Effect::processing())]);
    let mut provider = Provider::new(hands.clock(), script);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).1["status"], "processing");
    assert_eq!(ask(&mut provider, &find("o-1")).1["status"], "processing");
    assert!(provider.charges().is_empty());
    hands.forward(30_000);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).1["status"], "succeeded");
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn a_charge_in_processing_can_fail() {
    let mut provider = provider(Script::of([Rule::always(Effect::processing())]));
    ask(&mut provider, &charge("o-1", "pm"));
    provider.settle_processing(Err("insufficient_funds".into()));
    let (_, body) = ask(&mut provider, &charge("o-1", "pm"));
    assert_eq!(body, json!({"id": "ch_sim_1", "status": "failed", "code": "insufficient_funds"}));
    assert!(provider.charges().is_empty());
}

#[test]
fn unusable_requests_are_refused_and_use_up_no_key() {
    let mut provider = provider(Script::default());
    let bodies = [
        "{".to_owned(),
        json!({"order_id": "o-1", "attempt": 1, "amount_minor": 0, "currency": "EUR"}).to_string(),
        json!({"order_id": "o-1", "attempt": 1, "amount_minor": 1, "currency": "EURO"}).to_string(),
        json!({"order_id": "o-1", "attempt": 1, "amount_minor": 1.5, "currency": "EUR"}).to_string(),
        json!({"order_id": "o-1", "attempt": 1, "amount_minor": 1, "currency": "EUR", "payment_method": "missing"})
            .to_string(),
    ];
    for body in bodies {
        let (status, problem) = ask(&mut provider, &charge("o-1", "pm").with_body(body.clone()));
        assert_eq!(status, 400, "{body}: {problem}");
    }
    let mut without_key = charge("o-1", "pm");
    without_key.headers.clear();
    assert_eq!(ask(&mut provider, &without_key).1["code"], "idempotency_key_missing");
    assert_eq!(ask(&mut provider, &Request::new(Method::PUT, "/charges")).0, 405);
    assert!(provider.charges().is_empty());
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
}

#[test]
fn a_wrong_secret_is_refused_before_anything_happens() {
    let mut provider = provider(Script::default());
    provider.require_secret(Some("sk_test"));
    for request in [charge("o-1", "pm"), charge("o-1", "pm").with_bearer("sk_old"), find("o-1")] {
        assert_eq!(ask(&mut provider, &request).0, 401);
    }
    assert_eq!(ask(&mut provider, &charge("o-1", "pm").with_bearer("sk_test")).0, 200);
    provider.require_secret(None);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
}

#[test]
fn requests_are_logged() {
    let mut provider = provider(Script::default());
    ask(&mut provider, &charge("o-1", "pm"));
    ask(&mut provider, &find("o-1"));
    let log: Vec<_> = provider
        .requests()
        .iter()
        .map(|it| {
            (
                it.method.as_str(),
                it.path.as_str(),
                it.idempotency_key.as_deref(),
                it.order_id.as_deref(),
                it.operation,
            )
        })
        .collect();
    let expected = [
        ("POST", "/charges", Some("key-o-1"), Some("o-1"), Some(Operation::Charge)),
        ("GET", "/charges", None, Some("o-1"), Some(Operation::Find)),
    ];
    assert_eq!(log, expected);
}
