//! How an event source mapping with `ReportBatchItemFailures` reads a function's answer.
//!
//! The dangerous default is success: whatever Lambda does not recognise at the top level deletes the batch.

use std::collections::BTreeSet;

use serde_json::Value;

/// What becomes of the batch's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Every message is deleted.
    Success,
    /// The named messages stay in the queue, all others are deleted.
    Partial(BTreeSet<String>),
    /// Every message stays in the queue.
    Failure(Unreadable),
}

/// Why Lambda takes an answer for the failure of the whole batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The answer is not JSON.
    #[error("the answer is not JSON")]
    NotJson,
    /// `batchItemFailures` is there but is not a list.
    #[error("batchItemFailures is not a list")]
    NotAList,
    /// An entry has no usable `itemIdentifier`: another key, another type, null or "".
    #[error("an entry has no itemIdentifier")]
    NoIdentifier,
    /// An entry names a message that is not in the batch.
    #[error("itemIdentifier {0} is not in the batch")]
    NotInBatch(String),
}

/// Reads `answer` as Lambda does for a batch of `message_ids`.
pub fn read(answer: &[u8], message_ids: &BTreeSet<String>) -> Reading {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        return Reading::Failure(Unreadable::NotJson);
    };
    match answer.get("batchItemFailures") {
        None | Some(Value::Null) => Reading::Success,
        Some(Value::Array(entries)) if entries.is_empty() => Reading::Success,
        Some(Value::Array(entries)) => {
            let ids: Result<_, _> = entries.iter().map(|entry| identifier(entry, message_ids)).collect();
            ids.map_or_else(Reading::Failure, Reading::Partial)
        }
        Some(_) => Reading::Failure(Unreadable::NotAList),
    }
}

fn identifier(entry: &Value, message_ids: &BTreeSet<String>) -> Result<String, Unreadable> {
    let id = entry.get("itemIdentifier").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or(Unreadable::NoIdentifier)?;
    if message_ids.contains(id) { Ok(id.to_owned()) } else { Err(Unreadable::NotInBatch(id.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn reading(answer: &str) -> Reading {
        read(answer.as_bytes(), &ids(&["a", "b", "c"]))
    }

    #[test]
    fn only_listed_messages_stay() {
        let answer = r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}"#;
        assert_eq!(reading(answer), Reading::Partial(ids(&["a", "c"])));
    }

    #[test]
    fn an_identifier_listed_twice_stays_once() {
        let answer = r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"a"}]}"#;
        assert_eq!(reading(answer), Reading::Partial(ids(&["a"])));
    }

    #[test]
    fn an_empty_answer_deletes_the_batch() {
        for answer in [
            r#"{"batchItemFailures":[]}"#,
            r#"{"batchItemFailures":null}"#,
            "{}",
            "null",
            "[]",
            "\"done\"",
            r#"{"BatchItemFailures":[{"ItemIdentifier":"a"}]}"#,
            r#"{"batch_item_failures":[{"item_identifier":"a"}]}"#,
            r#"{"statusCode":200,"body":"{\"batchItemFailures\":[{\"itemIdentifier\":\"a\"}]}"}"#,
        ] {
            assert_eq!(reading(answer), Reading::Success, "{answer}");
        }
    }

    #[test]
    fn an_unreadable_entry_fails_the_batch() {
        for entry in [
            "{}",
            "null",
            "\"a\"",
            r#"{"itemIdentifier":""}"#,
            r#"{"itemIdentifier":null}"#,
            r#"{"item_identifier":"a"}"#,
            r#"{"ItemIdentifier":"a"}"#,
            r#"{"itemIdentifier":1}"#,
        ] {
            let answer = format!(r#"{{"batchItemFailures":[{{"itemIdentifier":"b"}},{entry}]}}"#);
            assert_eq!(reading(&answer), Reading::Failure(Unreadable::NoIdentifier), "{entry}");
        }
    }

    #[test]
    fn what_is_not_a_list_or_not_json_fails_the_batch() {
        assert_eq!(reading(r#"{"batchItemFailures":"a"}"#), Reading::Failure(Unreadable::NotAList));
        for answer in ["", "{", "ok"] {
            assert_eq!(reading(answer), Reading::Failure(Unreadable::NotJson), "{answer}");
        }
    }

    #[test]
    fn a_receipt_handle_is_not_an_identifier() {
        let answer = r#"{"batchItemFailures":[{"itemIdentifier":"rh-a"}]}"#;
        assert_eq!(reading(answer), Reading::Failure(Unreadable::NotInBatch("rh-a".into())));
    }
}
