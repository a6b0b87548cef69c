//! Amounts against a decimal crate: many random ones, most of them near what is allowed.

use super::targets;

/// Lengths of the digits before and behind the point that decide: an amount of the largest limit, and a bit more.
const WHOLE: usize = 9;
const FRACTION: usize = 5;

/// A text that is an amount, or nearly one, behind the byte that picks its currency.
fn amount(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut text = vec![rng.u8(0..5)];
    if rng.u8(0..16) == 0 {
        text.push(b'-');
    }
    let whole = rng.usize(0..=WHOLE);
    text.extend((0..whole).map(|_| rng.u8(b'0'..=b'9')));
    if rng.bool() {
        text.push(b'.');
        let fraction = rng.usize(0..=FRACTION);
        text.extend((0..fraction).map(|_| if rng.bool() { b'0' } else { rng.u8(b'0'..=b'9') }));
    }
    if rng.u8(0..64) == 0 {
        let at = rng.usize(1..=text.len());
        text.insert(at, *rng.choice(b"e+ _,.x").unwrap());
    }
    text
}

fn agree(count: u32, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (_, money) = targets::TARGETS.into_iter().find(|(name, _)| *name == "money").unwrap();
    (0..count).for_each(|_| money(&amount(&mut rng)));
}

#[test]
fn amounts_are_read_as_a_decimal_crate_reads_them() {
    agree(200_000, 1);
}

#[test]
#[ignore = "millions of amounts; make prove"]
fn prove_that_amounts_are_read_as_a_decimal_crate_reads_them() {
    agree(10_000_000, 2);
}
