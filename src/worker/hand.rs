//! The messages that this worker has in hand, each with the newest right to delete or hide it.

use std::{
    collections::{HashMap, hash_map},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    queue::Message,
    record::{MessageId, ReceiptHandle},
};

/// From the receive of a message until the queue was told its result.
///
/// SQS may hand out a message again that is still in hand. It is not worked on twice; the newer receipt handle
/// takes the place of the older one, which may delete nothing any more.
#[derive(Debug, Default)]
pub(super) struct Hand {
    newest: Mutex<HashMap<MessageId, ReceiptHandle>>,
    /// Those whose result is not known yet: what may still want to be deleted or hidden.
    undecided: AtomicUsize,
}

impl Hand {
    /// Takes a received message; `false` if it was in hand already.
    pub(super) fn take(&self, message: &Message) -> bool {
        match self.newest().entry(message.id.clone()) {
            hash_map::Entry::Occupied(mut entry) => {
                entry.insert(message.receipt_handle.clone());
                false
            }
            hash_map::Entry::Vacant(entry) => {
                entry.insert(message.receipt_handle.clone());
                self.undecided.fetch_add(1, Ordering::Relaxed);
                true
            }
        }
    }

    /// The result of one message is known.
    pub(super) fn decided(&self) {
        self.undecided.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether results are still to come.
    pub(super) fn awaits_results(&self) -> bool {
        self.undecided.load(Ordering::Relaxed) > 0
    }

    /// The newest receipt handle of a message in hand.
    pub(super) fn handle(&self, id: &MessageId) -> Option<ReceiptHandle> {
        self.newest().get(id).cloned()
    }

    /// Lets a message go, so that its next delivery is worked on.
    pub(super) fn give_up(&self, id: &MessageId) -> Option<ReceiptHandle> {
        self.newest().remove(id)
    }

    /// Lets a message go that was deleted with `used`; `false` if a newer delivery must be deleted as well.
    pub(super) fn deleted(&self, id: &MessageId, used: &ReceiptHandle) -> bool {
        let mut newest = self.newest();
        let newer = newest.get(id).is_some_and(|handle| handle != used);
        if !newer {
            newest.remove(id);
        }
        !newer
    }

    fn newest(&self) -> MutexGuard<'_, HashMap<MessageId, ReceiptHandle>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn delivery(handle: &str) -> Message {
        Message {
            id: MessageId::new("m").unwrap(),
            receipt_handle: ReceiptHandle::new(handle).unwrap(),
            body: String::new(),
            system: BTreeMap::new(),
            attributes: Vec::new(),
        }
    }

    #[test]
    fn a_message_received_again_is_deleted_with_its_newest_handle() {
        let (hand, first, second) = (Hand::default(), delivery("1"), delivery("2"));
        assert!(hand.take(&first));
        assert!(!hand.take(&second), "it is in hand already");
        assert!(!hand.deleted(&first.id, &first.receipt_handle), "the newer delivery is still there");
        assert_eq!(hand.handle(&first.id), Some(second.receipt_handle.clone()));
        assert!(hand.deleted(&first.id, &second.receipt_handle));
        assert!(hand.take(&second), "a later delivery is worked on");
    }
}
