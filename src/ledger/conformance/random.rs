//! Random records and writes: the ledger answers and stores what [`Intent::apply`] says, to the last attribute.

use std::time::Duration;

use fastrand::Rng;

use super::{Bench, Fixture};
use crate::{
    clock::Timestamp,
    ledger::{
        Applied, Attention, Begin, Entry, Evidence, Found, Intent, Ledger, Left, Owner, Refused, Resolution,
        State, Verdict,
    },
};

/// Makes `runs` random writes to as many random records, or to none. A failed run is told by its number; the
/// same seed repeats it.
///
/// # Panics
/// The ledger answers or stores something else than [`Intent::apply`] says.
pub async fn equivalence<F: Fixture>(fixture: &F, seed: u64, runs: u32) {
    let mut rng = Rng::with_seed(seed);
    for run in 0..runs {
        let bench = Bench::new(fixture, &format!("random-{seed}-{run}"));
        let old = (rng.u8(..6) > 0).then(|| entry(&mut rng));
        if let Some(old) = &old {
            bench.seed(old).await;
        }
        let intent = intent(&mut rng, old.as_ref());
        let expected = match intent.apply(old.as_ref()) {
            Some(new) => Applied::Written { old: old.clone().map(Box::new), new: Box::new(new) },
            None => Applied::Refused(found(old.clone())),
        };
        let said = format!("seed {seed}, run {run}: {intent:?} on {old:?}");
        let applied = bench.ledger().apply(&bench.order_id, &intent).await.expect(&said);
        assert_eq!(applied, expected, "{said}");
        let stored = bench.ledger().get(&bench.order_id).await.expect(&said);
        assert_eq!(stored, found(intent.apply(old.as_ref()).or(old)), "{said}");
    }
}

/// A second try of a write that was applied is never a refusal by somebody else.
pub(super) async fn own_writes_are_recognised<F: Fixture>(fixture: &F) {
    let mut rng = Rng::with_seed(1);
    let mut written = 0_u32;
    for run in 0..700 {
        let bench = Bench::new(fixture, &format!("own-write-{run}"));
        let old = (rng.u8(..6) > 0).then(|| entry(&mut rng));
        let intent = intent(&mut rng, old.as_ref());
        let Some(new) = intent.apply(old.as_ref()) else { continue };
        if let Some(old) = &old {
            bench.seed(old).await;
        }
        written = written.saturating_add(1);
        bench.ledger().apply(&bench.order_id, &intent).await.expect("it answers");
        match bench.ledger().apply(&bench.order_id, &intent).await.expect("it answers") {
            Applied::Refused(Found::Entry(found)) => {
                assert!(intent.is_already_done(&found), "{intent:?} does not know {found:?}");
            }
            Applied::Written { .. } => {}
            Applied::Refused(other) => panic!("{intent:?} left {other:?}"),
        }
        assert_eq!(bench.entry().await, new, "a second try changes nothing: {intent:?}");
    }
    assert!(written > 100, "only {written} of the random writes were applied");
}

fn found(entry: Option<Entry>) -> Found {
    entry.map_or(Found::Nothing, |entry| Found::Entry(Box::new(entry)))
}

fn entry(rng: &mut Rng) -> Entry {
    Entry {
        state: *rng.choice(&State::ALL).expect("not empty"),
        owner: token(rng),
        fence: rng.u64(1..3),
        lease_until: maybe(rng, instant),
        attempt: rng.u32(1..4),
        fingerprint: one_of(rng, ["print-1", "print-2"]),
        amount_minor: rng.i64(1..3),
        currency: one_of(rng, ["EUR", "JPY"]),
        provider: one_of(rng, ["stripe:default:test", "http:default"]),
        handle: maybe(rng, handle),
        handle_generation: rng.u32(0..3),
        first_seen_at: instant(rng),
        first_sent_at: maybe(rng, instant),
        state_changed_at: instant(rng),
        charge_id: maybe(rng, charge),
        provider_request_id: maybe(rng, charge),
        error: maybe(rng, code),
        held_reason: maybe(rng, code),
        message_id: maybe(rng, token),
        receive_count: rng.u32(1..4),
        attention: maybe(rng, |rng| if rng.bool() { Attention::Held } else { Attention::Unsettled }),
        expires_at: maybe(rng, |rng| rng.i64(0..3)),
    }
}

