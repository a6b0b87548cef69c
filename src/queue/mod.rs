//! The queue seam: what the shells need of a queue, with one result per entry.
//!
//! A batch call that succeeds as a whole may have failed for single entries, so every batch method answers
//! entry by entry, in the order of the entries it was given.

pub mod conformance;
pub mod memory;
#[cfg(feature = "aws")]
pub mod sqs;

use std::{collections::BTreeMap, future::Future, time::Duration};

use crate::record::{MessageGroupId, MessageId, ReceiptHandle, TextAttribute};

/// The most entries a batch call takes, and the most messages a receive returns: cut longer lists with
/// `chunks(MAX_BATCH)`.
pub const MAX_BATCH: usize = 10;

/// What became of one entry of a batch call.
pub type EntryResult<T = ()> = Result<T, EntryError>;

/// Why one entry of a batch call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct EntryError {
    /// The queue's error code, such as `ReceiptHandleIsInvalid`.
    pub code: String,
    /// The queue's own words.
    pub message: String,
}

/// A call to the queue failed as a whole; nothing is known of its entries.
#[derive(Debug, thiserror::Error)]
#[error("the queue call {operation} failed for {queue}")]
pub struct QueueError {
    /// The call, such as `ReceiveMessage`.
    pub operation: &'static str,
    /// The queue, as the caller named it: its URL, or where a call takes that its ARN.
    pub queue: String,
    /// The queue's error code, such as `QueueDoesNotExist`; `None` if the queue did not answer.
    pub code: Option<String>,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// How many messages to receive and for how long to hide them.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// 1 to 10.
    pub max_messages: u8,
    /// How long to wait for a first message, 0 to 20 s.
    pub wait: Duration,
    /// How long received messages stay hidden; `None` takes the queue's own setting.
    pub visibility: Option<Duration>,
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Names the message.
    pub id: MessageId,
    /// The right to delete or hide this delivery.
    pub receipt_handle: ReceiptHandle,
    /// The text.
    pub body: String,
    /// System attributes by name (`ApproximateReceiveCount`, `SentTimestamp`, `MessageGroupId`, ...).
    pub system: BTreeMap<String, String>,
    /// The producer's attributes that hold text.
    pub attributes: Vec<TextAttribute>,
}

/// A message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The text.
    pub body: String,
    /// Attributes of type String or Number, at most 10.
    pub attributes: Vec<TextAttribute>,
    /// Required on FIFO queues.
    pub group: Option<MessageGroupId>,
    /// Required on FIFO queues without content-based deduplication.
    pub deduplication_id: Option<String>,
    /// How long the message stays hidden at first, 0 to 15 min; not allowed on FIFO queues.
    pub delay: Duration,
}

/// A new visibility timeout for one delivery, counted from the call, 0 to 12 h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibilityChange {
    /// The delivery.
    pub receipt_handle: ReceiptHandle,
    /// The new timeout in whole seconds.
    pub seconds: u32,
}

/// A queue with the semantics of SQS. `url` is the queue's URL; batches hold 1 to 10 entries.
pub trait Queue: Send + Sync {
    /// Receives messages; an empty list after `wait` without one.
    ///
    /// # Errors
    /// The call failed; messages may have been received all the same and will reappear.
    fn receive(
        &self,
        url: &str,
        receive: Receive,
    ) -> impl Future<Output = Result<Vec<Message>, QueueError>> + Send;

    /// Deletes deliveries. Success proves nothing where a newer receipt handle exists.
    ///
    /// # Errors
    /// The call failed; entries may have been deleted.
    fn delete(
        &self,
        url: &str,
        handles: &[ReceiptHandle],
    ) -> impl Future<Output = Result<Vec<EntryResult>, QueueError>> + Send;

    /// Changes how long deliveries stay hidden.
    ///
    /// # Errors
    /// The call failed; the messages reappear at the latest when their present timeout ends.
    fn change_visibility(
        &self,
        url: &str,
        changes: &[VisibilityChange],
    ) -> impl Future<Output = Result<Vec<EntryResult>, QueueError>> + Send;

    /// Sends messages; each entry answers with the identifier of the new message.
    ///
    /// # Errors
    /// The call failed; messages may have been sent.
    fn send(
        &self,
        url: &str,
        messages: &[Outgoing],
    ) -> impl Future<Output = Result<Vec<EntryResult<MessageId>>, QueueError>> + Send;
}
