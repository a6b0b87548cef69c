//! A probability as an integer: no rule may depend on how a float rounds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backoff::Random;

/// Parts of a whole.
const WHOLE: u32 = 1_000_000;

/// A probability in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u32);

/// Why a text is no probability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChanceError {
    /// Neither a percentage nor permille.
    #[error("`{0}` is neither a percentage such as `2.5%` nor a whole number of permille such as `25`")]
    Unreadable(String),
    /// Above one.
    #[error("`{0}` is more than 100%")]
    TooMuch(String),
}

impl Chance {
    /// Reads `2.5%` (at most four decimals) or `25`, a whole number of permille.
    ///
    /// # Errors
    /// The text is not of this form, or is more than 100 %.
    pub fn parse(text: &str) -> Result<Self, ChanceError> {
        let millionths = match text.strip_suffix('%') {
            Some(percent) => percent_in_millionths(percent),
            None => digits(text).and_then(|permille| permille.checked_mul(1000)),
        };
        match millionths {
            None => Err(ChanceError::Unreadable(text.to_owned())),
            Some(millionths) if millionths > WHOLE => Err(ChanceError::TooMuch(text.to_owned())),
            Some(millionths) => Ok(Self(millionths)),
        }
    }

    /// Draws.
    pub(super) fn hits(self, random: &Random) -> bool {
        let highest = Duration::from_millis(u64::from(WHOLE.saturating_sub(1)));
        random.up_to(highest).as_millis() < u128::from(self.0)
    }
}

/// `2.5` is 25 000 millionths: one percent is 10 000, so there is room for four decimals.
fn percent_in_millionths(percent: &str) -> Option<u32> {
    let (whole, decimals) = percent.split_once('.').unwrap_or((percent, "0"));
    if decimals.len() > 4 {
        return None;
    }
    let decimals = digits(&format!("{decimals:0<4}")).filter(|_| !decimals.is_empty())?;
    digits(whole)?.checked_mul(10_000)?.checked_add(decimals)
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (percent, decimals) = (self.0.div_euclid(10_000), self.0.rem_euclid(10_000));
        serializer.collect_str(&format_args!("{percent}.{decimals:04}%"))
    }
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Permille(u32),
            Text(String),
        }
        let text = match Form::deserialize(deserializer)? {
            Form::Permille(permille) => permille.to_string(),
            Form::Text(text) => text,
        };
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_permille_are_read_exactly() {
        let cases = [("0", 0), ("25", 25_000), ("1000", 1_000_000), ("5%", 50_000), ("0.5%", 5_000)];
        let more = [("2.25%", 22_500), ("0.0001%", 1), ("100%", 1_000_000), ("100.0%", 1_000_000)];
        for (text, millionths) in cases.into_iter().chain(more) {
            assert_eq!(Chance::parse(text), Ok(Chance(millionths)), "{text}");
        }
        for text in ["", "%", ".5%", "5.%", "-1", "+1", "1.5", "0.00001%", "1e3", "5 %", "99999999999"] {
            assert_eq!(Chance::parse(text), Err(ChanceError::Unreadable(text.into())), "{text}");
        }
        for text in ["1001", "101%", "100.0001%"] {
            assert_eq!(Chance::parse(text), Err(ChanceError::TooMuch(text.into())), "{text}");
        }
    }

    #[test]
    fn never_and_always_are_exact() {
        let random = Random::seeded(1);
        assert!((0..1000).all(|_| !Chance(0).hits(&random) && Chance(WHOLE).hits(&random)));
    }
}
