//! An order: what is accepted is within bounds and survives being written and read again; what is refused is refused
//! without a word of the body.

use charge_once::{
    money::{Currency, Money},
    order::{Order, OrderId, OrderRules},
    telemetry::rfc3339,
};
use serde_json::json;

use super::assert_loggable;

/// Integers below this are read as seconds.
const SECONDS_BELOW: i64 = 100_000_000_000;

/// The input is the order's text.
pub(crate) fn run(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    // Half of the inputs have a default currency, so that both ways are tried.
    let default_currency = if body.len().is_multiple_of(2) { Currency::parse("EUR") } else { None };
    let rules = OrderRules { default_currency, max_amount_minor: 99_999_999 };
    let order = match Order::parse(body, &rules) {
        Ok(order) => order,
        Err(error) => return assert_loggable(&format!("{error} {}", error.code())),
    };
    assert_within_bounds(&order, &rules);
    let again = Order::parse(&written(&order, true), &rules).expect("what was read can be read again");
    assert_eq!(again, order);
    assert_eq!(again.fingerprint(), order.fingerprint());
    // A debug print ends in logs: it must be the same without what must not be there.
    let bare = Order::parse(&written(&order, false), &rules).expect("customer and method are optional");
    assert_eq!(format!("{bare:?}"), format!("{order:?}"));
}

fn assert_within_bounds(order: &Order, rules: &OrderRules) {
    assert_eq!(OrderId::parse(order.id().as_str()).as_ref(), Some(order.id()));
    assert!((1..=rules.max_amount_minor).contains(&order.money().minor()));
    assert!((1..=1_000_000).contains(&order.attempt()));
    assert!(order.created_at().is_none_or(|at| at.as_millis() >= 0));
    for text in [order.customer(), order.payment_method()].into_iter().flatten() {
        assert!(!text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control));
    }
    assert_eq!(order.fingerprint().len(), 64);
}

/// The order as a producer would write it.
fn written(order: &Order, whole: bool) -> String {
    let mut body = json!({
        "order_id": order.id().as_str(),
        "amount": amount(order.money()),
        "currency": order.money().currency().code(),
        "attempt": order.attempt(),
    });
    if whole {
        body["customer"] = json!(order.customer());
        body["payment_method"] = json!(order.payment_method());
    }
    if let Some(at) = order.created_at() {
        let millis = at.as_millis();
        body["created_at"] = if millis < SECONDS_BELOW { json!(rfc3339(at)) } else { json!(millis) };
    }
    body.to_string()
}

pub(super) fn amount(money: Money) -> String {
    let decimals = usize::from(money.currency().exponent());
    let digits = format!("{:0width$}", money.minor(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    if decimals == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") }
}
