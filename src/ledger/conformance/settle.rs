//! T4 and T5: the money moved, or it never will.

use super::{Bench, EXPIRES_AT, Fixture, NOW, Repeating, in_state, later, one_shot, two_phase};
use crate::ledger::{
    Completion, Entry, Evidence, LeaseError, Ledger, Left, Paid, Refused, State, conformance::LEASE,
};

pub(super) async fn checks<F: Fixture>(fixture: &F) {
    a_charge_is_recorded_with_its_proof(fixture).await;
    a_stale_owner_records_its_charge(fixture).await;
    a_charge_settles_a_held_order(fixture).await;
    a_second_charge_is_seen_and_the_first_one_stays(fixture).await;
    a_charge_that_the_record_cannot_hold_changes_nothing(fixture).await;
    a_decline_needs_its_proof(fixture).await;
    results_recognise_their_own_writes(fixture).await;
}

fn paid(evidence: Evidence, charge: &str) -> Paid {
    let (charge_id, request_id) = (charge.to_owned(), Some("req_1".to_owned()));
    Paid { evidence, charge_id, request_id, now: NOW, expires_at: EXPIRES_AT }
}

fn by_handle(handle: &str) -> Evidence {
    Evidence::Handle(handle.to_owned())
}

async fn a_charge_is_recorded_with_its_proof<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "paid");
    let lease = bench.armed("a", "pi_1").await;
    bench.ledger().release(lease, "UNKNOWN", Left::Doubt).await.expect("it is mine");
    let lease = bench.started(two_phase("b")).await;
    let completion = bench.ledger().complete(lease, paid(by_handle("pi_1"), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.charge_id.as_deref()), (State::Paid, Some("ch_1")));
    assert_eq!(entry.provider_request_id.as_deref(), Some("req_1"));
    assert_eq!((entry.lease_until, &entry.error, entry.attention), (None, &None, None));
    assert_eq!((entry.expires_at, entry.fence), (Some(EXPIRES_AT), 2));

    let bench = Bench::new(fixture, "paid-one-shot");
    let lease = bench.started(one_shot("a")).await;
    let completion = bench.ledger().complete(lease, paid(Evidence::Attempt(1), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);
    assert_eq!(bench.entry().await.state, State::Paid);
}

async fn a_stale_owner_records_its_charge<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "paid-stale");
    let stale = bench.armed("a", "pi_1").await;
    let fresh = bench.started(later(two_phase("b"), LEASE.saturating_mul(2))).await;
    let completion = bench.ledger().complete(stale, paid(by_handle("pi_1"), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);
    let completion = bench.ledger().complete(fresh, paid(by_handle("pi_1"), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded, "the same charge is no second one");
    assert_eq!(bench.entry().await.state, State::Paid);
}

async fn a_charge_settles_a_held_order<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "paid-held");
    let lease = bench.armed("a", "pi_1").await;
    let fresh = bench.started(later(two_phase("b"), LEASE.saturating_mul(2))).await;
    bench.ledger().hold(fresh, "HANDLE_NOT_FOUND", NOW).await.expect("it is mine");
    let completion = bench.ledger().complete(lease, paid(by_handle("pi_1"), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);
    let entry = bench.entry().await;
    assert_eq!((entry.state, &entry.held_reason, entry.attention), (State::Paid, &None, None));
}

async fn a_second_charge_is_seen_and_the_first_one_stays<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "double");
    let first = bench.started(one_shot("a")).await;
    let second = bench.started(later(one_shot("b"), LEASE.saturating_mul(2))).await;
    let completion = bench.ledger().complete(first, paid(Evidence::Attempt(1), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);
    let before = bench.entry().await;
    let completion = bench.ledger().complete(second, paid(Evidence::Attempt(1), "ch_2")).await;
    assert_eq!(completion.expect("it answers"), Completion::DoubleCharge { recorded: "ch_1".to_owned() });
    assert_eq!(bench.entry().await, before);
}

async fn a_charge_that_the_record_cannot_hold_changes_nothing<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "contradiction");
    let lease = bench.armed("a", "pi_1").await;
    let declined = Entry { handle: Some("pi_1".to_owned()), ..in_state(State::Declined) };
    bench.seed(&declined).await;
    let completion = bench.ledger().complete(lease, paid(by_handle("pi_1"), "ch_1")).await;
    let contradiction = Completion::Contradicts { state: Some(State::Declined) };
    assert_eq!(completion.expect("it answers"), contradiction);
    assert_eq!(bench.entry().await, declined);

    let bench = Bench::new(fixture, "other-handle");
    let lease = bench.armed("a", "pi_1").await;
    let completion = bench.ledger().complete(lease, paid(by_handle("pi_2"), "ch_1")).await;
    let contradiction = Completion::Contradicts { state: Some(State::Prepared) };
    assert_eq!(completion.expect("it answers"), contradiction);
}

async fn a_decline_needs_its_proof<F: Fixture>(fixture: &F) {
    let sealed = || Refused::Sealed("pi_1".to_owned());
    let bench = Bench::new(fixture, "declined");
    let lease = bench.armed("a", "pi_1").await;
    let owned = Refused::BeforeHandle(lease.owner());
    let early = bench.ledger().decline(lease, owned, "card_declined", NOW, EXPIRES_AT).await;
    assert!(matches!(early, Err(LeaseError::Lost(_))), "a stored handle must be sealed first");
    let lease = bench.started(later(two_phase("b"), LEASE.saturating_mul(2))).await;
    let declined = bench.ledger().decline(lease, sealed(), "card_declined", NOW, EXPIRES_AT).await;
    declined.expect("a sealed handle");
    let entry = bench.entry().await;
    assert_eq!((entry.state, entry.error.as_deref()), (State::Declined, Some("card_declined")));
    assert_eq!((entry.lease_until, entry.attention, entry.expires_at), (None, None, Some(EXPIRES_AT)));

    let bench = Bench::new(fixture, "declined-early");
    let lease = bench.started(two_phase("a")).await;
    let refused = Refused::BeforeHandle(lease.owner());
    bench.ledger().decline(lease, refused, "invalid", NOW, EXPIRES_AT).await.expect("nothing was made");

    let bench = Bench::new(fixture, "declined-one-shot-stale");
    let stale = bench.started(one_shot("a")).await;
    let fresh = bench.started(later(one_shot("b"), LEASE.saturating_mul(2))).await;
    let refused = Refused::OneShot(stale.owner());
    let late = bench.ledger().decline(stale, refused, "card_declined", NOW, EXPIRES_AT).await;
    assert!(matches!(late, Err(LeaseError::Lost(_))), "another owner may be charging");
    let refused = Refused::OneShot(fresh.owner());
    bench.ledger().decline(fresh, refused, "card_declined", NOW, EXPIRES_AT).await.expect("it is mine");
}

async fn results_recognise_their_own_writes<F: Fixture>(fixture: &F) {
    let repeating = Repeating(fixture.ledger());
    let bench = Bench::new(fixture, "own-paid");
    let lease = bench.armed("a", "pi_1").await;
    let completion = repeating.complete(lease, paid(by_handle("pi_1"), "ch_1")).await;
    assert_eq!(completion.expect("it answers"), Completion::Recorded);

    let bench = Bench::new(fixture, "own-declined");
    let lease = bench.armed("a", "pi_1").await;
    let sealed = Refused::Sealed("pi_1".to_owned());
    let declined = repeating.decline(lease, sealed, "card_declined", NOW, EXPIRES_AT).await;
    declined.expect("its own decline");
}
