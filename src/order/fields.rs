//! The members of an order's JSON object, and the rules each of them keeps.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{OrderError, OrderId};
use crate::clock::{Timestamp, parse_instant};

/// Longest `customer` and `payment_method`, in bytes.
pub(super) const MAX_TEXT: usize = 256;
/// Largest `attempt`.
pub(super) const MAX_ATTEMPT: u32 = 1_000_000;
/// Deepest nesting of a body, `serde_json`'s own limit for typed values.
pub(super) const MAX_DEPTH: u32 = 128;

/// The order's fields as they stand in the body; null counts as absent.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub(super) order_id: Option<&'a RawValue>,
    pub(super) amount: Option<&'a RawValue>,
    pub(super) total: Option<&'a RawValue>,
    pub(super) currency: Option<&'a RawValue>,
    pub(super) customer: Option<&'a RawValue>,
    pub(super) payment_method: Option<&'a RawValue>,
    pub(super) attempt: Option<&'a RawValue>,
    pub(super) created_at: Option<&'a RawValue>,
}

impl<'a> Fields<'a> {
    pub(super) fn parse(body: &'a str) -> Result<Self, OrderError> {
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
pub(super) const DUPLICATE: &str = "charge-once: duplicate field";

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
pub(super) fn text(field: &'static str, raw: &RawValue) -> Result<Option<String>, OrderError> {
    if !is_text(raw) {
        return Ok(None);
    }
    serde_json::from_str(raw.get()).map(Some).map_err(|_lone_surrogate| OrderError::Text(field))
}

pub(super) fn optional_text(
    field: &'static str,
    raw: Option<&RawValue>,
) -> Result<Option<String>, OrderError> {
    let Some(raw) = raw else { return Ok(None) };
    let text = text(field, raw)?.ok_or(OrderError::Text(field))?;
    if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(OrderError::Text(field));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A text, or an integer, which counts as its decimal text: 1001 and "1001" are one order.
pub(super) fn order_id(raw: &RawValue) -> Result<OrderId, OrderError> {
    let id = text("order_id", raw)?.or_else(|| {
        let token = raw.get();
        let digits = token.strip_prefix('-').unwrap_or(token);
        let integer = digits.bytes().all(|byte| byte.is_ascii_digit()) && token != "-0";
        integer.then(|| token.to_owned())
    });
    id.and_then(|id| OrderId::parse(&id)).ok_or(OrderError::OrderId)
}

/// The amount's own characters, whether it came as a number or as text.
pub(super) fn amount_text(raw: &RawValue) -> Result<String, OrderError> {
    let text = text("amount", raw)?;
    Ok(text.unwrap_or_else(|| raw.get().to_owned()))
}

pub(super) fn attempt(raw: &RawValue) -> Result<u32, OrderError> {
    let attempt = serde_json::from_str(raw.get()).ok();
    attempt.filter(|attempt| (1..=MAX_ATTEMPT).contains(attempt)).ok_or(OrderError::Attempt)
}

pub(super) fn created_at(raw: &RawValue) -> Result<Timestamp, OrderError> {
    let text = text("created_at", raw)?.unwrap_or_else(|| raw.get().to_owned());
    parse_instant(&text).ok_or(OrderError::CreatedAt)
}
