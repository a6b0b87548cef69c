//! What SQS accepts as a message.

use std::time::Duration;

use super::{error::SqsError, settings::QueueSettings};
use crate::{queue::Outgoing, record::TextAttribute};

/// The most bytes of a message, and of all messages of a batch.
pub(super) const MAX_BYTES: usize = 1_048_576;
const MAX_ATTRIBUTES: usize = 10;
const MAX_DELAY: Duration = Duration::from_secs(900);
const MAX_ID: usize = 128;

/// Body and attributes in bytes, as SQS counts them.
pub(super) fn size(message: &Outgoing) -> usize {
    let attribute =
        |a: &TextAttribute| [&a.name, &a.data_type, &a.value].iter().map(|text| text.len()).sum::<usize>();
    message.attributes.iter().map(attribute).sum::<usize>().saturating_add(message.body.len())
}

/// All messages of a batch together are no larger than one message may be.
///
/// # Errors
/// They are.
pub fn check_total_size<'a>(messages: impl IntoIterator<Item = &'a Outgoing>) -> Result<(), SqsError> {
    let total = messages.into_iter().map(size).fold(0, usize::saturating_add);
    if total > MAX_BYTES { Err(SqsError::BatchRequestTooLong(total)) } else { Ok(()) }
}

/// Checks a message against the queue's settings.
pub(super) fn check(message: &Outgoing, queue: &QueueSettings) -> Result<(), SqsError> {
    if message.body.is_empty() {
        return Err(SqsError::MissingParameter("MessageBody"));
    }
    if size(message) > queue.maximum_message_size {
        let reason = format!("Reason: Message must be shorter than {} bytes.", queue.maximum_message_size);
        return Err(invalid(&format!("One or more parameters are invalid. {reason}")));
    }
    if !message.body.chars().all(is_carried) {
        return Err(SqsError::InvalidMessageContents);
    }
    check_attributes(&message.attributes)?;
    check_placing(message, queue)
}

fn check_attributes(attributes: &[TextAttribute]) -> Result<(), SqsError> {
    if attributes.len() > MAX_ATTRIBUTES {
        return Err(invalid(&format!(
            "Number of message attributes [{}] exceeds the allowed maximum [10].",
            attributes.len()
        )));
    }
    for attribute in attributes {
        let kind = attribute.data_type.split('.').next().unwrap_or_default();
        if attribute.value.is_empty() || !matches!(kind, "String" | "Number") {
            let name = &attribute.name;
            return Err(invalid(&format!(
                "The message attribute '{name}' must contain a non-empty text value."
            )));
        }
        if !attribute.value.chars().all(is_carried) {
            return Err(SqsError::InvalidMessageContents);
        }
    }
    Ok(())
}

fn check_placing(message: &Outgoing, queue: &QueueSettings) -> Result<(), SqsError> {
    let fifo = queue.fifo.as_ref();
    if message.delay > MAX_DELAY || (fifo.is_some() && !message.delay.is_zero()) {
        let seconds = message.delay.as_secs();
        return Err(invalid(&format!(
            "Value {seconds} for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."
        )));
    }
    let ids = [message.deduplication_id.as_deref(), message.group.as_ref().map(|group| group.as_str())];
    if ids.into_iter().flatten().any(|id| id.is_empty() || id.len() > MAX_ID) {
        return Err(invalid("MessageGroupId and MessageDeduplicationId can be 1 to 128 characters long."));
    }
    match fifo {
        Some(_) if message.group.is_none() => Err(SqsError::MissingParameter("MessageGroupId")),
        Some(fifo) if message.deduplication_id.is_none() && !fifo.content_based_deduplication => {
            Err(invalid(
                "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
            ))
        }
        None if message.deduplication_id.is_some() => Err(invalid(
            "Value for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type.",
        )),
        Some(_) | None => Ok(()),
    }
}

fn is_carried(c: char) -> bool {
    matches!(c, '\u{9}' | '\u{A}' | '\u{D}' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn invalid(message: &str) -> SqsError {
    SqsError::InvalidParameterValue(message.to_owned())
}
