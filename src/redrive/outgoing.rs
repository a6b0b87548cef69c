//! A dead letter on its way back.

use std::time::Duration;

use super::{DeadLetter, letter::REASON};
use crate::{
    queue::{MAX_BATCH, Outgoing},
    record::{MessageGroupId, ORIGINAL_SENT_AT, TextAttribute},
};

/// What SQS allows.
const MAX_ATTRIBUTES: usize = 10;
/// The most bytes of a batch, bodies and attributes together.
const MAX_BATCH_BYTES: usize = 1_048_576;
/// Why the message had died when it was sent back.
const REDRIVE_REASON: &str = "redrive_reason";
/// The message's first name, if it had another before.
const ORIGINAL_MESSAGE_ID: &str = "original_message_id";

/// The message for the queue at `url`: body, group and attributes kept; the reason of its death moves aside, so
/// that it is not taken for the reason of the next one.
pub(super) fn outgoing(letter: &DeadLetter, url: &str) -> Outgoing {
    let message = &letter.message;
    let mut attributes: Vec<TextAttribute> = message
        .attributes
        .iter()
        .filter(|attribute| ![REASON, REDRIVE_REASON].contains(&attribute.name.as_str()))
        .cloned()
        .collect();
    let mut add = |name: &str, value: &str| {
        let known = attributes.iter().any(|attribute| attribute.name == name);
        if !known && attributes.len() < MAX_ATTRIBUTES && !value.is_empty() {
            let (name, data_type) = (name.to_owned(), "String".to_owned());
            attributes.push(TextAttribute { name, data_type, value: value.to_owned() });
        }
    };
    // A copy gets a time of its own from SQS, and an old order would pass for one that cannot have been charged yet.
    if let Some(sent_at) = message.system.get("SentTimestamp") {
        add(ORIGINAL_SENT_AT, sent_at);
    }
    add(ORIGINAL_MESSAGE_ID, message.id.as_str());
    add(REDRIVE_REASON, &letter.reason);
    Outgoing {
        body: message.body.clone(),
        attributes,
        group: letter.group().and_then(MessageGroupId::new),
        deduplication_id: url.ends_with(".fifo").then(|| deduplication_id(letter)),
        delay: Duration::ZERO,
    }
}

/// A name that no message had before: under its original one, a FIFO queue would swallow a message that died
/// within five minutes of being sent. A second try of the same redrive has the same name, and is swallowed.
fn deduplication_id(letter: &DeadLetter) -> String {
    format!("redrive-{}", letter.message.id)
}

/// The messages in batches that SQS takes, each with the place of its letter.
pub(super) fn batches(messages: Vec<Outgoing>, most: usize) -> Vec<Vec<(usize, Outgoing)>> {
    let mut batches: Vec<Vec<(usize, Outgoing)>> = Vec::new();
    let mut bytes = 0_usize;
    for (place, message) in messages.into_iter().enumerate() {
        let size = size(&message);
        match batches.last_mut() {
            Some(batch)
                if batch.len() < most.clamp(1, MAX_BATCH)
                    && bytes.saturating_add(size) <= MAX_BATCH_BYTES =>
            {
                bytes = bytes.saturating_add(size);
                batch.push((place, message));
            }
            Some(_) | None => {
                bytes = size;
                batches.push(vec![(place, message)]);
            }
        }
    }
    batches
}

fn size(message: &Outgoing) -> usize {
    let attributes = message.attributes.iter().map(|attribute| {
        let parts = [&attribute.name, &attribute.data_type, &attribute.value];
        parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()))
    });
    attributes.fold(message.body.len(), usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_no_more_than_sqs_takes() {
        let message = |bytes: usize| Outgoing { body: "x".repeat(bytes), ..Outgoing::default() };
        let sizes =
            |messages: Vec<Outgoing>, most| batches(messages, most).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(vec![message(1); 23], 10), [10, 10, 3]);
        assert_eq!(sizes(vec![message(1); 5], 2), [2, 2, 1]);
        assert_eq!(sizes(vec![message(400_000); 5], 10), [2, 2, 1]);
    }
}
