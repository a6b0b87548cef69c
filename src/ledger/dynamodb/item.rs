//! A record as a DynamoDB item.

use std::collections::HashMap;

pub(super) use aws_sdk_dynamodb::types::AttributeValue as Value;

use crate::{
    clock::Timestamp,
    ledger::{
        Found, VERSION,
        entry::{Attention, Entry, State},
    },
    order::OrderId,
};

pub(super) type Item = HashMap<String, Value>;

/// The partition key of an order.
pub(super) fn key(order_id: &OrderId) -> Value {
    Value::S(format!("order#{order_id}"))
}

/// The order that a partition key names.
pub(super) fn order_id(item: &Item) -> Option<OrderId> {
    OrderId::parse(item.get("pk")?.as_s().ok()?.strip_prefix("order#")?)
}

pub(super) fn text(text: &str) -> Value {
    Value::S(text.to_owned())
}

pub(super) fn number(number: impl ToString) -> Value {
    Value::N(number.to_string())
}

/// Reads an item; whatever this version does not understand makes it unreadable as a whole.
pub(super) fn found(item: Option<&Item>) -> Found {
    match item {
        None => Found::Nothing,
        Some(item) if item.is_empty() => Found::Nothing,
        Some(item) => entry(item).map_or(Found::Unreadable, |entry| Found::Entry(Box::new(entry))),
    }
}

pub(super) fn entry(item: &Item) -> Option<Entry> {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    if integer::<u32>(item, "version")? != VERSION {
        return None;
    }
    let instant = |name: &str| integer(item, name).map(Timestamp::from_millis);
    Some(Entry {
        state: State::parse(&text("state")?)?,
        owner: text("owner")?,
        fence: integer(item, "fence")?,
        lease_until: instant("lease_until"),
        attempt: integer(item, "attempt")?,
        fingerprint: text("fingerprint")?,
        amount_minor: integer(item, "amount_minor")?,
        currency: text("currency")?,
        provider: text("provider")?,
        handle: text("handle"),
        handle_generation: integer(item, "handle_generation").unwrap_or(0),
        first_seen_at: instant("first_seen_at")?,
        first_sent_at: instant("first_sent_at"),
        state_changed_at: instant("state_changed_at")?,
        charge_id: text("charge_id"),
        provider_request_id: text("provider_request_id"),
        error: text("error"),
        held_reason: text("held_reason"),
        message_id: text("message_id"),
        receive_count: integer(item, "receive_count").unwrap_or(0),
        attention: text("attention").as_deref().and_then(Attention::parse),
        expires_at: integer(item, "expires_at"),
    })
}

fn integer<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
