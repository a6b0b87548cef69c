//! T1, T1b and T9: who may work on an order.

use std::time::Duration;

use super::{
    Bench, EXPIRES_AT, Fixture, LEASE, NOW, Repeating, claimed, in_state, later, one_shot, two_phase,
};
use crate::{
    clock::Timestamp,
    ledger::{Attention, Begin, Claim, Entry, Ledger, Left, SKEW, State},
};

const STALE: Duration = LEASE.saturating_add(SKEW).saturating_add(Duration::from_millis(1));

pub(super) async fn checks<F: Fixture>(fixture: &F) {
    only_one_of_two_begins_starts(fixture).await;
    a_live_record_is_taken_over_only_when_its_lease_is_stale(fixture).await;
    a_live_record_without_a_lease_is_never_taken_over(fixture).await;
    a_release_lets_the_next_one_in_at_once_and_the_fence_goes_on(fixture).await;
    a_one_shot_begin_is_a_sent_charge(fixture).await;
    what_another_kind_of_provider_left_is_never_taken_over(fixture).await;
    the_state_of_a_record_says_what_begin_answers(fixture).await;
    another_content_is_a_mismatch(fixture).await;
    a_new_attempt_follows_a_decline_only(fixture).await;
    an_old_order_without_a_record_is_held(fixture).await;
    a_begin_recognises_its_own_write(fixture).await;
}

async fn only_one_of_two_begins_starts<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "begin-once");
    let lease = bench.started(two_phase("a")).await;
    assert_eq!((lease.entry(), lease.took_over()), (&claimed("a"), false));
    let busy = Claim::Busy { until: NOW.plus(LEASE), no_lease: false };
    assert_eq!(bench.begin(two_phase("b")).await, busy);
    assert_eq!(bench.entry().await, claimed("a"));
}

async fn a_live_record_is_taken_over_only_when_its_lease_is_stale<F: Fixture>(fixture: &F) {
    for state in [State::Claimed, State::Prepared, State::Sent] {
        let bench = Bench::new(fixture, &format!("stale-{}", state.as_str()));
        // Each by a provider of the kind that leaves such a record.
        let again = Begin { one_shot: state == State::Sent, ..two_phase("b") };
        let sent = Some(NOW).filter(|_| state == State::Sent);
        let old = Entry { fence: 7, handle: Some("pi_1".to_owned()), first_sent_at: sent, ..in_state(state) };
        bench.seed(&old).await;
        let early = later(again.clone(), LEASE.saturating_add(SKEW));
        assert!(matches!(bench.begin(early).await, Claim::Busy { .. }), "{state:?} within the skew");
        let lease = bench.started(later(again, STALE)).await;
        let entry = lease.entry();
        assert!(lease.took_over());
        assert_eq!((entry.state, entry.fence, entry.owner.as_str()), (state, 8, "b"));
        assert_eq!((&entry.handle, entry.state_changed_at), (&old.handle, old.state_changed_at));
        assert_eq!(entry.message_id.as_deref(), Some("message-b"));
    }
}

/// A handle that another kind of provider prepared may be charged, and a charge of unknown age is past every key.
async fn what_another_kind_of_provider_left_is_never_taken_over<F: Fixture>(fixture: &F) {
    let sent = |first_sent_at| Entry { first_sent_at, ..in_state(State::Sent) };
    let prepared = Entry { handle: Some("pi_1".to_owned()), ..in_state(State::Prepared) };
    let cases = [
        ("prepared", prepared, true),
        ("sent", sent(Some(NOW)), false),
        ("sent-at-no-time", sent(None), true),
        ("sent-before-time", sent(Some(Timestamp::from_millis(-1))), true),
    ];
    for (name, old, one_shot) in cases {
        let bench = Bench::new(fixture, &format!("other-kind-{name}"));
        bench.seed(&old).await;
        let begin = Begin { one_shot, ..later(two_phase("b"), STALE) };
        assert_eq!(bench.begin(begin).await, Claim::Unreadable, "{name}");
        assert_eq!(bench.entry().await, old, "{name}");
    }
}

