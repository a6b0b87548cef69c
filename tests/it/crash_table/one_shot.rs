//! The same for one-shot providers, where the record says what was sent and the key must not outlive its window.

use charge_once::{
    charge::LookUp,
    decision::{Code, Decision, PoisonReason, RetryReason},
    gateway::simulated::{Effect, Operation, Rule, Script},
    ledger::State,
};

use super::shop::{CHARGED, DUPLICATE, Shop};
use crate::support::{
    faulty::{Fault, Write},
    order::HOUR,
};

async fn good() -> Shop {
    Shop::one_shot("pm_card_visa", Script::default()).await
}

fn held(reason: &str) -> Decision {
    Decision::Poison(PoisonReason::Held(Code::new(reason)))
}

#[tokio::test]
async fn charge_executed_reply_lost() {
    let lost = Rule::always(Effect::HangAfter {}).on(Operation::Charge).times(1);
    let shop = Shop::one_shot("pm_card_visa", Script::of([lost])).await;
    shop.crash_when(|provider| !provider.charges().is_empty()).await;
    assert_eq!(shop.entry().await.state, State::Sent);
    assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1));
}

#[tokio::test]
async fn crash_before_and_after_the_charge_is_recorded() {
    for (fault, next) in [(Fault::StopBefore(Write::Pay), CHARGED), (Fault::StopAfter(Write::Pay), DUPLICATE)]
    {
        let shop = good().await;
        shop.crash(fault).await;
        assert_eq!((shop.redeliver().await, shop.charges()), (next, 1), "{fault:?}");
    }
}

#[tokio::test]
async fn past_the_key_window_the_order_is_held_or_looked_up() {
    for (look_up, decision) in
        [(LookUp::Off, held("UNKNOWN_EXPIRED")), (LookUp::On, CHARGED), (LookUp::ThenCharge, CHARGED)]
    {
        let mut shop = good().await;
        shop.look_up = look_up;
        shop.crash(Fault::StopBefore(Write::Pay)).await;
        shop.hands.advance(25 * HOUR);
        assert_eq!((shop.redeliver().await, shop.charges()), (decision, 1), "{look_up:?}");
    }
}

#[tokio::test]
async fn past_the_key_window_a_charge_that_is_not_found_is_an_operators_choice() {
    for (look_up, decision, charges) in
        [(LookUp::On, held("UNKNOWN_EXPIRED"), 0), (LookUp::ThenCharge, CHARGED, 1)]
    {
        let mut shop = good().await;
        shop.look_up = look_up;
        shop.crash(Fault::StopAfter(Write::Begin)).await;
        shop.hands.advance(25 * HOUR);
        assert_eq!((shop.redeliver().await, shop.charges()), (decision, charges), "{look_up:?}");
    }
}

#[tokio::test]
async fn a_decline_lost_is_replayed() {
    let lost = Rule::always(Effect::HangAfter {}).on(Operation::Charge).times(1);
    let shop = Shop::one_shot("pm_card_chargeDeclined", Script::of([lost])).await;
    shop.crash_when(|provider| !provider.requests().is_empty()).await;
    let declined = Decision::Poison(PoisonReason::Declined(Code::new("generic_decline")));
    assert_eq!((shop.redeliver().await, shop.charges()), (declined, 0));
    assert_eq!(shop.entry().await.state, State::Declined);
}

#[tokio::test]
async fn a_charge_that_was_never_sent_leaves_no_doubt() {
    let shop = good().await;
    shop.provider.refuse_connections().await;
    let outcome = shop.hurry().await;
    let Decision::Retry { reason, .. } = &outcome.decision else { panic!("{outcome:?}") };
    assert_eq!(reason, &RetryReason::Gateway(Code::new("NOT_SENT")));
    let entry = shop.entry().await;
    assert_eq!((entry.state, entry.first_sent_at, entry.attention), (State::Claimed, None, None));

    // A day later the key's age begins anew.
    shop.provider.accept_connections().await.unwrap();
    shop.hands.advance(24 * HOUR);
    assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1));
}

#[tokio::test]
async fn a_charge_not_sent_after_an_earlier_doubt_stays_in_doubt() {
    let shop = good().await;
    shop.crash(Fault::StopBefore(Write::Pay)).await;
    let sent_at = shop.entry().await.first_sent_at;
    shop.provider.refuse_connections().await;
    shop.hands.advance(HOUR);
    shop.hurry().await;
    let entry = shop.entry().await;
    assert_eq!((entry.state, entry.first_sent_at), (State::Sent, sent_at));
    shop.provider.accept_connections().await.unwrap();
    assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1));
}

#[tokio::test]
async fn two_writes_an_order_and_none_on_the_index() {
    let shop = good().await;
    assert_eq!(shop.work(shop.ledger()).await.decision, CHARGED);
    shop.assert_writes_off_the_index(2);
    for write in [Write::Begin, Write::Pay] {
        let shop = good().await;
        shop.crash(Fault::StopAfter(write)).await;
        shop.assert_item_is_off_the_index().await;
    }
}
