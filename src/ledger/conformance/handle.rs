//! T2, T2b, T3, T6, T7 and T8: what only the present owner may do.

use super::{Bench, Fixture, LEASE, NOW, Repeating, claimed, in_state, owner, two_phase};
use crate::ledger::{
    Applied, Attention, Claim, Entry, Found, Intent, LeaseError, Ledger, Left, Owner, State,
};

pub(super) async fn checks<F: Fixture>(fixture: &F) {
    a_handle_is_stored_once(fixture).await;
    only_an_expired_handle_of_a_prepared_record_is_replaced(fixture).await;
    a_stale_owner_changes_nothing(fixture).await;
    nothing_is_done_to_a_settled_record(fixture).await;
    a_hold_waits_for_a_person(fixture).await;
    a_doubt_is_marked_and_a_renewal_moves_the_lease(fixture).await;
    an_owner_recognises_its_own_writes(fixture).await;
}

async fn a_handle_is_stored_once<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "handle");
    let lease = bench.armed("a", "pi_1").await;
    let entry = bench.entry().await;
    assert_eq!((&entry, entry.state), (lease.entry(), State::Prepared));
    assert_eq!((entry.handle.as_deref(), entry.first_sent_at), (Some("pi_1"), Some(NOW)));
    let other = bench.ledger().store_handle(lease, "pi_2".to_owned(), NOW).await;
    assert!(matches!(other, Err(LeaseError::Lost(_))), "{other:?}");
    assert_eq!(bench.entry().await, entry);
}

async fn only_an_expired_handle_of_a_prepared_record_is_replaced<F: Fixture>(fixture: &F) {
    let replace = |mine: Owner, old: &str| Intent::ReplaceHandle {
        mine,
        old: old.to_owned(),
        new: "pi_2".to_owned(),
        now: NOW,
    };
    for state in State::ALL {
        let bench = Bench::new(fixture, &format!("replace-{}", state.as_str()));
        let entry = Entry { handle: Some("pi_1".to_owned()), ..in_state(state) };
        bench.seed(&entry).await;
        let other = bench.ledger().apply(&bench.order_id, &replace(owner(&entry), "pi_0")).await;
        assert!(matches!(other, Ok(Applied::Refused(_))), "another handle in {state:?}");
        let written = bench.ledger().apply(&bench.order_id, &replace(owner(&entry), "pi_1")).await;
        let is_written = matches!(written, Ok(Applied::Written { .. }));
        assert_eq!(is_written, state == State::Prepared, "{state:?}");
    }
    let entry = Bench::new(fixture, "replace-PREPARED").entry().await;
    assert_eq!((entry.handle.as_deref(), entry.handle_generation), (Some("pi_2"), 1));
}

/// Every write that only the owner may make.
fn writes_of(mine: &Owner) -> Vec<Intent> {
    let mine = || mine.clone();
    let release = |left| Intent::Release { mine: mine(), error: "UNKNOWN".to_owned(), left };
    vec![
        Intent::StoreHandle { mine: mine(), handle: "pi_9".to_owned(), now: NOW },
        Intent::ReplaceHandle { mine: mine(), old: "pi_1".to_owned(), new: "pi_9".to_owned(), now: NOW },
        Intent::Resend { mine: mine(), now: NOW },
        Intent::Renew { mine: mine(), until: NOW.plus(LEASE) },
        Intent::Hold { mine: mine(), reason: "RESTORED".to_owned(), now: NOW },
        release(Left::Untouched),
        release(Left::Doubt),
        release(Left::NothingSent),
    ]
}

async fn a_stale_owner_changes_nothing<F: Fixture>(fixture: &F) {
    for state in [State::Claimed, State::Prepared, State::Sent] {
        let bench = Bench::new(fixture, &format!("stale-owner-{}", state.as_str()));
        let handle = (state == State::Prepared).then(|| "pi_1".to_owned());
        let entry = Entry { owner: "b".to_owned(), fence: 2, handle, ..in_state(state) };
        bench.seed(&entry).await;
        let before = Owner { token: "a".to_owned(), fence: 1 };
        let same_token = Owner { token: "b".to_owned(), fence: 1 };
        let same_fence = Owner { token: "a".to_owned(), fence: 2 };
        for stale in [before, same_token, same_fence] {
            for intent in writes_of(&stale) {
                let refused = bench.ledger().apply(&bench.order_id, &intent).await.expect("it answers");
                assert_eq!(refused, Applied::Refused(Found::Entry(Box::new(entry.clone()))), "{intent:?}");
            }
        }
        assert_eq!(bench.entry().await, entry);
    }
}

async fn nothing_is_done_to_a_settled_record<F: Fixture>(fixture: &F) {
    for state in [State::Paid, State::Declined, State::Held] {
        let bench = Bench::new(fixture, &format!("no-write-{}", state.as_str()));
        let entry = Entry { handle: Some("pi_1".to_owned()), ..in_state(state) };
        bench.seed(&entry).await;
        for intent in writes_of(&owner(&entry)) {
            let applied = bench.ledger().apply(&bench.order_id, &intent).await;
            assert!(matches!(applied, Ok(Applied::Refused(_))), "{state:?} {intent:?}");
        }
        assert_eq!(bench.entry().await, entry);
    }
}

async fn a_hold_waits_for_a_person<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "hold");
    let lease = bench.armed("a", "pi_1").await;
    bench.ledger().hold(lease, "HANDLE_NOT_FOUND", NOW).await.expect("it is mine");
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.attention), (State::Held, Some(Attention::Held)));
    assert_eq!((entry.lease_until, entry.expires_at), (None, None));
    let reason = "HANDLE_NOT_FOUND".to_owned();
    assert_eq!(bench.begin(two_phase("b")).await, Claim::Held { reason });
}

async fn a_doubt_is_marked_and_a_renewal_moves_the_lease<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "doubt");
    let lease = bench.armed("a", "pi_1").await;
    let until = NOW.plus(LEASE).plus(LEASE);
    bench.ledger().renew(&bench.order_id, lease.owner(), until).await.expect("it is mine");
    assert_eq!(bench.entry().await, Entry { lease_until: Some(until), ..lease.entry().clone() });
    bench.ledger().release(lease, "UNKNOWN", Left::Doubt).await.expect("it is mine");
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.attention), (State::Prepared, Some(Attention::Unsettled)));
}

async fn an_owner_recognises_its_own_writes<F: Fixture>(fixture: &F) {
    let repeating = Repeating(fixture.ledger());
    let bench = Bench::new(fixture, "own-writes");
    let lease = bench.started(two_phase("a")).await;
    assert_eq!(lease.entry(), &claimed("a"));
    let lease = repeating.store_handle(lease, "pi_1".to_owned(), NOW).await.expect("its own handle");
    let replaced = repeating.replace_handle(lease, "pi_1".to_owned(), "pi_2".to_owned(), NOW).await;
    let lease = replaced.expect("its own second handle");
    assert_eq!(lease.entry().handle_generation, 1);
    repeating.hold(lease, "HANDLE_MISMATCH", NOW).await.expect("its own hold");

    let bench = Bench::new(fixture, "own-release");
    let lease = bench.started(two_phase("a")).await;
    repeating.release(lease, "UNKNOWN", Left::Untouched).await.expect("its own release");
}