async fn a_live_record_without_a_lease_is_never_taken_over<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "no-lease");
    bench.seed(&Entry { lease_until: None, ..claimed("a") }).await;
    let claim = bench.begin(later(two_phase("b"), Duration::from_secs(1_000_000))).await;
    assert!(matches!(claim, Claim::Busy { no_lease: true, .. }), "{claim:?}");
}

async fn a_release_lets_the_next_one_in_at_once_and_the_fence_goes_on<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "release");
    for fence in 1..=3 {
        let lease = bench.started(two_phase(&format!("owner-{fence}"))).await;
        assert_eq!((lease.entry().fence, lease.took_over()), (fence, false));
        bench.ledger().release(lease, "UNKNOWN", Left::Untouched).await.expect("it is mine");
        let entry = bench.entry().await;
        assert_eq!((entry.state, entry.lease_until), (State::Claimed, Some(Timestamp::from_millis(0))));
        assert_eq!((entry.attention, entry.error.as_deref()), (None, Some("UNKNOWN")));
    }
}

async fn a_one_shot_begin_is_a_sent_charge<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "one-shot");
    let lease = bench.started(one_shot("a")).await;
    assert_eq!((lease.entry().state, lease.entry().first_sent_at), (State::Sent, Some(NOW)));
    assert!(!lease.has_earlier_doubt());
    bench.ledger().release(lease, "NOT_SENT", Left::NothingSent).await.expect("it is mine");
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.first_sent_at, entry.attention), (State::Claimed, None, None));

    let again = later(one_shot("b"), LEASE);
    let lease = bench.started(again.clone()).await;
    assert_eq!((lease.entry().state, lease.entry().first_sent_at), (State::Sent, Some(again.now)));
    assert!(!lease.has_earlier_doubt());
    bench.ledger().release(lease, "UNKNOWN", Left::Doubt).await.expect("it is mine");
    assert_eq!(bench.entry().await.attention, Some(Attention::Unsettled));

    // A clock that is behind does not turn a doubt into a first send.
    let lease = bench.started(one_shot("c")).await;
    assert_eq!(lease.entry().first_sent_at, Some(again.now));
    assert!(lease.has_earlier_doubt());
}

async fn the_state_of_a_record_says_what_begin_answers<F: Fixture>(fixture: &F) {
    let charge_id = Some("ch_1".to_owned());
    let settled = |state| Entry {
        lease_until: None,
        charge_id: charge_id.clone(),
        error: Some("card_declined".to_owned()),
        held_reason: Some("RESTORED".to_owned()),
        // Past its time and still there: old evidence is better than none.
        expires_at: Some(1),
        ..in_state(state)
    };
    let answers = [
        (State::Paid, Claim::Done { charge_id: charge_id.clone() }),
        (State::Declined, Claim::Declined { code: "card_declined".to_owned() }),
        (State::Held, Claim::Held { reason: "RESTORED".to_owned() }),
    ];
    for (state, answer) in answers {
        let bench = Bench::new(fixture, &format!("settled-{}", state.as_str()));
        bench.seed(&settled(state)).await;
        assert_eq!(bench.begin(later(two_phase("b"), STALE)).await, answer);
        assert_eq!(bench.entry().await, settled(state), "a refused begin writes nothing");
    }
}

async fn another_content_is_a_mismatch<F: Fixture>(fixture: &F) {
    let fresh = || later(two_phase("b"), STALE);
    let others = [
        ("fingerprint", Begin { fingerprint: "print-2".to_owned(), ..fresh() }),
        ("attempt", Begin { attempt: 2, ..fresh() }),
        ("provider", Begin { provider: "stripe:default:live".to_owned(), ..fresh() }),
    ];
    for state in [State::Claimed, State::Prepared, State::Sent, State::Held] {
        for (what, begin) in &others {
            let bench = Bench::new(fixture, &format!("mismatch-{what}-{}", state.as_str()));
            bench.seed(&in_state(state)).await;
            assert_eq!(bench.begin(begin.clone()).await, Claim::Mismatch, "{what} {state:?}");
        }
        let bench = Bench::new(fixture, &format!("superseded-{}", state.as_str()));
        bench.seed(&Entry { attempt: 2, ..in_state(state) }).await;
        assert_eq!(bench.begin(fresh()).await, Claim::Superseded, "{state:?}");
    }
}

