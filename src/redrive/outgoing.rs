//! A dead letter on its way back.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::DeadLetter;
use crate::{
    clock::epoch_millis,
    order::hex,
    queue::{MAX_BATCH, Outgoing},
    record::{MessageGroupId, ORIGINAL_MESSAGE_ID, ORIGINAL_SENT_AT, REASON, TextAttribute},
};

/// What SQS allows.
const MAX_ATTRIBUTES: usize = 10;
/// The most bytes of a batch, bodies and attributes together.
const MAX_BATCH_BYTES: usize = 1_048_576;
/// Why the message had died when it was sent back.
const REDRIVE_REASON: &str = "redrive_reason";

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
    let lacks =
        |attributes: &[TextAttribute], name: &str| !attributes.iter().any(|attribute| attribute.name == name);
    // A copy gets a time of its own from SQS, and an old order would pass for one that cannot have been charged yet.
    // So this one has its place, whatever the producer sends along, under this very name, too.
    let named = attributes.iter().find(|attribute| attribute.name == ORIGINAL_SENT_AT);
    let sent = message.system.get("SentTimestamp").map(String::as_str);
    let times = [sent, named.map(|attribute| attribute.value.as_str())];
    if let Some(first) = times.into_iter().flatten().filter_map(epoch_millis).min() {
        attributes.retain(|attribute| attribute.name != ORIGINAL_SENT_AT);
        attributes.truncate(MAX_ATTRIBUTES.saturating_sub(1));
        attributes.push(TextAttribute::string(ORIGINAL_SENT_AT, first.as_millis().to_string()));
    }
    let mut bytes = message.body.len().saturating_add(attributes.iter().map(bytes_of).sum());
    for added in [
        TextAttribute::string(ORIGINAL_MESSAGE_ID, message.id.as_str()),
        TextAttribute::string(REDRIVE_REASON, &letter.reason),
    ] {
        let fits =
            attributes.len() < MAX_ATTRIBUTES && bytes.saturating_add(bytes_of(&added)) <= MAX_BATCH_BYTES;
        if fits && !added.value.is_empty() && lacks(&attributes, &added.name) {
            bytes = bytes.saturating_add(bytes_of(&added));
            attributes.push(added);
        }
    }
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

/// The message of a file, in which somebody may have changed the body: each body has a name of its own, or a queue that
/// has taken one would swallow the other.
pub(super) fn of_file(letter: &DeadLetter, url: &str) -> Outgoing {
    let body = hex(&Sha256::digest(&letter.message.body));
    let body = body.get(..16).unwrap_or(&body);
    let message = outgoing(letter, url);
    Outgoing { deduplication_id: message.deduplication_id.map(|id| format!("{id}-{body}")), ..message }
}

/// What is said of a message that SQS does not take.
pub(super) const TOO_LARGE: &str = "larger than SQS takes";

/// Whether SQS takes the message at all.
pub(super) fn fits(message: &Outgoing) -> bool {
    size(message) <= MAX_BATCH_BYTES
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
    message.attributes.iter().map(bytes_of).fold(message.body.len(), usize::saturating_add)
}

fn bytes_of(attribute: &TextAttribute) -> usize {
    let parts = [&attribute.name, &attribute.data_type, &attribute.value];
    parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()))
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
