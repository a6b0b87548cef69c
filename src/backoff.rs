//! How long a message stays hidden before its next try: exponential with full jitter.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Where chance comes from: jitter and owner tokens are drawn from it per call, never at start, because a
/// value drawn once would be the same in every copy of a process.
#[derive(Clone, Debug, Default)]
pub enum Random {
    /// The operating system for tokens, a fast generator for jitter.
    #[default]
    System,
    /// A seeded generator, for tests and simulations that must repeat.
    Seeded(Arc<Mutex<fastrand::Rng>>),
}

impl Random {
    /// A generator that gives the same values for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// A duration drawn uniformly from zero to `max`, both included, in whole milliseconds.
    pub fn up_to(&self, max: Duration) -> Duration {
        let millis = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(match self {
            Self::System => fastrand::u64(..=millis),
            Self::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).u64(..=millis),
        })
    }

    /// A token that no other call gets: a version 4 UUID.
    pub fn token(&self) -> String {
        match self {
            Self::System => uuid::Uuid::new_v4().to_string(),
            Self::Seeded(rng) => {
                let bits = rng.lock().unwrap_or_else(PoisonError::into_inner).u128(..);
                uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
            }
        }
    }
}

/// Exponential backoff with full jitter: uniform in `0..=min(cap, base * 2^(receive_count - 1))`.
///
/// Full jitter is the variant with the least contention in AWS's own comparison ("Exponential Backoff And
/// Jitter", AWS Architecture Blog).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Upper bound of the first delay.
    pub base: Duration,
    /// Upper bound of every delay.
    pub cap: Duration,
}

impl Backoff {
    /// The longest delay that may be drawn for a message received `receive_count` times.
    pub fn ceiling(&self, receive_count: u32) -> Duration {
        let doublings = receive_count.saturating_sub(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }

    /// The delay for a message received `receive_count` times: anything from zero to [`Backoff::ceiling`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use charge_once::backoff::{Backoff, Random};
    ///
    /// let backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) };
    /// assert_eq!(backoff.ceiling(3), Duration::from_secs(20));
    /// assert!(backoff.delay(3, &Random::seeded(1)) <= Duration::from_secs(20));
    /// ```
    pub fn delay(&self, receive_count: u32, random: &Random) -> Duration {
        random.up_to(self.ceiling(receive_count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) };

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let seconds: Vec<u64> =
            [1, 2, 3, 8, 9, 32, 33, u32::MAX].map(|n| BACKOFF.ceiling(n).as_secs()).to_vec();
        assert_eq!(seconds, [5, 10, 20, 640, 900, 900, 900, 900]);
        assert_eq!(BACKOFF.ceiling(0), BACKOFF.base, "a count of 0 is read as the first receive");
    }

    #[test]
    fn delays_stay_within_the_ceiling_and_repeat_for_a_seed() {
        let draw = |seed| {
            let random = Random::seeded(seed);
            (1..2000).map(|n| BACKOFF.delay(n, &random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert!(draw(7).iter().zip(1..).all(|(delay, n)| *delay <= BACKOFF.ceiling(n)));
    }

    #[test]
    fn tokens_differ() {
        let random = Random::seeded(1);
        assert_ne!(random.token(), random.token());
        assert_ne!(Random::System.token(), Random::System.token());
    }

    proptest! {
        #[test]
        fn no_count_and_no_setting_leaves_the_bounds(
            base in 0..=u64::MAX, cap in 0..=u64::MAX, count in any::<u32>(), seed in any::<u64>()
        ) {
            let backoff = Backoff { base: Duration::from_millis(base), cap: Duration::from_millis(cap) };
            let ceiling = backoff.ceiling(count);
            prop_assert!(ceiling <= backoff.cap);
            prop_assert!(ceiling >= backoff.base.min(backoff.cap), "never shorter than the first one");
            prop_assert!(ceiling <= backoff.ceiling(count.saturating_add(1)), "more receives never wait less");
            prop_assert!(backoff.delay(count, &Random::seeded(seed)) <= ceiling);
        }
    }
}
