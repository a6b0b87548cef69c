//! Exact money: an integer of minor units and an ISO 4217 currency. No float ever touches an amount.

use std::fmt;

/// Longest amount that is read, in characters.
const MAX_AMOUNT_CHARS: usize = 40;

/// An ISO 4217 currency that has minor units; `XXX`, `XAU` and the like are none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    iso: iso_currency::Currency,
    exponent: u16,
}

impl Currency {
    /// Reads a three-letter code in any case; `None` if ISO 4217 gives it no minor unit.
    pub fn parse(code: &str) -> Option<Self> {
        let letters = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        let iso = iso_currency::Currency::from_code(&code.to_ascii_uppercase()).filter(|_| letters)?;
        Some(Self { iso, exponent: iso.exponent()? })
    }

    /// The upper-case code.
    pub fn code(self) -> &'static str {
        self.iso.code()
    }

    /// How many decimals the currency has: 2 for EUR, 0 for JPY, 3 for KWD.
    pub fn exponent(self) -> u16 {
        self.exponent
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A positive amount of one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// Reads an amount in major units, such as `49.90`, exactly.
    ///
    /// The grammar is `-?(0|[1-9][0-9]*)(\.[0-9]+)?` in at most 40 characters, without an exponent. Zeros at
    /// the end of the fraction do not count; nothing is ever rounded. `max_minor` is the largest amount allowed.
    ///
    /// # Errors
    /// See [`MoneyError`]; none of its texts quotes the amount.
    ///
    /// ```
    /// use charge_once::money::{Currency, Money, MoneyError};
    ///
    /// let yen = Currency::parse("JPY").ok_or("no such currency")?;
    /// assert_eq!(Money::parse("4990", yen, 99_999_999).map(Money::minor), Ok(4990));
    /// assert!(matches!(Money::parse("49.90", yen, 99_999_999), Err(MoneyError::Precision { decimals: 0, .. })));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn parse(amount: &str, currency: Currency, max_minor: i64) -> Result<Self, MoneyError> {
        let decimal = Decimal::parse(amount).ok_or(MoneyError::Format)?;
        if decimal.fraction.len() > usize::from(currency.exponent) {
            return Err(MoneyError::Precision { currency, decimals: currency.exponent });
        }
        if decimal.negative || decimal.is_zero() {
            return Err(MoneyError::NotPositive);
        }
        let minor = decimal.minor_units(currency.exponent).ok_or(MoneyError::TooLarge { max_minor })?;
        if minor > max_minor {
            return Err(MoneyError::TooLarge { max_minor });
        }
        Ok(Self { minor, currency })
    }

    /// The amount that a record holds; `None` if it is not above 0.
    pub fn recorded(minor: i64, currency: Currency) -> Option<Self> {
        (minor > 0).then_some(Self { minor, currency })
    }

    /// The amount in the minor unit of ISO 4217: cents for EUR, yen for JPY, fils for KWD.
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// The currency.
    pub fn currency(self) -> Currency {
        self.currency
    }
}

/// The pieces of a decimal text; the fraction without its trailing zeros.
struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_AMOUNT_CHARS {
            return None;
        }
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (digits, ""),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        (is_digits(whole) && !leading_zero).then(|| Self {
            negative,
            whole,
            fraction: fraction.trim_end_matches('0'),
        })
    }

    fn is_zero(&self) -> bool {
        self.whole == "0" && self.fraction.is_empty()
    }

    /// `None` if the amount does not fit 64 bits. The fraction must not be longer than `exponent`.
    fn minor_units(&self, exponent: u16) -> Option<i64> {
        let padding = usize::from(exponent).checked_sub(self.fraction.len())?;
        let digits =
            self.whole.bytes().chain(self.fraction.bytes()).chain(std::iter::repeat_n(b'0', padding));
        digits.into_iter().try_fold(0_i64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(i64::from(digit.checked_sub(b'0')?))
        })
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Why an amount is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a plain decimal: an exponent, a comma, a sign, white space or something else.
    #[error("`amount` must be a plain decimal of at most 40 characters, such as 49.90")]
    Format,
    /// More decimals than the currency has; rounding would charge something nobody ordered.
    #[error("`amount` has more decimals than {currency:?} has ({decimals})")]
    Precision {
        /// The order's currency.
        currency: Currency,
        /// The decimals it has.
        decimals: u16,
    },
    /// Zero or below.
    #[error("`amount` must be above 0")]
    NotPositive,
    /// Above the configured limit, `MAX_AMOUNT_MINOR`.
    #[error("`amount` is above MAX_AMOUNT_MINOR ({max_minor} minor units)")]
    TooLarge {
        /// The limit.
        max_minor: i64,
    },
}

