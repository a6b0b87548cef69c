//! The sample events of `events/`, inside the binary so that local mode works from any folder; events in files; and
//! how an event is made to look as if it had been sent just now.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::clock::Timestamp;

/// An event with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The file's name without `.json`.
    pub name: String,
    /// The event's bytes.
    pub event: Vec<u8>,
}

macro_rules! samples {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../events/", $name, ".json")))),+]
    };
}

const SAMPLES: &[(&str, &str)] = samples![
    "01-one-order",
    "02-mixed-batch",
    "03-poison-body",
    "04-same-order-twice-in-one-batch",
    "05-resend-under-a-new-message-id",
    "06-fifo-failing-head",
    "07-zero-decimal-currencies",
    "08-three-decimal-currencies",
    "09-sns-wrapped",
    "10-eventbridge-wrapped",
    "11-received-five-times",
    "12-hundred-orders",
    "13-same-order-another-amount",
];

/// All sample events, in the order of their names.
pub fn all() -> Vec<Sample> {
    SAMPLES.iter().map(|(name, event)| Sample { name: (*name).into(), event: (*event).into() }).collect()
}

/// Why an event file is no use.
#[derive(Debug, thiserror::Error)]
pub enum EventFileError {
    /// It is missing, or may not be read.
    #[error("{} cannot be read", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} is not JSON; `charge-once queue event` shows what an event looks like", .file.display())]
    NotJson {
        /// The file.
        file: PathBuf,
        /// Where it stops being JSON.
        #[source]
        source: serde_json::Error,
    },
}

/// The events of some files, each named like its file; `-` is standard input.
///
/// # Errors
/// The first file that cannot be read or is not JSON; whether it is an SQS event is the function's to say.
pub fn read(files: &[PathBuf]) -> Result<Vec<Sample>, EventFileError> {
    files.iter().map(|file| read_one(file)).collect()
}

fn read_one(file: &Path) -> Result<Sample, EventFileError> {
    let bytes = if file == Path::new("-") { read_all(io::stdin()) } else { std::fs::read(file) };
    let bytes = bytes.map_err(|source| EventFileError::Unreadable { file: file.into(), source })?;
    let event = without_bom(&bytes).to_vec();
    serde_json::from_slice::<serde::de::IgnoredAny>(&event)
        .map_err(|source| EventFileError::NotJson { file: file.into(), source })?;
    let name = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    Ok(Sample { name, event })
}

fn read_all(mut input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether it could be an order without the event around it: a JSON object with an `order_id`.
pub fn is_bare_order(event: &[u8]) -> bool {
    let fields: Map<String, Value> = serde_json::from_slice(event).unwrap_or_default();
    fields.contains_key("order_id")
}

/// `event` without a leading byte order mark, which Windows editors write and no JSON parser reads.
pub fn without_bom(event: &[u8]) -> &[u8] {
    event.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(event)
}

/// The event as if its messages had been sent and received at `now`.
///
/// Stored events are old, and the ledger holds orders that are older than its memory. What is not an SQS event
/// comes back as it is.
pub fn freshened(event: &[u8], now: Timestamp) -> Vec<u8> {
    let Ok(mut parsed) = serde_json::from_slice::<Value>(event) else { return event.to_vec() };
    let records = parsed.get_mut("Records").and_then(Value::as_array_mut);
    for record in records.into_iter().flatten() {
        let Some(attributes) = record.get_mut("attributes").and_then(Value::as_object_mut) else { continue };
        for name in ["SentTimestamp", "ApproximateFirstReceiveTimestamp"] {
            match attributes.get_mut(name) {
                Some(Value::String(text)) => *text = now.as_millis().to_string(),
                Some(number @ Value::Number(_)) => *number = now.as_millis().into(),
                Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {}
            }
        }
    }
    serde_json::to_vec(&parsed).unwrap_or_else(|_| event.to_vec())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use serde_json::json;

    use super::*;

    #[test]
    fn every_file_of_events_is_in_the_binary() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("events");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let names: BTreeSet<String> = all().into_iter().map(|sample| sample.name).collect();
        assert_eq!(files, names);
    }

    #[test]
    fn every_sample_has_the_digest_of_its_body() {
        for Sample { name, event } in all() {
            let event: Value = serde_json::from_slice(&event).unwrap();
            for record in event["Records"].as_array().unwrap() {
                let digest = format!("{:x}", md5::compute(record["body"].as_str().unwrap()));
                assert_eq!(record["md5OfBody"], digest, "{name}");
            }
        }
    }

    #[test]
    fn only_the_times_of_an_event_change() {
        let event = |sent: Value| {
            json!({ "Records": [
                { "messageId": "m", "body": "{\"amount\":4.20}", "attributes": { "SentTimestamp": sent, "SenderId": "x" } },
                { "messageId": "without attributes" },
                7,
            ]})
        };
        let now = Timestamp::from_millis(99);
        for (before, after) in [(json!("5"), json!("99")), (json!(5), json!(99)), (json!(null), json!(null))]
        {
            let fresh: Value =
                serde_json::from_slice(&freshened(event(before).to_string().as_bytes(), now)).unwrap();
            assert_eq!(fresh, event(after));
        }
    }

    #[test]
    fn what_is_not_an_event_stays_as_it_is() {
        for bytes in [&b"\xff"[..], b"", b"null", b"{\"records\":[]}"] {
            assert_eq!(freshened(bytes, Timestamp::from_millis(1)), bytes);
        }
    }

    #[test]
    fn an_order_alone_is_no_event() {
        assert!(is_bare_order(br#"{"order_id":"o-1","amount":4.2}"#));
        assert!(
            [&b"{}"[..], b"[]", b"\"order_id\"", br#"{"Records":[]}"#]
                .iter()
                .all(|event| !is_bare_order(event))
        );
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(without_bom(b"\xEF\xBB\xBF{}"), b"{}");
        assert_eq!(without_bom(b"{}"), b"{}");
    }
}
