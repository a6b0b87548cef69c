//! FIFO deduplication: a second message with the same id within five minutes is accepted and dropped.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use super::message::Seq;
use crate::{clock::Timestamp, record::MessageId};

/// SQS's deduplication interval. It counts from the first send, and deleting the message does not end it.
const WINDOW: Duration = Duration::from_secs(300);

/// What must be equal for two messages to be the same: the deduplication id, inside a group or queue-wide.
pub(super) type DedupKey = (Option<String>, String);

/// The messages sent within the last five minutes, by deduplication id.
#[derive(Debug, Default)]
pub(super) struct Dedup {
    seen: HashMap<DedupKey, (MessageId, Seq)>,
    order: VecDeque<(Timestamp, DedupKey)>,
}

impl Dedup {
    /// The message first sent under this key, if that is not five minutes ago yet.
    pub(super) fn first(&mut self, now: Timestamp, key: &DedupKey) -> Option<(MessageId, Seq)> {
        while let Some((_, old)) = self.order.pop_front_if(|(at, _)| at.plus(WINDOW) <= now) {
            self.seen.remove(&old);
        }
        self.seen.get(key).cloned()
    }

    /// Remembers a message that was just sent.
    pub(super) fn remember(&mut self, now: Timestamp, key: DedupKey, id: MessageId, seq: Seq) {
        self.order.push_back((now, key.clone()));
        self.seen.insert(key, (id, seq));
    }
}
