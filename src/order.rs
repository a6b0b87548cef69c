//! An order: parsed once at the edge, valid for good.
//!
//! No error quotes a value of the body: bodies can hold card numbers.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::{
    clock::{Timestamp, parse_instant},
    money::{Currency, Money, MoneyError},
};

/// Longest `order_id`, in characters.
const MAX_ORDER_ID: usize = 128;
/// Longest `customer` and `payment_method`, in bytes.
const MAX_TEXT: usize = 256;
/// Largest `attempt`.
const MAX_ATTEMPT: u32 = 1_000_000;
/// Deepest nesting of a body, `serde_json`'s own limit for typed values.
const MAX_DEPTH: u32 = 128;

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
    pub fn parse(body: &str, rules: &OrderRules) -> Result<Self, OrderError> {
        let fields = Fields::parse(body)?;
        let id = order_id(fields.order_id.ok_or(OrderError::Missing("order_id"))?)?;
        let amount = match (fields.amount, fields.total) {
            (Some(_), Some(_)) => return Err(OrderError::AmountAndTotal),
            (Some(amount), None) | (None, Some(amount)) => amount,
            (None, None) => return Err(OrderError::Missing("amount")),
        };
        let currency = match fields.currency {
            Some(raw) => {
                text("currency", raw)?.and_then(|code| Currency::parse(&code)).ok_or(OrderError::Currency)?
            }
            None => rules.default_currency.ok_or(OrderError::CurrencyMissing)?,
        };
        let amount = amount_text(amount)?;
        let money = Money::parse(&amount, currency, rules.max_amount_minor).map_err(OrderError::Amount)?;
        Ok(Self {
            id,
            money,
            customer: optional_text("customer", fields.customer)?,
            payment_method: optional_text("payment_method", fields.payment_method)?,
            attempt: fields.attempt.map_or(Ok(1), attempt)?,
            created_at: fields.created_at.map(created_at).transpose()?,
        })
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

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The order's fields as they stand in the body; null counts as absent.
#[derive(Default)]
struct Fields<'a> {
    order_id: Option<&'a RawValue>,
    amount: Option<&'a RawValue>,
    total: Option<&'a RawValue>,
    currency: Option<&'a RawValue>,
    customer: Option<&'a RawValue>,
    payment_method: Option<&'a RawValue>,
    attempt: Option<&'a RawValue>,
    created_at: Option<&'a RawValue>,
}

impl<'a> Fields<'a> {
    fn parse(body: &'a str) -> Result<Self, OrderError> {
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        if !body.trim_start().starts_with('{') {
            return Err(not_an_object(body));
        }
        if depth(body) > MAX_DEPTH {
            return Err(OrderError::TooDeep);
        }
        let mut json = serde_json::Deserializer::from_str(body);
        let fields = json.deserialize_map(FieldsVisitor).map_err(|error| OrderError::from_json(&error))?;
        json.end().map_err(|_trailing| OrderError::TrailingBytes)?;
        Ok(fields)
    }
}

fn not_an_object(body: &str) -> OrderError {
    if body.trim().is_empty() {
        OrderError::Empty
    } else if serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok() {
        OrderError::NotAnObject
    } else {
        OrderError::NotJson
    }
}

/// How deep brackets nest outside of strings. The parser skips what it does not need without counting.
fn depth(body: &str) -> u32 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_u32, 0, false, false);
    for byte in body.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth = depth.saturating_add(1);
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Marks an error of ours inside `serde_json`'s.
const DUPLICATE: &str = "charge-once: duplicate field";

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an order object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
        let mut fields = Fields::default();
        let mut seen: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Key(key)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            let slot = match &*key {
                "order_id" => Some(&mut fields.order_id),
                "amount" => Some(&mut fields.amount),
                "total" => Some(&mut fields.total),
                "currency" => Some(&mut fields.currency),
                "customer" => Some(&mut fields.customer),
                "payment_method" => Some(&mut fields.payment_method),
                "attempt" => Some(&mut fields.attempt),
                "created_at" => Some(&mut fields.created_at),
                _ => None,
            };
            if let Some(slot) = slot {
                *slot = (value.get() != "null").then_some(value);
            }
            if !seen.insert(key) {
                return Err(M::Error::custom(DUPLICATE));
            }
        }
        Ok(fields)
    }
}

/// A key, borrowed from the body where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn is_text(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// A JSON string; `None` if the value is something else.
fn text(field: &'static str, raw: &RawValue) -> Result<Option<String>, OrderError> {
    if !is_text(raw) {
        return Ok(None);
    }
    serde_json::from_str(raw.get()).map(Some).map_err(|_lone_surrogate| OrderError::Text(field))
}

