//! The SQS event as Lambda delivers it, read so leniently that one bad record never fails its batch.
//!
//! `aws_lambda_events` would refuse the whole event for one null list member or one attribute with invalid base64
//! (measured with 1.2.1), so the records are kept as raw JSON and only what is needed is read from each.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    clock::epoch_millis,
    record::{MessageGroupId, MessageId, QueueArn, ReceiptHandle, Record, RecordError, TextAttribute},
};

/// Receive counts above this are read as this; real queues move a message on long before.
const MAX_RECEIVE_COUNT: u32 = 1_000_000;
/// At most this many keys of a foreign event are named in the error.
const KEYS_NAMED: usize = 10;
/// A name with more digits is not shown; the shortest card numbers have 12.
const DIGITS_NAMED: usize = 8;

/// Why an invocation is not an SQS batch. Nothing was charged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The event has no `Records`.
    #[error("this is not an SQS event: there is no `Records` list; top-level keys seen: {keys}{hint}")]
    NoRecords {
        /// The event's own keys.
        keys: String,
        /// What the event looks like.
        hint: &'static str,
    },
    /// The event is not an object.
    #[error("this is not an SQS event: it is {0}, not an object with a `Records` list")]
    NotAnObject(&'static str),
    /// `Records` is something else than a list.
    #[error("this is not an SQS event: `Records` is {0}, not a list")]
    RecordsNotAList(&'static str),
    /// There are two lists, and either may be the batch.
    #[error("this is not an SQS event: `Records` is there twice")]
    RecordsTwice,
    /// A record comes from another service.
    #[error("this is not an SQS event: record {position} has the event source {source_name}, not aws:sqs")]
    OtherSource {
        /// The record's place, from 0.
        position: usize,
        /// The service, as far as it is a plain name.
        source_name: String,
    },
}

/// A batch, or why the event is none. It is read from the bytes that Lambda sent, so that nobody keeps a copy of them.
#[derive(Debug)]
pub struct SqsEvent(pub Result<Vec<Record>, EventError>);

impl<'de> Deserialize<'de> for SqsEvent {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(json).map(|event| Self(records(event.get())))
    }
}

/// Reads the batch.
///
/// # Errors
/// The event is no SQS batch; a single bad record is no error, see [`Record::body`].
///
/// ```
/// use charge_once::event;
///
/// let records = event::records(r#"{"Records": [{"messageId": "m-1", "body": "{}"}, 17]}"#)?;
/// let read: Vec<bool> = records.iter().map(|record| record.body.is_ok()).collect();
/// assert_eq!(read, [true, false]);
/// assert!(event::records("[]").is_err());
/// # Ok::<(), event::EventError>(())
/// ```
pub fn records(event: &str) -> Result<Vec<Record>, EventError> {
    let kind = kind(event);
    if kind != "an object" {
        return Err(EventError::NotAnObject(kind));
    }
    let Ok(Batch { records: Some(list) }) = serde_json::from_str(event) else {
        return Err(no_batch(event));
    };
    let list: Vec<&RawValue> = serde_json::from_str(list.get())
        .map_err(|_other| EventError::RecordsNotAList(self::kind(list.get())))?;
    let mut records = Vec::with_capacity(list.len());
    let mut queues = Queues::default();
    for (position, raw) in list.into_iter().enumerate() {
        records.push(record(position, raw, &mut queues)?);
    }
    Ok(records)
}

/// Refuses an event that has its list twice: a map would keep the last, and the messages of the first would be deleted
/// unread.
#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, default, rename = "Records", deserialize_with = "present")]
    records: Option<&'a RawValue>,
}

/// Tells `null` from nothing.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// Why there is no batch to be read.
fn no_batch(event: &str) -> EventError {
    match serde_json::from_str::<BTreeMap<String, &RawValue>>(event) {
        Ok(members) if members.contains_key("Records") => EventError::RecordsTwice,
        Ok(members) => no_records(&members),
        Err(_invalid) => EventError::NotAnObject("not JSON"),
    }
}

fn no_records(members: &BTreeMap<String, &RawValue>) -> EventError {
    let keys: Vec<String> = members.keys().take(KEYS_NAMED).map(|key| plain_name(key)).collect();
    let hint = if members.contains_key("records") {
        " (`records` must be spelt `Records`)"
    } else if members.contains_key("Messages") {
        " (this has the shape of a ReceiveMessage answer, not of an event source mapping event)"
    } else {
        ""
    };
    EventError::NoRecords { keys: format!("[{}]", keys.join(", ")), hint }
}

/// Names from outside appear in errors only if they are short and plain, and hold no number as long as a card's.
fn plain_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    if !name.is_empty() && name.len() <= 40 && digits <= DIGITS_NAMED && name.chars().all(plain) {
        name.to_owned()
    } else {
        "?".to_owned()
    }
}

