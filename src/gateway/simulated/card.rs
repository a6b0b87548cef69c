//! What a payment method does by itself, told from its token.

/// How the card's issuer answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Card {
    /// Pays.
    Good,
    /// Declines with this code, in the vocabulary of Stripe's `decline_code`.
    Declines(String),
    /// Wants the customer.
    NeedsCustomer,
    /// No such payment method.
    Missing,
}

impl Card {
    /// Reads a token such as `pm_card_visa` or `pm_card_chargeDeclinedInsufficientFunds`. Case and underscores
    /// do not matter; a token that says nothing is a good card.
    pub(super) fn of(token: &str) -> Self {
        let token = token.to_ascii_lowercase().replace('_', "");
        let says = |word| token.contains(word);
        if says("decline") {
            let codes = [
                ("insufficient", "insufficient_funds"),
                ("expired", "expired_card"),
                ("lost", "lost_card"),
                ("cvc", "incorrect_cvc"),
            ];
            let code = codes.iter().find(|(word, _)| says(word)).map_or("generic_decline", |(_, code)| *code);
            Self::Declines(code.to_owned())
        } else if says("authenticationrequired") {
            Self::NeedsCustomer
        } else if says("missing") {
            Self::Missing
        } else {
            Self::Good
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_what_the_card_does() {
        let declines = |code: &str| Card::Declines(code.to_owned());
        let cases = [
            ("pm_card_visa", Card::Good),
            ("pm_1", Card::Good),
            ("pm_card_chargeDeclined", declines("generic_decline")),
            ("pm_card_chargeDeclinedInsufficientFunds", declines("insufficient_funds")),
            ("decline_expired_card", declines("expired_card")),
            ("pm_card_authenticationRequired", Card::NeedsCustomer),
            ("pm_missing", Card::Missing),
        ];
        for (token, card) in cases {
            assert_eq!(Card::of(token), card, "{token}");
        }
    }
}
