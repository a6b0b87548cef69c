//! SQS events as Lambda delivers them.

use std::{fmt::Write, time::SystemTime};

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "events and deadlines bear instants of the real clock")]
pub(crate) fn now_millis() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

/// A batch of `count` good orders that no other `seed` gives.
pub(crate) fn orders(count: u32, seed: u32) -> Vec<u8> {
    event((0..count).map(|number| {
        format!(
            r#"{{\"order_id\":\"order-{seed:06}-{number:06}\",\"amount\":49.90,\"currency\":\"EUR\",\"customer\":\"cus_{number:06}\",\"payment_method\":\"pm_card_visa\"}}"#
        )
    }))
}

/// A batch of `count` bodies that hold no order.
pub(crate) fn poison(count: u32) -> Vec<u8> {
    event((0..count).map(|number| {
        format!(r#"{{\"order_id\":\"order-{number:06}\",\"amount\":-1,\"currency\":\"EUR\"}}"#)
    }))
}

/// Bodies as they stand inside a JSON text.
fn event(bodies: impl Iterator<Item = String>) -> Vec<u8> {
    let mut event = r#"{"Records":["#.to_owned();
    // An order that is older than records are kept would be held.
    let sent = now_millis();
    for (number, body) in bodies.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        // Writing into a text cannot fail.
        let _ = write!(
            event,
            r#"{comma}{{"messageId":"059f36b4-87a3-44ab-83d2-{number:012}","receiptHandle":"AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a{number:012}","body":"{body}","attributes":{{"ApproximateReceiveCount":"1","SentTimestamp":"{sent}","SenderId":"AIDAIENQZJOLO23YVJ4VO","ApproximateFirstReceiveTimestamp":"{sent}"}},"messageAttributes":{{}},"md5OfBody":"e4e68fb7bd0e697a0ae8f1bb342846b3","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-central-1:123456789012:orders","awsRegion":"eu-central-1"}}"#
        );
    }
    event.push_str("]}");
    event.into_bytes()
}
