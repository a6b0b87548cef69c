//! An order: parsed once at the edge, valid for good.
//!
//! No error quotes a value of the body: bodies can hold card numbers.

use std::fmt;

use sha2::{Digest, Sha256};

pub use self::error::OrderError;
use self::fields::Fields;
use crate::{
    clock::Timestamp,
    money::{Currency, Money},
};

mod error;
mod fields;

/// Digits of the shortest card numbers.
const SHORTEST_CARD: usize = 12;
/// Longest `order_id`, in characters.
const MAX_ORDER_ID: usize = 128;

/// Names one purchase: 1 to 128 of `[A-Za-z0-9._:-]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(String);

impl OrderId {
    /// Checks the identifier; `None` if a rule is broken.
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let valid = (1..=MAX_ORDER_ID).contains(&text.len()) && text.bytes().all(allowed);
        valid.then(|| Self(text.to_owned()))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is allowed beyond the format.
#[derive(Clone, Copy, Debug)]
pub struct OrderRules {
    /// The currency of orders that name none.
    pub default_currency: Option<Currency>,
    /// The largest amount, in minor units.
    pub max_amount_minor: i64,
}

/// A valid order.
#[derive(Clone, PartialEq, Eq)]
pub struct Order {
    id: OrderId,
    money: Money,
    customer: Option<String>,
    payment_method: Option<String>,
    attempt: u32,
    created_at: Option<Timestamp>,
}

/// Without customer and payment method: a debug print ends in logs.
impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("id", &self.id.0)
            .field("money", &self.money)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl Order {
    /// Reads an order from a JSON object: `order_id`, `amount` (or `total`), and if present `currency`,
    /// `customer`, `payment_method`, `attempt` (1 to 1,000,000), `created_at` (RFC 3339, or an epoch in seconds
    /// or milliseconds). Unknown fields are allowed, duplicate ones are not; null and an empty customer or
    /// payment method count as absent.
    ///
    /// # Errors
    /// The first rule that is broken, naming the field, never the value.
    ///
    /// ```
    /// use charge_once::order::{Order, OrderRules};
    ///
    /// let rules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };
    /// let order = Order::parse(r#"{"order_id": "o-1", "amount": 49.90, "currency": "EUR"}"#, &rules)?;
    /// assert_eq!((order.id().as_str(), order.money().minor(), order.attempt()), ("o-1", 4990, 1));
    /// assert!(Order::parse(r#"{"order_id": "o-1", "amount": 49.90}"#, &rules).is_err());
    /// # Ok::<(), charge_once::order::OrderError>(())
    /// ```
    pub fn parse(body: &str, rules: &OrderRules) -> Result<Self, OrderError> {
        let fields = Fields::parse(body)?;
        let id = fields::order_id(fields.order_id.ok_or(OrderError::Missing("order_id"))?)?;
        let amount = match (fields.amount, fields.total) {
            (Some(_), Some(_)) => return Err(OrderError::AmountAndTotal),
            (Some(amount), None) | (None, Some(amount)) => amount,
            (None, None) => return Err(OrderError::Missing("amount")),
        };
        let currency = match fields.currency {
            Some(raw) => fields::text("currency", raw)?
                .and_then(|code| Currency::parse(&code))
                .ok_or(OrderError::Currency)?,
            None => rules.default_currency.ok_or(OrderError::CurrencyMissing)?,
        };
        let amount = fields::amount_text(amount)?;
        let money = Money::parse(&amount, currency, rules.max_amount_minor).map_err(OrderError::Amount)?;
        Ok(Self {
            id,
            money,
            customer: fields::optional_text("customer", fields.customer)?,
            payment_method: fields::optional_text("payment_method", fields.payment_method)?,
            attempt: fields.attempt.map_or(Ok(1), fields::attempt)?,
            created_at: fields.created_at.map(fields::created_at).transpose()?,
        })
    }

    /// The `order_id` of a body that may break every other rule. A body with a field twice names none.
    pub fn named_in(body: &str) -> Option<OrderId> {
        fields::order_id(Fields::parse(body).ok()?.order_id?).ok()
    }

    /// What a record remembers of its order: enough to ask the provider about a charge, not to make one, because
    /// customer and payment method are kept only inside the fingerprint.
    pub fn recorded(id: OrderId, money: Money, attempt: u32) -> Self {
        Self { id, money, customer: None, payment_method: None, attempt, created_at: None }
    }

    /// Names the purchase.
    pub fn id(&self) -> &OrderId {
        &self.id
    }

    /// What is charged.
    pub fn money(&self) -> Money {
        self.money
    }

    /// The provider's name for the customer.
    pub fn customer(&self) -> Option<&str> {
        self.customer.as_deref()
    }

    /// The provider's name for what is charged; a token, never a card number.
    pub fn payment_method(&self) -> Option<&str> {
        self.payment_method.as_deref()
    }

    /// From 1; a higher one is how a producer asks again after a decline.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the producer says the order was made.
    pub fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }

    /// What must be equal for two messages to be the same order:
    /// hex SHA-256 of `v1|order_id|amount_minor|CURRENCY|customer|payment_method`. A `|` or `\` inside a field is
    /// preceded by `\`, so that no two orders share the text.
    pub fn fingerprint(&self) -> String {
        let escape = |text: Option<&str>| text.unwrap_or_default().replace('\\', "\\\\").replace('|', "\\|");
        let text = format!(
            "v1|{}|{}|{}|{}|{}",
            self.id,
            self.money.minor(),
            self.money.currency().code(),
            escape(self.customer()),
            escape(self.payment_method()),
        );
        hex(&Sha256::digest(text))
    }
}

/// Whether the text has as many digits as a card number.
pub(crate) fn may_be_a_card(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() >= SHORTEST_CARD
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

#[cfg(test)]
mod tests;