impl MoneyError {
    /// The reason in logs and on dead-lettered messages.
    pub fn code(self) -> &'static str {
        match self {
            Self::Format => "AMOUNT_FORMAT",
            Self::Precision { .. } => "AMOUNT_PRECISION",
            Self::NotPositive => "AMOUNT_NOT_POSITIVE",
            Self::TooLarge { .. } => "AMOUNT_TOO_LARGE",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn minor(amount: &str, currency: &str) -> Result<i64, &'static str> {
        let currency = Currency::parse(currency).unwrap();
        Money::parse(amount, currency, 99_999_999).map(Money::minor).map_err(MoneyError::code)
    }

    #[test]
    fn amounts_are_read_exactly() {
        let cases = [
            ("19.99", "EUR", 1999),
            ("8.20", "EUR", 820),
            ("17.08", "EUR", 1708),
            ("4.35", "EUR", 435),
            ("1.15", "EUR", 115),
            ("0.29", "EUR", 29),
            ("49.9000", "EUR", 4990),
            ("100", "JPY", 100),
            ("100.00", "JPY", 100),
            ("1.234", "KWD", 1234),
            ("1.2", "KWD", 1200),
            ("999999.99", "USD", 99_999_999),
        ];
        for (amount, currency, expected) in cases {
            assert_eq!(minor(amount, currency), Ok(expected), "{amount} {currency}");
        }
    }

    #[test]
    fn nothing_is_rounded() {
        assert_eq!(minor("1.005", "EUR"), Err("AMOUNT_PRECISION"));
        assert_eq!(minor("0.5", "JPY"), Err("AMOUNT_PRECISION"));
        assert_eq!(minor("0.0001", "KWD"), Err("AMOUNT_PRECISION"));
    }

    #[test]
    fn amounts_that_are_no_plain_decimals_are_refused() {
        let long = format!("1.{}", "0".repeat(39));
        let texts = [
            "", " 1", "1 ", "+1", "1e2", "1E2", "01", "1.", ".5", "1,99", "1.9.9", "€1", "NaN", "--1", "0x1",
            "१", &long,
        ];
        for text in texts {
            assert_eq!(minor(text, "EUR"), Err("AMOUNT_FORMAT"), "{text}");
        }
    }

    #[test]
    fn amounts_outside_the_range_are_refused() {
        for text in ["0", "0.00", "-0", "-5", "-0.01"] {
            assert_eq!(minor(text, "EUR"), Err("AMOUNT_NOT_POSITIVE"), "{text}");
        }
        for text in ["1000000.00", "9223372036854775808", "99999999999999999999999999999999999999"] {
            assert_eq!(minor(text, "EUR"), Err("AMOUNT_TOO_LARGE"), "{text}");
        }
    }

    /// ISO 4217's own exponents, for the codes that libraries get wrong or that are not 2.
    #[test]
    fn exponents_agree_with_iso_4217() {
        let table: [(u16, &[&str]); 4] = [
            (
                0,
                &[
                    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI",
                    "VND", "VUV", "XAF", "XOF", "XPF",
                ],
            ),
            (2, &["EUR", "USD", "GBP", "CHF", "HUF", "TWD", "MGA", "MRU", "INR", "BRL", "CNY", "SEK"]),
            (3, &["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]),
            (4, &["CLF", "UYW"]),
        ];
        for (exponent, codes) in table {
            for code in codes {
                assert_eq!(Currency::parse(code).map(Currency::exponent), Some(exponent), "{code}");
            }
        }
    }

    #[test]
    fn a_currency_is_three_letters_of_iso_4217_in_any_case() {
        assert_eq!(Currency::parse("eUr").unwrap().code(), "EUR");
        for code in ["", "EU", "EURO", "XXX", "XAU", "XTS", "ZZZ", "€UR", "E R", "12A"] {
            assert_eq!(Currency::parse(code), None, "{code}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_survives_print_and_parse(minor_units in 1_i64..=99_999_999, code in "EUR|JPY|KWD|CLF") {
            let currency = Currency::parse(&code).unwrap();
            let scale = 10_i64.pow(u32::from(currency.exponent()));
            let width = usize::from(currency.exponent());
            let (whole, fraction) = (minor_units.div_euclid(scale), minor_units.rem_euclid(scale));
            let text = if width == 0 { whole.to_string() } else { format!("{whole}.{fraction:0width$}") };
            prop_assert_eq!(minor(&text, &code), Ok(minor_units));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = minor(&text, "EUR");
        }
    }
}