fn intent(rng: &mut Rng, old: Option<&Entry>) -> Intent {
    let now = instant(rng);
    let mine = mine(rng, old);
    let near = |rng: &mut Rng| match old.and_then(|old| old.handle.clone()) {
        Some(handle) if rng.u8(..4) > 0 => handle,
        _ => handle(rng),
    };
    match rng.u8(..12) {
        0 | 1 => Intent::Begin(begin(rng, old, false)),
        2 => Intent::NewAttempt(begin(rng, old, true)),
        3 => Intent::StoreHandle { mine, handle: handle(rng), now },
        4 => Intent::ReplaceHandle { mine, old: near(rng), new: "pi_3".to_owned(), now },
        5 => Intent::Resend { mine, now },
        6 => {
            let evidence = match rng.bool() {
                true => Evidence::Handle(near(rng)),
                false => Evidence::Attempt(old.map_or(1, |old| old.attempt).max(rng.u32(0..2))),
            };
            let (charge_id, request_id) = (charge(rng), maybe(rng, charge));
            Intent::Pay { evidence, charge_id, request_id, now, expires_at: rng.i64(0..3) }
        }
        7 => {
            let refused = match rng.u8(..3) {
                0 => Refused::BeforeHandle(mine),
                1 => Refused::Sealed(near(rng)),
                _ => Refused::OneShot(mine),
            };
            Intent::Decline { refused, error: code(rng), now, expires_at: rng.i64(0..3) }
        }
        8 => {
            let left = [Left::NothingSent, Left::Untouched, Left::Doubt];
            Intent::Release { mine, error: code(rng), left: *rng.choice(left.iter()).expect("not empty") }
        }
        9 if rng.bool() => Intent::Renew { mine, until: now },
        9 => Intent::HoldMissing { begin: begin(rng, old, false), reason: code(rng) },
        10 => Intent::Resolve(Resolution {
            fence: mine.fence,
            token: code(rng),
            by: code(rng),
            verdict: match rng.u8(..3) {
                0 => Verdict::Paid { charge_id: charge(rng), expires_at: rng.i64(0..3) },
                1 => Verdict::Declined { expires_at: rng.i64(0..3) },
                _ => Verdict::Retry,
            },
            now,
        }),
        _ => Intent::Hold { mine, reason: code(rng), now },
    }
}

/// The delivery that wrote the record, most of the time.
fn begin(rng: &mut Rng, old: Option<&Entry>, next_attempt: bool) -> Begin {
    let same = old.cloned().unwrap_or_else(|| entry(rng));
    let other = entry(rng);
    let pick = |rng: &mut Rng| rng.u8(..8) > 0;
    let attempt = same.attempt.saturating_add(u32::from(next_attempt));
    let now = instant(rng);
    Begin {
        token: format!("begin-{}", rng.u8(..2)),
        now,
        lease_until: now.plus(Duration::from_secs(rng.u64(0..20))),
        one_shot: rng.bool(),
        may_create: rng.u8(..4) > 0,
        epoch: maybe(rng, instant),
        attempt: if pick(rng) { attempt } else { other.attempt },
        fingerprint: if pick(rng) { same.fingerprint } else { other.fingerprint },
        amount_minor: other.amount_minor,
        currency: other.currency,
        provider: if pick(rng) { same.provider } else { other.provider },
        message_id: maybe(rng, token),
        receive_count: rng.u32(1..4),
    }
}

fn mine(rng: &mut Rng, old: Option<&Entry>) -> Owner {
    match old {
        Some(old) if rng.u8(..5) > 0 => Owner { token: old.owner.clone(), fence: old.fence },
        _ => Owner { token: token(rng), fence: rng.u64(1..3) },
    }
}

fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    rng.bool().then(|| make(rng))
}

fn one_of<const N: usize>(rng: &mut Rng, values: [&str; N]) -> String {
    (*rng.choice(values.iter()).expect("not empty")).to_owned()
}

fn token(rng: &mut Rng) -> String {
    one_of(rng, ["a", "b"])
}

fn handle(rng: &mut Rng) -> String {
    one_of(rng, ["pi_1", "pi_2"])
}

fn charge(rng: &mut Rng) -> String {
    one_of(rng, ["ch_1", "ch_2"])
}

fn code(rng: &mut Rng) -> String {
    one_of(rng, ["card_declined", "UNKNOWN"])
}

/// On both sides of the skew, and zero, which a release writes.
fn instant(rng: &mut Rng) -> Timestamp {
    let seconds = rng.i64(0..20);
    Timestamp::from_millis(if seconds == 0 {
        0
    } else {
        1_800_000_000_000_i64.saturating_add(seconds.saturating_mul(1000))
    })
}
