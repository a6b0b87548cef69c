//! An event: whatever comes, its records are counted right, named right, and read to the end.

use charge_once::{event, record::Record};
use serde_json::Value;

use super::{assert_loggable, envelope};

/// The input is the event's text.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let seen: Option<Value> = serde_json::from_str(text).ok();
    let records = match event::records(text) {
        Ok(records) => records,
        Err(error) => return assert_loggable(&error.to_string()),
    };
    for (place, record) in records.iter().enumerate() {
        assert_eq!(record.position, place);
        assert!((1..=1_000_000).contains(&record.receive_count));
        if let Ok(body) = &record.body {
            envelope::run(body.as_bytes());
        }
        if let Some(queue) = &record.queue {
            assert_eq!(record.is_fifo(), queue.name().ends_with(".fifo"));
            assert!(queue.url().is_none_or(|url| url.starts_with("https://sqs.")));
        }
    }
    // The parser for values stops at a depth that is skipped here, and at numbers beyond any float.
    if let Some(Value::Object(event)) = seen {
        let listed = event["Records"].as_array().expect("a batch is a list");
        assert_eq!(listed.len(), records.len());
        records.iter().zip(listed).for_each(|(record, listed)| assert_named_by(record, listed));
    }
}

/// No name is made up: an identifier that is not in the event would make Lambda return the whole batch.
fn assert_named_by(record: &Record, listed: &Value) {
    let in_event = listed.get("messageId").and_then(Value::as_str).filter(|id| !id.is_empty());
    if let Some(id) = &record.message_id {
        assert_eq!(Some(id.as_str()), in_event);
    }
    if let Ok(body) = &record.body {
        assert_eq!(Some(body.as_str()), listed.get("body").and_then(Value::as_str));
    }
}