fn optional_text(field: &'static str, raw: Option<&RawValue>) -> Result<Option<String>, OrderError> {
    let Some(raw) = raw else { return Ok(None) };
    let text = text(field, raw)?.ok_or(OrderError::Text(field))?;
    if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(OrderError::Text(field));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A text, or an integer, which counts as its decimal text: 1001 and "1001" are one order.
fn order_id(raw: &RawValue) -> Result<OrderId, OrderError> {
    let id = text("order_id", raw)?.or_else(|| {
        let token = raw.get();
        let digits = token.strip_prefix('-').unwrap_or(token);
        let integer = digits.bytes().all(|byte| byte.is_ascii_digit()) && token != "-0";
        integer.then(|| token.to_owned())
    });
    id.and_then(|id| OrderId::parse(&id)).ok_or(OrderError::OrderId)
}

/// The amount's own characters, whether it came as a number or as text.
fn amount_text(raw: &RawValue) -> Result<String, OrderError> {
    let text = text("amount", raw)?;
    Ok(text.unwrap_or_else(|| raw.get().to_owned()))
}

fn attempt(raw: &RawValue) -> Result<u32, OrderError> {
    let attempt = serde_json::from_str(raw.get()).ok();
    attempt.filter(|attempt| (1..=MAX_ATTEMPT).contains(attempt)).ok_or(OrderError::Attempt)
}

fn created_at(raw: &RawValue) -> Result<Timestamp, OrderError> {
    let text = text("created_at", raw)?.unwrap_or_else(|| raw.get().to_owned());
    parse_instant(&text).ok_or(OrderError::CreatedAt)
}

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
    fn from_json(error: &serde_json::Error) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: OrderRules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };

    fn parse(body: &str) -> Result<Order, &'static str> {
        Order::parse(body, &RULES).map_err(OrderError::code)
    }

    fn with(field: &str) -> Result<Order, &'static str> {
        parse(&format!(r#"{{"order_id":"o-1","amount":49.90,"currency":"EUR",{field}}}"#))
    }

    #[test]
    fn a_full_order_is_read() {
        let order = parse(
            r#"{"order_id":"o-1","amount":"49.90","currency":"eur","customer":"cus_1","payment_method":"pm_1",
                "attempt":2,"created_at":"2026-01-01T00:00:00.5Z","note":{"any":[1,"\ud800"]}}"#,
        )
        .unwrap();
        assert_eq!(order.id().as_str(), "o-1");
        assert_eq!((order.money().minor(), order.money().currency().code()), (4990, "EUR"));
        assert_eq!((order.customer(), order.payment_method()), (Some("cus_1"), Some("pm_1")));
        assert_eq!(
            (order.attempt(), order.created_at()),
            (2, Some(Timestamp::from_millis(1_767_225_600_500)))
        );
    }

    #[test]
    fn absent_fields_have_defaults() {
        let order = with(r#""customer":null,"payment_method":"","attempt":null"#).unwrap();
        assert_eq!((order.customer(), order.payment_method(), order.attempt()), (None, None, 1));
        assert_eq!(parse(r#"{"order_id":"o-1","total":1,"currency":"EUR"}"#).unwrap().money().minor(), 100);
        let rules = OrderRules { default_currency: Currency::parse("JPY"), ..RULES };
        let order = Order::parse(r#"{"order_id":"o-1","amount":5}"#, &rules).unwrap();
        assert_eq!(order.money().currency().code(), "JPY");
    }

    #[test]
    fn an_integer_order_id_is_its_decimal_text() {
        let number = parse(r#"{"order_id":1001,"amount":1,"currency":"EUR"}"#).unwrap();
        assert_eq!(number, parse(r#"{"order_id":"1001","amount":1,"currency":"EUR"}"#).unwrap());
        for id in ["1.0", "1e3", "true", "[1]", "-0", r#""""#, r#""a b""#, r#""café""#, r#""\ud800""#] {
            let body = format!(r#"{{"order_id":{id},"amount":1,"currency":"EUR"}}"#);
            assert_eq!(parse(&body), Err("ORDER_ID_INVALID"), "{id}");
        }
        let long = format!(r#"{{"order_id":"{}","amount":1,"currency":"EUR"}}"#, "x".repeat(129));
        assert_eq!(parse(&long), Err("ORDER_ID_INVALID"));
    }

    #[test]
    fn bodies_that_are_no_order_are_told_apart() {
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(128), "]".repeat(128));
        let cases = [
            ("", "BODY_EMPTY"),
            (" \n", "BODY_EMPTY"),
            ("hello", "BODY_NOT_JSON"),
            ("{&quot;order_id&quot;:1}", "BODY_NOT_JSON"),
            (r#"{"order_id":"o-1","amount":NaN,"currency":"EUR"}"#, "BODY_NOT_JSON"),
            (r#"{"order_id":"o-1","amount": "#, "BODY_NOT_JSON"),
            ("null", "BODY_NOT_AN_OBJECT"),
            (r#"["o-1",1,"EUR"]"#, "BODY_NOT_AN_OBJECT"),
            (r#""{\"order_id\":\"o-1\"}""#, "BODY_NOT_AN_OBJECT"),
            (r#"{"order_id":"o-1","amount":1,"currency":"EUR"} }"#, "BODY_TRAILING_BYTES"),
            (&deep, "BODY_TOO_DEEP"),
            (r#"{"amount":1,"currency":"EUR"}"#, "ORDER_ID_MISSING"),
            (r#"{"order_id":"o-1","amount":null,"currency":"EUR"}"#, "AMOUNT_MISSING"),
            (r#"{"order_id":"o-1","amount":1,"total":1,"currency":"EUR"}"#, "AMOUNT_AND_TOTAL"),
            (r#"{"order_id":"o-1","amount":1}"#, "CURRENCY_MISSING"),
            (r#"{"order_id":"o-1","amount":1,"currency":"XXX"}"#, "CURRENCY_INVALID"),
            (r#"{"order_id":"o-1","amount":1,"currency":9}"#, "CURRENCY_INVALID"),
            (r#"{"order_id":"o-1","amount":true,"currency":"EUR"}"#, "AMOUNT_FORMAT"),
            (r#"{"order_id":"o-1","amount":1.005,"currency":"EUR"}"#, "AMOUNT_PRECISION"),
        ];
        for (body, code) in cases {
            assert_eq!(parse(body), Err(code), "{body}");
        }
    }

    #[test]
    fn fields_that_break_a_rule_are_named() {
        let cases = [
            (r#""order_id":"o-1""#, "DUPLICATE_FIELD"),
            (r#""x":1,"x":1"#, "DUPLICATE_FIELD"),
            (r#""customer":5"#, "CUSTOMER_INVALID"),
            (r#""customer":"a\nb""#, "CUSTOMER_INVALID"),
            (r#""payment_method":"\udfff""#, "PAYMENT_METHOD_INVALID"),
            (r#""attempt":0"#, "ATTEMPT_INVALID"),
            (r#""attempt":"2""#, "ATTEMPT_INVALID"),
            (r#""attempt":1.5"#, "ATTEMPT_INVALID"),
            (r#""created_at":"yesterday""#, "CREATED_AT_INVALID"),
            (r#""created_at":-1"#, "CREATED_AT_INVALID"),
            (r#""created_at":[]"#, "CREATED_AT_INVALID"),
        ];
        for (field, code) in cases {
            assert_eq!(with(field), Err(code), "{field}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_brackets_in_strings_do_not_nest() {
        assert!(parse("\u{feff}{\"order_id\":\"o-1\",\"amount\":1,\"currency\":\"EUR\"}").is_ok());
        assert!(with(&format!(r#""note":"\"{}""#, "[".repeat(500))).is_ok());
    }

    #[test]
    fn epochs_are_read_in_seconds_and_milliseconds() {
        let seconds = with(r#""created_at":1767225600"#).unwrap();
        assert_eq!(seconds.created_at(), with(r#""created_at":1767225600000"#).unwrap().created_at());
    }

    #[test]
    fn the_fingerprint_covers_what_is_charged_and_nothing_else() {
        let print = |field| with(field).unwrap().fingerprint();
        let plain = print(r#""note":1"#);
        insta::assert_snapshot!(plain, @"1ee418fa86bb78f77fb5d4b7810f25788544c973c89349cef94f8fe9f6d88efc");
        assert_eq!(plain, print(r#""attempt":3"#));
        assert_ne!(plain, print(r#""customer":"c""#));
        assert_ne!(
            print(r#""customer":"a|b","payment_method":"c""#),
            print(r#""customer":"a","payment_method":"b|c""#)
        );
    }

    #[test]
    fn no_error_and_no_debug_print_quotes_a_value() {
        let order = with(r#""customer":"4242424242424242","payment_method":"pm_secret""#).unwrap();
        let debug = format!("{order:?}");
        assert!(!debug.contains("4242") && !debug.contains("pm_secret"), "{debug}");
        for body in
            [r#"{"order_id":"4242 4242","amount":1,"currency":"EUR"}"#, r#"{"4242":"#, r#"{"a":4242x}"#]
        {
            let error = Order::parse(body, &RULES).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("4242"), "{error:?}");
        }
    }
}
