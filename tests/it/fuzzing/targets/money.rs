//! An amount: read as a decimal crate reads it, or refused for the reason that the crate's number shows.

use charge_once::money::{Currency, Money, MoneyError};
use rust_decimal::Decimal;

use super::{assert_loggable, order};

const CURRENCIES: [&str; 5] = ["EUR", "JPY", "KWD", "CLF", "MGA"];
const MAX_MINOR: i64 = 99_999_999;

/// The input is the amount, behind a byte that picks the currency.
pub(crate) fn run(data: &[u8]) {
    let Some((pick, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let code = CURRENCIES[usize::from(*pick) % CURRENCIES.len()];
    let currency = Currency::parse(code).expect("a currency of ISO 4217");
    let read = Money::parse(text, currency, MAX_MINOR);
    if let Ok(money) = read {
        assert!((1..=MAX_MINOR).contains(&money.minor()));
        assert_eq!(Money::parse(&order::amount(money), currency, MAX_MINOR), read);
    }
    if let Err(error) = read {
        assert_loggable(&format!("{error} {}", error.code()));
    }
    // Beyond 28 digits the decimal crate has no exact number to compare with.
    if let Ok(exact) = Decimal::from_str_exact(text) {
        assert_agrees(read, exact.normalize(), currency);
    }
}

fn assert_agrees(read: Result<Money, MoneyError>, exact: Decimal, currency: Currency) {
    let decimals = u32::from(currency.exponent());
    match read {
        Ok(money) => assert_eq!(Decimal::new(money.minor(), decimals).normalize(), exact),
        Err(MoneyError::Precision { .. }) => assert!(exact.scale() > decimals),
        Err(MoneyError::NotPositive) => assert!(exact <= Decimal::ZERO),
        Err(MoneyError::TooLarge { .. }) => assert!(exact > Decimal::new(MAX_MINOR, decimals)),
        // The crate also reads `+1`, `1_000` and the like, which no order may say.
        Err(MoneyError::Format) => {}
    }
}
