//! A message as the queue keeps it, and the receipt handles of its deliveries.

use std::collections::BTreeMap;

use super::error::SqsError;
use crate::{
    clock::Timestamp,
    queue::{Message, Outgoing},
    record::{MessageGroupId, MessageId, ReceiptHandle},
};

/// A message's place in its queue. Never given twice, so it doubles as FIFO's sequence number.
pub(super) type Seq = u64;

/// The account that sends everything here.
const SENDER: &str = "AIDAIENQZJOLO23YVJ4VO";

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) id: MessageId,
    /// As sent; with the deduplication id in force, given or computed.
    pub(super) sent: Outgoing,
    /// When the message reached SQS. Retention counts from here.
    pub(super) sent_at: Timestamp,
    pub(super) first_received_at: Option<Timestamp>,
    /// Across all queues, so it goes on counting in a dead-letter queue.
    pub(super) receive_count: u32,
    /// The count it came to this queue with: a dead-letter queue's own redrive policy starts anew.
    pub(super) arrived_with: u32,
    /// The queue it was dead-lettered from.
    pub(super) dead_letter_source: Option<String>,
    pub(super) phase: Phase,
}

/// Whether a message can be received, and since or until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Visible,
    Delayed { until: Timestamp },
    InFlight { until: Timestamp, since: Timestamp },
}

impl Phase {
    pub(super) fn hidden_until(self) -> Option<Timestamp> {
        match self {
            Self::Visible => None,
            Self::Delayed { until } | Self::InFlight { until, .. } => Some(until),
        }
    }

    pub(super) fn is_in_flight(self) -> bool {
        matches!(self, Self::InFlight { .. })
    }
}

impl Stored {
    pub(super) fn new(id: MessageId, sent: Outgoing, now: Timestamp) -> Self {
        Self {
            id,
            sent,
            sent_at: now,
            first_received_at: None,
            receive_count: 0,
            arrived_with: 0,
            dead_letter_source: None,
            phase: Phase::Visible,
        }
    }

    pub(super) fn group(&self) -> Option<&MessageGroupId> {
        self.sent.group.as_ref()
    }

    /// How often this queue handed it out.
    pub(super) fn receives_here(&self) -> u32 {
        self.receive_count.saturating_sub(self.arrived_with)
    }

    /// The present delivery, as a consumer sees it.
    pub(super) fn delivery(&self, receipt_handle: ReceiptHandle, sequence: Option<Seq>) -> Message {
        let mut system = BTreeMap::from([
            ("ApproximateReceiveCount".to_owned(), self.receive_count.to_string()),
            ("SenderId".to_owned(), SENDER.to_owned()),
            ("SentTimestamp".to_owned(), self.sent_at.as_millis().to_string()),
        ]);
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                system.insert(name.to_owned(), value);
            }
        };
        let first = self.first_received_at.map(|at| at.as_millis().to_string());
        put("ApproximateFirstReceiveTimestamp", first);
        put("DeadLetterQueueSourceArn", self.dead_letter_source.clone());
        put("MessageDeduplicationId", self.sent.deduplication_id.clone());
        put("MessageGroupId", self.group().map(ToString::to_string));
        put("SequenceNumber", sequence.map(sequence_number));
        Message {
            id: self.id.clone(),
            receipt_handle,
            body: self.sent.body.clone(),
            system,
            attributes: self.sent.attributes.clone(),
        }
    }
}

/// A sequence number as SQS writes it: 20 digits, so that it sorts as text.
pub(super) fn sequence_number(seq: Seq) -> String {
    format!("{seq:020}")
}

/// What a receipt handle says: which message, and which of its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) seq: Seq,
    pub(super) receive: u32,
}

impl Handle {
    pub(super) fn write(self, queue: &str) -> Option<ReceiptHandle> {
        ReceiptHandle::new(format!("{queue}:{}:{}", self.seq, self.receive))
    }

    /// Reads a handle given out by this queue.
    pub(super) fn read(queue: &str, handle: &ReceiptHandle) -> Result<Self, SqsError> {
        let read = || {
            let (seq, receive) = handle.as_str().strip_prefix(queue)?.strip_prefix(':')?.split_once(':')?;
            Some(Self { seq: seq.parse().ok()?, receive: receive.parse().ok()? })
        };
        read().ok_or_else(|| SqsError::ReceiptHandleIsInvalid(handle.to_string()))
    }
}