fn kind(json: &str) -> &'static str {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        _ => "a number",
    }
}

/// A record's members, each of any type: a wrong type of one makes only that one unusable.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    receipt_handle: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    message_attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    event_source: Option<&'a RawValue>,
    #[serde(borrow, rename = "EventSource")]
    event_source_of_sns: Option<&'a RawValue>,
    #[serde(borrow, rename = "eventSourceARN")]
    event_source_arn: Option<&'a RawValue>,
}

/// The queue that was named last: nearly always all records of an event come from one.
#[derive(Default)]
struct Queues<'a> {
    arn: &'a str,
    queue: Option<Arc<QueueArn>>,
}

impl<'a> Queues<'a> {
    fn named(&mut self, arn: &'a RawValue) -> Option<Arc<QueueArn>> {
        if arn.get() != self.arn {
            self.arn = arn.get();
            self.queue = text(arn).and_then(|arn| QueueArn::parse(&arn)).map(Arc::new);
        }
        self.queue.clone()
    }
}

fn record<'a>(position: usize, raw: &'a RawValue, queues: &mut Queues<'a>) -> Result<Record, EventError> {
    // A struct would also be read from a list, member by member.
    let is_object = raw.get().starts_with('{');
    let Some(members) = serde_json::from_str::<Members<'_>>(raw.get()).ok().filter(|_| is_object) else {
        return Ok(Record::unusable(position));
    };
    if let Some(source) = members.event_source.or(members.event_source_of_sns) {
        let name = text(source).unwrap_or_default();
        if name != "aws:sqs" {
            return Err(EventError::OtherSource { position, source_name: plain_name(&name) });
        }
    }
    let system: BTreeMap<String, &RawValue> = members.attributes.and_then(object).unwrap_or_default();
    let system = |name: &str| system.get(name).and_then(|raw| text(raw).or_else(|| number(raw)));
    Ok(Record {
        position,
        message_id: members.message_id.and_then(text).and_then(MessageId::new),
        receipt_handle: members.receipt_handle.and_then(text).and_then(ReceiptHandle::new),
        queue: members.event_source_arn.and_then(|arn| queues.named(arn)),
        group: system("MessageGroupId").and_then(MessageGroupId::new),
        deduplication_id: system("MessageDeduplicationId"),
        receive_count: receive_count(system("ApproximateReceiveCount").as_deref()),
        sent_at: system("SentTimestamp").as_deref().and_then(epoch_millis),
        first_received_at: system("ApproximateFirstReceiveTimestamp").as_deref().and_then(epoch_millis),
        trace_header: system("AWSTraceHeader"),
        attributes: members.message_attributes.map(text_attributes).unwrap_or_default(),
        body: body(members.body),
    })
}

