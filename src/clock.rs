//! Time as an argument: every instant in the crate comes from a [`Clock`], so a test can set it.

use std::{fmt, sync::Arc, time::Duration};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// An instant in milliseconds since the Unix epoch, the one unit used for leases, deadlines and ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down: the unit of DynamoDB's TTL attribute.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This instant moved later; saturates instead of overflowing.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This instant moved earlier; saturates instead of overflowing.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Integers below this are read as epoch seconds, others as milliseconds (the boundary is 1973 in one unit and
/// 5138 in the other).
const SECONDS_BELOW: i64 = 100_000_000_000;

/// Reads RFC 3339, or an epoch in seconds or milliseconds; `None` for anything else, or an instant before 1970.
pub fn parse_instant(text: &str) -> Option<Timestamp> {
    let millis = match text.parse::<i64>() {
        Ok(seconds) if seconds < SECONDS_BELOW => seconds.checked_mul(1000)?,
        Ok(millis) => millis,
        Err(_) => {
            let nanos = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
            i64::try_from(nanos.div_euclid(1_000_000)).ok()?
        }
    };
    (millis >= 0).then_some(Timestamp(millis))
}

/// Where the time comes from. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn system() -> Self {
        Self::from_fn(|| {
            let since =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
            Timestamp(millis(since))
        })
    }

    /// A clock that a test or an emulator drives.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Reads epoch milliseconds as SQS writes them; `None` for anything else.
pub(crate) fn epoch_millis(text: &str) -> Option<Timestamp> {
    text.trim().parse().ok().filter(|millis| *millis > 0).map(Timestamp::from_millis)
}

/// Reads a duration as people write it: `500ms`, `10s`, `5m`, `20h` or `7d`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let count: u64 = digits.parse().ok()?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(millis).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_underflow() {
        let (a, b) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(b.since(a), Duration::from_millis(4));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(i64::MAX).plus(Duration::MAX).as_millis(), i64::MAX);
        assert_eq!(Timestamp::from_millis(-1).as_secs(), -1);
    }

    #[test]
    fn durations_have_units() {
        let cases =
            [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("20h", 72_000_000), ("1d", 86_400_000)];
        for (text, millis) in cases {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)));
        }
        for text in ["", "10", "s", "-1s", "1.5s", "1 s", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
