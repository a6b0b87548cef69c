//! What a provider does that must neither wedge an order nor drain the queue.

use std::time::Duration;

use charge_once::{
    charge::{Alarm, Health, Step},
    decision::{Code, Decision, PoisonReason, RetryAfter, RetryReason},
    gateway::{
        secret::{Credential, Fetch, Secret},
        simulated::{Effect, Operation, Rule, Script},
    },
    ledger::State,
};

use super::shop::{CHARGED, Shop};

/// The provider answers 500 to the first request of each operation and replays that for a day.
#[tokio::test]
async fn a_sticky_500_wedges_nothing() {
    let sticky = |operation| Rule::always(Effect::sticky_status(500)).on(operation).times(1);
    let scripts = [
        vec![sticky(Operation::Create)],
        vec![sticky(Operation::Confirm)],
        vec![sticky(Operation::Create), sticky(Operation::Confirm)],
    ];
    for rules in scripts {
        let shop = Shop::two_phase("pm_card_visa", Script::of(rules.clone())).await;
        let mut deliveries = 1;
        let mut decision = shop.work(shop.ledger()).await.decision;
        while decision != CHARGED {
            assert!(deliveries < 4, "{rules:?}: still {decision:?}");
            assert!(matches!(decision, Decision::Retry { .. }), "{rules:?}: {decision:?}");
            deliveries += 1;
            decision = shop.redeliver().await;
        }
        assert_eq!((shop.charges(), shop.entry().await.state), (1, State::Paid), "{rules:?}");
    }
}

/// After a server error nobody commits for a minute, also if the provider does not say how the handle stands.
#[tokio::test]
async fn a_500_on_the_commit_is_waited_out_whatever_the_question_after_it_brings() {
    for inspect in [500, 503, 429] {
        let script = Script::of([
            Rule::always(Effect::status(500)).on(Operation::Confirm),
            Rule::always(Effect::status(inspect)).on(Operation::Retrieve),
        ]);
        let shop = Shop::two_phase("pm_card_visa", script).await;
        let Decision::Retry { after, .. } = shop.work(shop.ledger()).await.decision else { panic!() };
        assert_eq!(after, RetryAfter::NotBefore(Duration::from_secs(60)), "{inspect}");
    }
}

/// A request that the provider refuses for what it says is not repeated for ever.
#[tokio::test]
async fn a_commit_that_is_refused_is_sealed_and_given_up() {
    let script = Script::of([Rule::always(Effect::status(400)).on(Operation::Confirm)]);
    let shop = Shop::two_phase("pm_card_visa", script).await;
    let decision = shop.work(shop.ledger()).await.decision;
    assert!(matches!(decision, Decision::Poison(PoisonReason::Declined(_))), "{decision:?}");
    let cancelled = shop.provider.requests().iter().any(|it| it.operation == Some(Operation::Cancel));
    assert!(cancelled, "sealed before it is given up");
    assert_eq!((shop.charges(), shop.entry().await.state), (0, State::Declined));
}

#[tokio::test]
async fn a_rotated_key_is_waited_for_and_read_again() {
    let shop = Shop::two_phase("pm_card_visa", Script::default()).await;
    let fetch: Fetch = Box::new(|| Box::pin(async { Ok(Secret::new("sk_test_new")?) }));
    let old = Secret::new("sk_test_old").unwrap();
    let step = shop.stripe(shop.ledger(), Credential::renewable(old, fetch, shop.hands.clock()));
    shop.provider.require_secret(Some("sk_test_new"));
    shop.hands.advance(Duration::from_secs(600));

    let outcome = Box::pin(step.run(&shop.order, &shop.delivery())).await;
    let Decision::Retry { after, reason } = outcome.decision else { panic!("{outcome:?}") };
    assert_eq!(reason, RetryReason::Gateway(Code::new("AUTH_CONFIG")));
    assert_eq!(after, RetryAfter::NotBefore(Duration::from_secs(300)));
    assert_eq!((outcome.facts.health, outcome.facts.alarm), (Health::Stop, Some(Alarm::AuthConfig)));

    let outcome = Box::pin(step.run(&shop.order, &shop.delivery())).await;
    assert_eq!((outcome.decision, shop.charges()), (CHARGED, 1));
}

#[tokio::test]
async fn a_refused_key_leaves_a_one_shot_order_to_be_charged_later() {
    let shop = Shop::one_shot("pm_card_visa", Script::default()).await;
    shop.provider.require_secret(Some("sk_test_new"));
    let outcome = shop.work(shop.ledger()).await;
    assert!(matches!(outcome.decision, Decision::Retry { .. }), "{outcome:?}");
    shop.provider.require_secret(None);
    assert_eq!((shop.redeliver().await, shop.charges()), (CHARGED, 1));
}