fn body(raw: Option<&RawValue>) -> Result<String, RecordError> {
    match raw {
        None => Err(RecordError::BodyMissing),
        Some(raw) if raw.get() == "null" => Err(RecordError::BodyMissing),
        Some(raw) => text(raw).ok_or(RecordError::BodyNotText),
    }
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A number's own characters: some emulators send system attributes as numbers.
fn number(raw: &RawValue) -> Option<String> {
    raw.get().starts_with(|c: char| c.is_ascii_digit() || c == '-').then(|| raw.get().to_owned())
}

fn object(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// What is missing, no number or below 1 counts as the first receive.
pub(crate) fn receive_count(text: Option<&str>) -> u32 {
    let digits =
        text.map(str::trim).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let count = digits.map_or(1, |digits| digits.parse::<u32>().unwrap_or(MAX_RECEIVE_COUNT));
    count.clamp(1, MAX_RECEIVE_COUNT)
}

/// The attributes that hold text; what cannot be read is left out, it does not matter to the order.
fn text_attributes(raw: &RawValue) -> Vec<TextAttribute> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attribute {
        data_type: String,
        string_value: String,
    }
    let attributes = object(raw).unwrap_or_default();
    let readable = attributes.into_iter().filter_map(|(name, raw)| {
        let Attribute { data_type, string_value } = serde_json::from_str(raw.get()).ok()?;
        Some(TextAttribute { name, data_type, value: string_value })
    });
    readable.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn one(record: &str) -> Record {
        records(&format!(r#"{{"Records":[{record}]}}"#)).unwrap().remove(0)
    }

    fn error(event: &str) -> String {
        records(event).unwrap_err().to_string()
    }

    #[test]
    fn a_record_is_read_with_what_is_needed() {
        let record = one(r#"{"messageId":"m-1","receiptHandle":"rh","body":"{}","eventSource":"aws:sqs",
                "eventSourceARN":"arn:aws:sqs:eu-west-1:1:orders.fifo",
                "attributes":{"ApproximateReceiveCount":3,"SentTimestamp":"1760000000000","MessageGroupId":"g",
                              "AWSTraceHeader":"Root=1-x"},
                "messageAttributes":{"a":{"stringValue":"x","stringListValues":null,"dataType":"String"},
                                     "b":{"binaryValue":"%%%","dataType":"Binary"},"c":null},
                "added":{"later":true}}"#);
        assert_eq!(record.message_id, MessageId::new("m-1"));
        assert_eq!(
            (record.receive_count, record.sent_at),
            (3, Some(Timestamp::from_millis(1_760_000_000_000)))
        );
        assert!(record.is_fifo());
        assert_eq!(record.attributes.len(), 1);
        assert_eq!(record.body.as_deref(), Ok("{}"));
    }

    #[test]
    fn a_record_that_cannot_be_used_fails_alone() {
        assert_eq!(one("{}").body, Err(RecordError::BodyMissing));
        assert_eq!(one(r#"{"body":null}"#).body, Err(RecordError::BodyMissing));
        assert_eq!(one(r#"{"body":{"order_id":"o-1"}}"#).body, Err(RecordError::BodyNotText));
        assert_eq!(one(r#"{"body":"\ud800"}"#).body, Err(RecordError::BodyNotText));
        for record in ["5", "null", r#"["m-1","rh","{}"]"#] {
            assert_eq!(one(record).body, Err(RecordError::NotAnObject));
        }
    }

    #[test]
    fn records_share_the_queue_they_name_and_no_other() {
        let arn = |name: &str| format!(r#"{{"eventSourceARN":"arn:aws:sqs:eu-west-1:1:{name}"}}"#);
        let event = format!(r#"{{"Records":[{0},{0},{1},{{}},{0}]}}"#, arn("orders"), arn("others"));
        let records = records(&event).unwrap();
        let names: Vec<_> = records.iter().map(|record| record.queue.as_ref().map(|it| it.name())).collect();
        assert_eq!(names, [Some("orders"), Some("orders"), Some("others"), None, Some("orders")]);
    }

    #[test]
    fn the_bytes_of_an_event_are_read_as_its_text_is() {
        let SqsEvent(batch) = serde_json::from_slice(br#" {"Records":[{"body":"{}"},5]}"#).unwrap();
        assert_eq!(batch.unwrap().iter().filter(|record| record.body.is_ok()).count(), 1);
        let SqsEvent(other) = serde_json::from_slice(b"[]").unwrap();
        assert_eq!(other.unwrap_err(), EventError::NotAnObject("a list"));
        assert!(serde_json::from_slice::<SqsEvent>(b"{").is_err());
    }

    #[test]
    fn an_unusable_message_id_is_none() {
        for id in ["null", r#""""#, "5", "{}"] {
            assert_eq!(one(&format!(r#"{{"messageId":{id}}}"#)).message_id, None, "{id}");
        }
    }

    #[test]
    fn receive_counts_are_at_least_one_and_capped() {
        for text in ["", "abc", "0", "-3", "1.5", "１"] {
            assert_eq!(receive_count(Some(text)), 1, "{text}");
        }
        assert_eq!(receive_count(None), 1);
        assert_eq!(receive_count(Some("7")), 7);
        assert_eq!(receive_count(Some("99999999999999999999")), MAX_RECEIVE_COUNT);
    }

    #[test]
    fn of_two_lists_none_is_the_batch() {
        assert!(error(r#"{"Records":[{"body":"x"}],"Records":[]}"#).ends_with("`Records` is there twice"));
    }

    #[test]
    fn an_empty_batch_is_a_batch() {
        assert!(records(r#"{"Records":[]}"#).unwrap().is_empty());
    }

    #[test]
    fn events_of_another_kind_are_refused_with_what_they_look_like() {
        let cases = [
            ("{}", "this is not an SQS event: there is no `Records` list; top-level keys seen: []"),
            (
                r#"{"records":[]}"#,
                "this is not an SQS event: there is no `Records` list; top-level keys seen: [records] \
                 (`records` must be spelt `Records`)",
            ),
            (
                r#"{"Messages":[],"card 4242":1,"card-4242424242424242":1}"#,
                "this is not an SQS event: there is no `Records` list; top-level keys seen: [Messages, ?, ?] \
                 (this has the shape of a ReceiveMessage answer, not of an event source mapping event)",
            ),
            ("null", "this is not an SQS event: it is null, not an object with a `Records` list"),
            (r#"{"Records":null}"#, "this is not an SQS event: `Records` is null, not a list"),
            (
                r#"{"Records":[{"eventSource":"aws:kinesis"}]}"#,
                "this is not an SQS event: record 0 has the event source aws:kinesis, not aws:sqs",
            ),
            (
                r#"{"Records":[{},{"EventSource":"aws:sns"}]}"#,
                "this is not an SQS event: record 1 has the event source aws:sns, not aws:sqs",
            ),
        ];
        for (event, text) in cases {
            assert_eq!(error(event), text);
        }
    }
}
