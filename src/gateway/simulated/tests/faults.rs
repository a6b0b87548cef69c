//! What each effect does to the money, to the key and to the answer.

use super::*;
use crate::gateway::simulated::{Effect, Operation, Rule};

/// The provider's reply to one charge under an effect that strikes once, and the provider.
fn struck(effect: Effect) -> (Provider, Reply) {
    let mut provider = provider(Script::of([Rule::always(effect).times(1)]));
    let reply = provider.handle(&charge("o-1", "pm"));
    (provider, reply)
}

fn status_of(reply: &Reply) -> u16 {
    let Reply::Answer(answer) = reply else { panic!("no plain answer") };
    answer.status.as_u16()
}

#[test]
fn faults_before_charging_move_no_money_and_use_no_key() {
    let answered = [
        (Effect::status(500), 500),
        (Effect::Conflict {}, 409),
        (Effect::LockTimeout {}, 429),
        (Effect::RateLimit { retry_after: None, as_date: false }, 429),
    ];
    for (effect, status) in answered {
        let (mut provider, reply) = struck(effect);
        assert_eq!(status_of(&reply), status);
        assert!(provider.charges().is_empty());
        assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
    }
    for effect in [Effect::ResetBefore {}, Effect::HangBefore {}] {
        let (mut provider, reply) = struck(effect);
        assert!(matches!(reply, Reply::Reset | Reply::Hang));
        assert!(provider.charges().is_empty());
        assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
    }
}

#[test]
fn faults_after_charging_leave_the_answer_under_the_key() {
    let after_charge =
        Effect::Status { status: 502, body: None, sticky: false, after_charge: true, should_retry: None };
    let effects = [
        Effect::ResetAfter {},
        Effect::HangAfter {},
        Effect::Truncated {},
        Effect::Drip { every_ms: 1 },
        Effect::Unparsable {},
        after_charge,
    ];
    for effect in effects {
        let (mut provider, _) = struck(effect.clone());
        assert_eq!(charged(&mut provider), ["o-1"], "{effect:?}");
        let (status, body) = ask(&mut provider, &charge("o-1", "pm"));
        assert_eq!((status, &body["status"]), (200, &json!("succeeded")), "{effect:?}");
        assert_eq!(charged(&mut provider), ["o-1"], "{effect:?}");
    }
}

#[test]
fn a_sticky_status_is_replayed_whether_or_not_money_moved() {
    for after_charge in [false, true] {
        let effect =
            Effect::Status { status: 500, body: None, sticky: true, after_charge, should_retry: None };
        let (mut provider, reply) = struck(effect);
        assert_eq!(status_of(&reply), 500);
        assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 500);
        assert_eq!(provider.charges().len(), usize::from(after_charge));
        assert_eq!(ask(&mut provider, &charge("o-1", "pm").with_key("fresh")).0, 200);
    }
}

#[test]
fn a_sticky_status_spares_a_key_that_has_its_answer() {
    let mut provider = provider(Script::of([Rule::always(Effect::sticky_status(500)).nth(2)]));
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
}

#[test]
fn a_scripted_decline_is_worded_by_the_contract() {
    let (_, reply) = struck(Effect::Decline { code: "expired_card".into() });
    let Reply::Answer(answer) = reply else { panic!("no answer") };
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&body["status"], &body["code"]), (&json!("failed"), &json!("expired_card")));

    let script = Script::of([Rule::always(Effect::decline())]);
    let mut provider = provider(script);
    let id = created(&mut provider, "o-1", "pm");
    let (status, body) = ask(&mut provider, &post(&format!("/{id}/confirm"), "c", ""));
    assert_eq!((status, &body["error"]["decline_code"]), (402, &json!("generic_decline")));
}