async fn a_new_attempt_follows_a_decline_only<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "attempt");
    let declined = Entry {
        fence: 3,
        handle: Some("pi_1".to_owned()),
        handle_generation: 2,
        first_sent_at: Some(NOW),
        error: Some("card_declined".to_owned()),
        expires_at: Some(EXPIRES_AT),
        lease_until: None,
        ..in_state(State::Declined)
    };
    bench.seed(&declined).await;
    let attempt = |attempt, token: &str| Begin { attempt, ..later(two_phase(token), STALE) };
    assert_eq!(bench.begin(attempt(3, "c")).await, Claim::Mismatch, "one attempt was left out");
    let lease = bench.started(Begin { fingerprint: "print-2".to_owned(), ..attempt(2, "b") }).await;
    let entry = lease.entry();
    assert_eq!((entry.state, entry.fence, entry.attempt), (State::Claimed, 4, 2));
    assert_eq!((&entry.handle, entry.handle_generation, entry.first_sent_at), (&None, 0, None));
    assert_eq!((&entry.error, entry.expires_at, entry.first_seen_at), (&None, None, NOW));
    assert_eq!((entry.fingerprint.as_str(), lease.has_earlier_doubt()), ("print-2", false));
    assert_eq!(bench.begin(attempt(1, "d")).await, Claim::Superseded);

    // The attempt may have been made already, in what a restore or TTL has taken away.
    let bench = Bench::new(fixture, "new-attempt-after-a-restore");
    bench.seed(&declined).await;
    let held = Claim::Held { reason: "RESTORED".to_owned() };
    let after = declined.state_changed_at.plus(Duration::from_secs(1));
    assert_eq!(bench.begin(Begin { epoch: Some(after), ..attempt(2, "e") }).await, held);
    assert_eq!(bench.begin(Begin { may_create: false, ..attempt(2, "f") }).await, held);
    assert_eq!(bench.entry().await, declined);
    let lease = bench.started(Begin { epoch: Some(declined.state_changed_at), ..attempt(2, "g") }).await;
    assert_eq!(lease.entry().attempt, 2);
}

async fn an_old_order_without_a_record_is_held<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "age-guard");
    let old = |token| Begin { may_create: false, ..two_phase(token) };
    let held = Claim::Held { reason: "NO_RECORD_TOO_OLD".to_owned() };
    assert_eq!(bench.begin(old("a")).await, held);
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.attention), (State::Held, Some(Attention::Held)));
    assert_eq!((entry.lease_until, entry.first_sent_at), (None, None));
    assert_eq!(bench.begin(two_phase("b")).await, held, "and stays so");

    let bench = Bench::new(fixture, "age-guard-takes-over");
    bench.seed(&claimed("a")).await;
    let lease = bench.started(later(old("b"), STALE)).await;
    assert_eq!(lease.entry().fence, 2, "the guard is about missing records only");
}

async fn a_begin_recognises_its_own_write<F: Fixture>(fixture: &F) {
    let repeating = Repeating(fixture.ledger());
    let bench = Bench::new(fixture, "own-begin");
    let begin = |begin| repeating.begin(&bench.order_id, begin);
    let Ok(Claim::Started(lease)) = begin(two_phase("a")).await else { panic!("its own record") };
    assert_eq!(lease.entry().fence, 1, "one begin, one fence");
    let Ok(Claim::Started(lease)) = begin(later(two_phase("b"), STALE)).await else { panic!("its own") };
    assert_eq!(lease.entry().fence, 2);

    let declined = Entry { lease_until: None, ..in_state(State::Declined) };
    let bench = Bench::new(fixture, "own-attempt");
    bench.seed(&declined).await;
    let claim = repeating.begin(&bench.order_id, Begin { attempt: 2, ..two_phase("b") }).await;
    assert!(matches!(claim, Ok(Claim::Started(_))), "{claim:?}");

    let bench = Bench::new(fixture, "own-hold");
    let claim = repeating.begin(&bench.order_id, Begin { may_create: false, ..two_phase("a") }).await;
    assert!(matches!(claim, Ok(Claim::Held { .. })), "{claim:?}");
}
