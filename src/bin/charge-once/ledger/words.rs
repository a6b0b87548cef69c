//! A record in words and as JSON.

use std::fmt::Write as _;

use charge_once::{
    clock::Timestamp,
    ledger::{Attention, Entry, State},
    money::Currency,
    order::OrderId,
    telemetry::rfc3339,
};
use serde_json::{Value, json};

/// The record under the names of docs/ledger.md; times as RFC 3339.
pub(super) fn record(order_id: &OrderId, entry: &Entry) -> Value {
    let time = |at: Option<Timestamp>| at.map(rfc3339);
    json!({
        "order_id": order_id.as_str(),
        "state": entry.state.as_str(),
        "attention": entry.attention.map(Attention::as_str),
        "amount_minor": entry.amount_minor,
        "currency": entry.currency,
        "provider": entry.provider,
        "attempt": entry.attempt,
        "fence": entry.fence,
        "owner": entry.owner,
        "lease_until": time(entry.lease_until),
        "handle": entry.handle,
        "charge_id": entry.charge_id,
        "provider_request_id": entry.provider_request_id,
        "error": entry.error,
        "held_reason": entry.held_reason,
        "message_id": entry.message_id,
        "receive_count": entry.receive_count,
        "first_seen_at": rfc3339(entry.first_seen_at),
        "first_sent_at": time(entry.first_sent_at),
        "state_changed_at": rfc3339(entry.state_changed_at),
        "expires_at": entry.expires_at.map(|secs| rfc3339(Timestamp::from_millis(secs.saturating_mul(1000)))),
    })
}

/// What happened, what is known of the money, what the next delivery would do.
pub(super) fn story(order_id: &OrderId, entry: &Entry, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<15} {value}");
    };
    line("order", &format!("{order_id}, attempt {}, {}", entry.attempt, amount(entry)));
    line("state", &state(entry, now));
    line("money", &money(entry));
    line("next delivery", next(entry, now));
    if let Some(error) = &entry.error {
        line("last word", error);
    }
    line("first seen", &rfc3339(entry.first_seen_at));
    if let Some(sent) = entry.first_sent_at {
        line("first sent", &rfc3339(sent));
    }
    line("since", &rfc3339(entry.state_changed_at));
    line("provider", &entry.provider);
    if let Some(message) = &entry.message_id {
        let times = if entry.receive_count == 1 { "time" } else { "times" };
        line("message", &format!("{message}, received {} {times}", entry.receive_count));
    }
    line("fence", &entry.fence.to_string());
    text
}

/// `49.90 EUR`; minor units where the currency is not known.
pub(super) fn amount(entry: &Entry) -> String {
    let Some(currency) = Currency::parse(&entry.currency) else {
        return format!("{} minor units of {}", entry.amount_minor, entry.currency);
    };
    let decimals = usize::from(currency.exponent());
    let digits = format!("{:0>width$}", entry.amount_minor, width = decimals.saturating_add(1));
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(decimals));
    let point = if decimals == 0 { "" } else { "." };
    format!("{whole}{point}{fraction} {}", currency.code())
}

/// The state, and what it means.
pub(super) fn state(entry: &Entry, now: Timestamp) -> String {
    let owned = match entry.lease_until {
        Some(until) if until > now => "; an owner works on it now",
        Some(_) | None => "",
    };
    let name = entry.state.as_str();
    match entry.state {
        State::Claimed => format!("{name}: begun{owned}"),
        State::Prepared => format!("{name}: a handle is stored, only that handle may be charged{owned}"),
        State::Sent => format!("{name}: a charge may have been sent{owned}"),
        State::Paid => format!("{name}: charged once"),
        State::Declined => format!("{name}: {}", entry.error.as_deref().unwrap_or("unknown")),
        State::Held => {
            format!("{name}: {}, waits for a person", entry.held_reason.as_deref().unwrap_or("unknown"))
        }
    }
}

fn money(entry: &Entry) -> String {
    let handle = entry.handle.as_deref();
    match (entry.state, handle) {
        (State::Paid, _) => format!("moved: {}", entry.charge_id.as_deref().unwrap_or("charge not named")),
        (State::Declined, _) => "did not move".to_owned(),
        (State::Claimed, _) => "did not move".to_owned(),
        (State::Prepared | State::Held, Some(handle)) => {
            format!("not known here; the provider knows {handle}")
        }
        (State::Sent, _) | (State::Held | State::Prepared, None) => {
            "not known; look for the order_id at the provider".to_owned()
        }
    }
}

fn next(entry: &Entry, now: Timestamp) -> &'static str {
    if entry.state.is_live() && entry.lease_until.is_some_and(|until| until > now) {
        return "waits until the owner's lease ends";
    }
    match entry.state {
        State::Claimed => "charges it",
        State::Prepared => {
            "asks the provider about the handle, and charges that handle if it was not charged"
        }
        State::Sent => {
            "sends the same key again inside GATEWAY_KEY_WINDOW; later looks the charge up or holds the order"
        }
        State::Paid => "is acknowledged, nothing is charged",
        State::Declined => "goes to the DLQ; a message with the next `attempt` charges anew",
        State::Held => "goes to the DLQ; decide with `charge-once ledger resolve`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(state: State) -> Entry {
        Entry {
            state,
            owner: "token".to_owned(),
            fence: 3,
            lease_until: None,
            attempt: 1,
            fingerprint: "f".to_owned(),
            amount_minor: 4990,
            currency: "EUR".to_owned(),
            provider: "stripe:acct:live".to_owned(),
            handle: Some("pi_1".to_owned()),
            handle_generation: 0,
            first_seen_at: Timestamp::from_millis(0),
            first_sent_at: Some(Timestamp::from_millis(1_000)),
            state_changed_at: Timestamp::from_millis(2_000),
            charge_id: None,
            provider_request_id: None,
            error: None,
            held_reason: Some("HANDLE_MISMATCH".to_owned()),
            message_id: Some("m-1".to_owned()),
            receive_count: 2,
            attention: Some(Attention::Held),
            expires_at: None,
        }
    }

    #[test]
    fn a_held_order_in_words() {
        let order_id = OrderId::parse("o-1").unwrap();
        insta::assert_snapshot!(story(&order_id, &entry(State::Held), Timestamp::from_millis(9_000)), @r"
        order           o-1, attempt 1, 49.90 EUR
        state           HELD: HANDLE_MISMATCH, waits for a person
        money           not known here; the provider knows pi_1
        next delivery   goes to the DLQ; decide with `charge-once ledger resolve`
        first seen      1970-01-01T00:00:00.000Z
        first sent      1970-01-01T00:00:01.000Z
        since           1970-01-01T00:00:02.000Z
        provider        stripe:acct:live
        message         m-1, received 2 times
        fence           3
        ");
    }

    #[test]
    fn amounts_have_their_currencies_decimals() {
        let of = |minor, currency: &str| {
            amount(&Entry { amount_minor: minor, currency: currency.to_owned(), ..entry(State::Paid) })
        };
        assert_eq!(
            [of(5, "EUR"), of(500, "JPY"), of(1_234, "KWD"), of(7, "???")],
            ["0.05 EUR", "500 JPY", "1.234 KWD", "7 minor units of ???"]
        );
    }
}
