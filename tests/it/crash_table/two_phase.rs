//! The rows for two-phase providers.

use std::sync::Arc;

use charge_once::{
    charge::Alarm,
    decision::{Code, Decision, PoisonReason, RetryReason},
    gateway::simulated::{Effect, Operation, Rule, Script},
    ledger::{Attention, State},
};

use super::shop::{CHARGED, DUPLICATE, Shared, Shop};
use crate::support::{
    faulty::{Fault, Write},
    order::HOUR,
};

async fn good() -> Shop {
    Shop::two_phase("pm_card_visa", Script::default()).await
}

async fn declining() -> Shop {
    Shop::two_phase("pm_card_chargeDeclined", Script::default()).await
}

fn retry(decision: &Decision) -> &RetryReason {
    let Decision::Retry { reason, .. } = decision else { panic!("{decision:?}") };
    reason
}

fn declined() -> Decision {
    Decision::Poison(PoisonReason::Declined(Code::new("generic_decline")))
}

fn held(reason: &str) -> Decision {
    Decision::Poison(PoisonReason::Held(Code::new(reason)))
}

#[tokio::test]
async fn begin_applied_reply_lost() {
    let shop = good().await;
    let ledger = shop.faulty(Fault::Twice(Write::Begin));
    assert_eq!(shop.work(Shared(ledger)).await.decision, CHARGED, "the same call knows itself");

    let shop = good().await;
    let lost = shop.work(Shared(shop.faulty(Fault::FailAfter(Write::Begin)))).await;
    assert_eq!(retry(&lost.decision), &RetryReason::Store);
    assert!(shop.provider.requests().is_empty(), "nothing is sent on an unknown claim");
    let other = shop.work(shop.ledger()).await;
    assert_eq!(retry(&other.decision), &RetryReason::Busy, "others wait for the lease");
    assert_eq!(shop.redeliver().await, CHARGED);
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn after_prepare_before_the_handle_is_stored() {
    for keys_are_forgotten in [false, true] {
        let shop = good().await;
        shop.crash(Fault::StopBefore(Write::StoreHandle)).await;
        assert_eq!(shop.entry().await.state, State::Claimed);
        if keys_are_forgotten {
            shop.provider.forget_keys();
        }
        assert_eq!(shop.redeliver().await, CHARGED);
        assert_eq!(shop.charges(), 1);
    }
}

#[tokio::test]
async fn after_the_handle_is_stored() {
    let shop = good().await;
    shop.crash(Fault::StopAfter(Write::StoreHandle)).await;
    assert_eq!((shop.entry().await.state, shop.charges()), (State::Prepared, 0));
    assert_eq!(shop.redeliver().await, CHARGED);
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn commit_lost() {
    let lost = Rule::always(Effect::HangBefore {}).on(Operation::Confirm).times(1);
    let shop = Shop::two_phase("pm_card_visa", Script::of([lost])).await;
    shop.crash_when(|provider| asked(provider.requests(), Operation::Confirm)).await;
    assert_eq!(shop.charges(), 0);
    assert_eq!(shop.redeliver().await, CHARGED);
    assert_eq!(shop.charges(), 1);
}

fn asked(requests: &[charge_once::gateway::simulated::LoggedRequest], operation: Operation) -> bool {
    requests.iter().any(|request| request.operation == Some(operation))
}

#[tokio::test]
async fn commit_executed_reply_lost() {
    let lost = Rule::always(Effect::HangAfter {}).on(Operation::Confirm);
    let shop = Shop::two_phase("pm_card_visa", Script::of([lost])).await;
    shop.crash_when(|provider| !provider.charges().is_empty()).await;
    assert_eq!(shop.entry().await.state, State::Prepared);
    assert_eq!(shop.redeliver().await, CHARGED);
    assert_eq!((shop.charges(), shop.entry().await.state), (1, State::Paid));
}

#[tokio::test]
async fn crash_before_the_charge_is_recorded() {
    let shop = good().await;
    shop.crash(Fault::StopBefore(Write::Pay)).await;
    assert_eq!((shop.charges(), shop.entry().await.state), (1, State::Prepared));
    assert_eq!(shop.redeliver().await, CHARGED);
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn record_of_the_charge_throttled_or_its_reply_lost() {
    for (fault, next) in [(Fault::FailBefore(Write::Pay), CHARGED), (Fault::FailAfter(Write::Pay), DUPLICATE)]
    {
        let shop = good().await;
        let ledger = shop.faulty(fault);
        let outcome = shop.work(Shared(Arc::clone(&ledger))).await;
        assert_eq!(retry(&outcome.decision), &RetryReason::ChargedNotRecorded, "{fault:?}");
        assert_eq!(outcome.facts.alarm, Some(Alarm::ChargedNotRecorded));
        let tries = ledger.writes().iter().filter(|write| **write == Write::Pay).count();
        assert_eq!(tries, 3, "{fault:?}");
        assert_eq!((shop.redeliver().await, shop.charges()), (next, 1));
    }
}

#[tokio::test]
async fn after_the_charge_is_recorded() {
    let shop = good().await;
    shop.crash(Fault::StopAfter(Write::Pay)).await;
    let asked = shop.provider.requests().len();
    assert_eq!((shop.redeliver().await, shop.charges()), (DUPLICATE, 1));
    assert_eq!(shop.provider.requests().len(), asked, "a finished order asks nobody");
}

#[tokio::test]
async fn declined_crash_before_the_seal() {
    let lost = Rule::always(Effect::HangAfter {}).on(Operation::Confirm);
    let shop = Shop::two_phase("pm_card_chargeDeclined", Script::of([lost])).await;
    shop.crash_when(|provider| asked(provider.requests(), Operation::Confirm)).await;
    assert_eq!(shop.entry().await.state, State::Prepared);
    assert_eq!(shop.redeliver().await, declined());
    assert!(asked(&shop.provider.requests(), Operation::Cancel), "sealed before it is recorded");
    assert_eq!((shop.charges(), shop.entry().await.state), (0, State::Declined));
}

#[tokio::test]
async fn sealed_crash_before_the_decline_is_recorded() {
    let shop = declining().await;
    shop.crash(Fault::StopBefore(Write::Decline)).await;
    assert_eq!(shop.entry().await.state, State::Prepared);
    assert_eq!((shop.redeliver().await, shop.charges()), (declined(), 0));
    assert_eq!((shop.redeliver().await, shop.charges()), (declined(), 0));
}

/// What one owner is told is a decline while the handle has been charged all the same.
#[tokio::test]
async fn declined_while_the_commit_of_another_succeeds() {
    let lies =
        Effect::Status { status: 402, body: None, sticky: false, after_charge: true, should_retry: None };
    let script = Script::of([Rule::always(lies).on(Operation::Confirm)]);
    let shop = Shop::two_phase("pm_card_visa", script).await;
    assert_eq!(shop.work(shop.ledger()).await.decision, CHARGED, "the seal answers that it succeeded");
    assert!(asked(&shop.provider.requests(), Operation::Cancel));
    assert_eq!((shop.charges(), shop.entry().await.state), (1, State::Paid));
}

#[tokio::test]
async fn an_owner_paused_past_its_lease_wakes_up() {
    for write in [Write::StoreHandle, Write::Pay] {
        let shop = good().await;
        let paused = shop.faulty(Fault::StopBefore(write));
        let sleeper = async { shop.work(Shared(Arc::clone(&paused))).await.decision };
        let others = async {
            paused.stopped().await;
            let decision = shop.redeliver().await;
            paused.go_on();
            decision
        };
        let (late, other) = tokio::join!(sleeper, others);
        assert_eq!((other, shop.charges()), (CHARGED, 1));
        if write == Write::StoreHandle {
            assert_eq!(retry(&late), &RetryReason::LeaseLost);
        } else {
            assert_eq!(late, CHARGED, "it carries proof of the same charge");
        }
        let entry = shop.entry().await;
        assert_eq!((entry.state, entry.fence), (State::Paid, 2));
    }
}

#[tokio::test]
async fn twenty_days_in_the_dead_letter_queue() {
    for (fault, charged) in [(Fault::StopBefore(Write::Pay), 1), (Fault::StopAfter(Write::StoreHandle), 0)] {
        let shop = good().await;
        shop.crash(fault).await;
        assert_eq!(shop.charges(), charged);
        shop.hands.advance(20 * 24 * HOUR);
        assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1), "{fault:?}");
    }
}

#[tokio::test]
async fn record_gone_message_redriven() {
    let shop = good().await;
    assert_eq!(shop.work(shop.ledger()).await.decision, CHARGED);
    shop.table.delete("o-1").await;
    shop.hands.advance(181 * 24 * HOUR);
    assert_eq!(shop.redeliver().await, held("NO_RECORD_TOO_OLD"));
    assert_eq!((shop.charges(), shop.entry().await.state), (1, State::Held));
}

#[tokio::test]
async fn three_writes_an_order_and_none_on_the_index() {
    let shop = good().await;
    assert_eq!(shop.work(shop.ledger()).await.decision, CHARGED);
    shop.assert_writes_off_the_index(3);
    for write in [Write::Begin, Write::StoreHandle, Write::Pay] {
        let shop = good().await;
        shop.crash(Fault::StopAfter(write)).await;
        shop.assert_item_is_off_the_index().await;
    }
}

/// Leases are compared in milliseconds; DynamoDB's TTL reads seconds and would delete nothing, or too early.
#[tokio::test]
async fn instants_are_milliseconds_and_the_end_of_a_record_is_in_seconds() {
    let shop = good().await;
    let now = shop.hands.now().as_millis();
    shop.crash(Fault::StopAfter(Write::Begin)).await;
    assert_eq!(shop.number("first_seen_at").await, Some(now));
    assert_eq!(shop.number("lease_until").await, Some(now + 35_000), "5 s beyond the deadline");
    assert_eq!(shop.number("expires_at").await, None);
    assert_eq!(shop.redeliver().await, CHARGED);
    let charged_at = shop.hands.now().as_millis();
    assert_eq!(shop.number("state_changed_at").await, Some(charged_at));
    assert_eq!(shop.number("expires_at").await, Some(charged_at / 1000 + 180 * 24 * 3600));
}

#[tokio::test]
async fn a_doubt_is_on_the_index_until_it_is_settled() {
    let lost = |operation| Rule::always(Effect::ResetAfter {}).on(operation).times(1);
    let unseen = lost(Operation::Retrieve);
    for shop in [
        Shop::two_phase("pm_card_visa", Script::of([lost(Operation::Confirm), unseen])).await,
        Shop::one_shot("pm_card_visa", Script::of([lost(Operation::Charge)])).await,
    ] {
        assert!(matches!(shop.work(shop.ledger()).await.decision, Decision::Retry { .. }));
        assert_eq!(shop.entry().await.attention, Some(Attention::Unsettled));
        assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1));
        shop.assert_item_is_off_the_index().await;
    }
}

#[tokio::test]
async fn fifty_deliveries_at_once() {
    let shop = good().await;
    let work: Vec<_> = (0..50).map(|_| shop.work(shop.ledger())).collect();
    let outcomes = futures_util::future::join_all(work).await;
    let charged = outcomes.iter().filter(|outcome| outcome.decision == CHARGED).count();
    let is_busy = |decision: &Decision| {
        matches!(decision, Decision::Retry { reason: RetryReason::Busy, .. }) || *decision == DUPLICATE
    };
    let rest = outcomes.iter().filter(|outcome| is_busy(&outcome.decision));
    assert_eq!((charged, rest.count(), shop.charges()), (1, 49, 1));
}
