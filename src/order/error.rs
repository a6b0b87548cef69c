//! Why a body is no order, without ever quoting it.

use super::{
    MAX_ORDER_ID,
    fields::{DUPLICATE, MAX_ATTEMPT, MAX_DEPTH, MAX_TEXT},
};
use crate::money::MoneyError;

/// Why a body is no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Nothing there.
    #[error("the body is empty")]
    Empty,
    /// Not JSON at all.
    #[error("the body is not JSON")]
    NotJson,
    /// JSON, but a list, a text, a number or null.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// Something stands behind the object.
    #[error("the body has bytes behind the order's closing brace")]
    TrailingBytes,
    /// Nested deeper than 128 levels.
    #[error("the body nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A field stands twice, and it is not known which one is meant.
    #[error("the order has a field twice")]
    DuplicateField,
    /// A required field is missing or null.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// Both names of the amount are there.
    #[error("the order has both `amount` and `total`; send one")]
    AmountAndTotal,
    /// The identifier breaks its rule.
    #[error("`order_id` must be 1 to {MAX_ORDER_ID} of A-Z a-z 0-9 . _ : -")]
    OrderId,
    /// The amount breaks a rule.
    #[error("the amount is refused")]
    Amount(#[source] MoneyError),
    /// The currency breaks its rule.
    #[error("`currency` must be an ISO 4217 code that has a minor unit, such as EUR")]
    Currency,
    /// There is no currency, and no default.
    #[error("`currency` is missing and DEFAULT_CURRENCY is not set")]
    CurrencyMissing,
    /// A text field breaks its rule.
    #[error("`{0}` must be text of at most {MAX_TEXT} bytes without control characters")]
    Text(&'static str),
    /// The attempt breaks its rule.
    #[error("`attempt` must be an integer from 1 to {MAX_ATTEMPT}")]
    Attempt,
    /// The time breaks its rule.
    #[error("`created_at` must be RFC 3339 text or an epoch")]
    CreatedAt,
}

impl OrderError {
    /// `serde_json` quotes what it finds, so its error is judged and dropped.
    pub(super) fn from_json(error: &serde_json::Error) -> Self {
        if error.to_string().starts_with(DUPLICATE) { Self::DuplicateField } else { Self::NotJson }
    }

    /// The reason in logs and on dead-lettered messages.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "BODY_EMPTY",
            Self::NotJson => "BODY_NOT_JSON",
            Self::NotAnObject => "BODY_NOT_AN_OBJECT",
            Self::TrailingBytes => "BODY_TRAILING_BYTES",
            Self::TooDeep => "BODY_TOO_DEEP",
            Self::DuplicateField => "DUPLICATE_FIELD",
            Self::Missing("order_id") => "ORDER_ID_MISSING",
            Self::Missing(_) => "AMOUNT_MISSING",
            Self::AmountAndTotal => "AMOUNT_AND_TOTAL",
            Self::OrderId => "ORDER_ID_INVALID",
            Self::Amount(error) => error.code(),
            Self::Currency => "CURRENCY_INVALID",
            Self::CurrencyMissing => "CURRENCY_MISSING",
            Self::Text("customer") => "CUSTOMER_INVALID",
            Self::Text("payment_method") => "PAYMENT_METHOD_INVALID",
            Self::Text("order_id") => "ORDER_ID_INVALID",
            Self::Text("currency") => "CURRENCY_INVALID",
            Self::Text("created_at") | Self::CreatedAt => "CREATED_AT_INVALID",
            Self::Text(_) => "AMOUNT_FORMAT",
            Self::Attempt => "ATTEMPT_INVALID",
        }
    }
}