#[test]
fn retry_after_is_a_number_or_a_date() {
    let header = |as_date| {
        let (_, reply) = struck(Effect::RateLimit { retry_after: Some(7), as_date });
        let Reply::Answer(answer) = reply else { panic!("no plain answer") };
        answer.header("retry-after").map(str::to_owned)
    };
    assert_eq!(header(false).as_deref(), Some("7"));
    assert_eq!(header(true).as_deref(), Some("Thu, 01 Jan 1970 00:00:07 GMT"));
}

#[test]
fn stripe_says_whether_to_retry_where_the_script_does() {
    let effect = |should_retry| {
        let body = Some("oops".to_owned());
        Effect::Status { status: 503, body, sticky: false, after_charge: false, should_retry }
    };
    for (should_retry, header) in [(Some(true), Some("true")), (Some(false), Some("false")), (None, None)] {
        let mut provider = provider(Script::of([Rule::always(effect(should_retry))]));
        let answer = answer(&mut provider, &get("pi"));
        assert_eq!((answer.header("stripe-should-retry"), &answer.body[..]), (header, &b"oops"[..]));
    }
}

#[test]
fn a_lock_timeout_in_stripes_words() {
    let mut provider = provider(Script::of([Rule::always(Effect::LockTimeout {})]));
    let (status, body) = ask(&mut provider, &get("pi"));
    let error = &body["error"];
    assert_eq!((status, error["code"].as_str()), (429, Some("lock_timeout")));
    assert_eq!(error["type"], "invalid_request_error");
}

#[test]
fn a_late_request_is_executed_when_it_is_delivered() {
    let (mut provider, reply) = struck(Effect::Late { after: None });
    assert!(matches!(reply, Reply::Hang));
    ask(&mut provider, &find("o-1"));
    assert!(provider.charges().is_empty());
    assert_eq!((provider.deliver_late(), provider.deliver_late()), (1, 0));
    assert_eq!(charged(&mut provider), ["o-1"]);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).1["id"], "ch_sim_1");
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn a_late_request_whose_key_was_used_meanwhile_does_nothing() {
    let (mut provider, _) = struck(Effect::Late { after: None });
    ask(&mut provider, &charge("o-1", "pm"));
    provider.deliver_late();
    assert_eq!(charged(&mut provider), ["o-1"]);
}

#[test]
fn a_late_request_whose_key_was_forgotten_meanwhile_charges_again() {
    let (mut provider, _) = struck(Effect::Late { after: None });
    ask(&mut provider, &charge("o-1", "pm"));
    provider.forget_keys();
    provider.deliver_late();
    assert_eq!(charged(&mut provider), ["o-1", "o-1"]);
}

#[test]
fn a_late_request_comes_just_before_the_nth_that_follows() {
    let (mut provider, _) = struck(Effect::Late { after: Some(2) });
    assert_eq!(ask(&mut provider, &find("o-1")).0, 404);
    assert_eq!(ask(&mut provider, &find("o-1")).0, 200);
}

#[test]
fn a_late_confirm_of_a_cancelled_intent_moves_no_money() {
    let mut provider =
        provider(Script::of([Rule::always(Effect::Late { after: None }).on(Operation::Confirm)]));
    let id = created(&mut provider, "o-1", "pm");
    provider.handle(&post(&format!("/{id}/confirm"), "c", ""));
    ask(&mut provider, &post(&format!("/{id}/cancel"), "s", ""));
    provider.deliver_late();
    assert!(provider.charges().is_empty());
}

#[test]
fn forgotten_keys_charge_an_order_twice_without_a_handle() {
    let mut provider = provider(Script::of([Rule::always(Effect::ForgetKeys {}).nth(2)]));
    ask(&mut provider, &charge("o-1", "pm"));
    ask(&mut provider, &charge("o-1", "pm"));
    assert_eq!(charged(&mut provider), ["o-1", "o-1"]);
}

#[test]
fn a_new_script_counts_anew() {
    let (mut provider, _) = struck(Effect::status(500));
    provider.set_script(Script::of([Rule::always(Effect::status(503)).nth(1)]));
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 503);
    assert_eq!(ask(&mut provider, &charge("o-1", "pm")).0, 200);
}
