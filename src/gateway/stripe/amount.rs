//! Stripe's own unit of each currency, which is not always the minor unit of ISO 4217.

use crate::money::Money;

/// How an amount in ISO minor units is written for Stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// As it is.
    Same,
    /// Times a power of ten, because Stripe writes decimals that ISO does not have.
    Times(i64),
    /// Divided by a power of ten, because Stripe writes fewer decimals; what is cut off must be zero.
    DividedBy(i64),
    /// As it is, but only multiples of this.
    MultiplesOf(i64),
    /// Not charged until somebody finds out what Stripe wants: its own pages disagree.
    Unclear,
}

/// Stripe, "Supported currencies": zero-decimal, three-decimal and special cases; everything else has two decimals.
fn scale(currency: &str, iso_exponent: u16) -> Scale {
    const ZERO_DECIMALS: [&str; 15] = [
        "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF",
        "XPF",
    ];
    const THREE_DECIMALS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];
    match (currency, iso_exponent) {
        ("UGX", _) => Scale::Unclear,
        // ISO has no aurar; Stripe writes two decimals that must be zero.
        ("ISK", _) => Scale::Times(100),
        (code, 0) if ZERO_DECIMALS.contains(&code) => Scale::Same,
        // The ariary has a fifth that ISO counts as two decimals; Stripe has none.
        (code, 2) if ZERO_DECIMALS.contains(&code) => Scale::DividedBy(100),
        // Card networks take two decimals, so the third must be zero.
        (code, 3) if THREE_DECIMALS.contains(&code) => Scale::MultiplesOf(10),
        (_, 2) => Scale::Same,
        _ => Scale::Unclear,
    }
}

/// The amount as Stripe wants it, or `None` if it cannot be expressed exactly.
pub fn on_the_wire(money: Money) -> Option<i64> {
    let minor = money.minor();
    match scale(money.currency().code(), money.currency().exponent()) {
        Scale::Same => Some(minor),
        Scale::Times(factor) => minor.checked_mul(factor),
        Scale::DividedBy(factor) => {
            (minor.checked_rem(factor) == Some(0)).then(|| minor.checked_div(factor)).flatten()
        }
        Scale::MultiplesOf(step) => (minor.checked_rem(step) == Some(0)).then_some(minor),
        Scale::Unclear => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    #[test]
    fn every_special_case_of_stripe_is_followed() {
        let cases = [
            ("49.90", "EUR", Some(4990)),
            ("500", "JPY", Some(500)),
            ("500", "BIF", Some(500)),
            ("500", "CLP", Some(500)),
            ("500", "DJF", Some(500)),
            ("500", "GNF", Some(500)),
            ("500", "KMF", Some(500)),
            ("500", "KRW", Some(500)),
            ("500", "PYG", Some(500)),
            ("500", "RWF", Some(500)),
            ("500", "VND", Some(500)),
            ("500", "VUV", Some(500)),
            ("500", "XAF", Some(500)),
            ("500", "XOF", Some(500)),
            ("500", "XPF", Some(500)),
            ("500", "MGA", Some(500)),
            ("500.20", "MGA", None),
            ("100", "ISK", Some(10_000)),
            ("1.230", "KWD", Some(1230)),
            ("1.234", "KWD", None),
            ("1.23", "BHD", Some(1230)),
            ("1.23", "JOD", Some(1230)),
            ("1.23", "OMR", Some(1230)),
            ("1.23", "TND", Some(1230)),
            ("1.23", "IQD", None),
            ("100", "UGX", None),
            ("100.50", "HUF", Some(10_050)),
            ("1.0000", "CLF", None),
        ];
        for (amount, code, expected) in cases {
            let money = Money::parse(amount, Currency::parse(code).unwrap(), i64::MAX).unwrap();
            assert_eq!(on_the_wire(money), expected, "{amount} {code}");
        }
    }
}
