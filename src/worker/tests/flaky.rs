//! The memory queues with calls that fail on request.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use crate::{
    queue::{
        EntryError, EntryResult, Message, Outgoing, Queue, QueueError, Receive, VisibilityChange,
        memory::MemoryQueues,
    },
    record::{MessageId, ReceiptHandle},
};

pub(super) struct FlakyQueue {
    queues: MemoryQueues,
    refuse_deletes: AtomicU32,
    refuse_receives: AtomicU32,
    receives_refused: AtomicU32,
    lose_extensions: Mutex<Option<&'static str>>,
    extensions: Mutex<Vec<u32>>,
    deleted: Mutex<Vec<ReceiptHandle>>,
}

impl FlakyQueue {
    pub(super) fn over(queues: MemoryQueues) -> Self {
        Self {
            queues,
            refuse_deletes: AtomicU32::new(0),
            refuse_receives: AtomicU32::new(0),
            receives_refused: AtomicU32::new(0),
            lose_extensions: Mutex::default(),
            extensions: Mutex::default(),
            deleted: Mutex::default(),
        }
    }

    /// The next so many entries are not deleted.
    pub(super) fn refuse_deletes(&self, count: u32) {
        self.refuse_deletes.store(count, Ordering::Relaxed);
    }

    pub(super) fn refuse_receives(&self, count: u32) {
        self.refuse_receives.store(count, Ordering::Relaxed);
    }

    pub(super) fn receives_refused(&self) -> u32 {
        self.receives_refused.load(Ordering::Relaxed)
    }

    /// From now on extensions are refused with this code.
    pub(super) fn lose_extensions(&self, code: &'static str) {
        *self.lose_extensions.lock().unwrap() = Some(code);
    }

    /// The seconds of every extension that was asked for.
    pub(super) fn extensions(&self) -> Vec<u32> {
        self.extensions.lock().unwrap().clone()
    }

    pub(super) fn handles_deleted(&self) -> Vec<ReceiptHandle> {
        self.deleted.lock().unwrap().clone()
    }
}

fn refused(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn entry_error(code: &str) -> EntryError {
    EntryError { code: code.to_owned(), message: "as the test asked".to_owned() }
}

impl Queue for FlakyQueue {
    async fn receive(&self, url: &str, receive: Receive) -> Result<Vec<Message>, QueueError> {
        if refused(&self.refuse_receives) {
            self.receives_refused.fetch_add(1, Ordering::Relaxed);
            return Err(QueueError {
                operation: "ReceiveMessage",
                queue: url.to_owned(),
                code: None,
                source: "as the test asked".into(),
            });
        }
        self.queues.receive(url, receive).await
    }

    async fn delete(&self, url: &str, handles: &[ReceiptHandle]) -> Result<Vec<EntryResult>, QueueError> {
        let mut results = Vec::new();
        for handle in handles {
            if refused(&self.refuse_deletes) {
                results.push(Err(entry_error("InternalError")));
            } else {
                self.deleted.lock().unwrap().push(handle.clone());
                results.extend(self.queues.delete(url, std::slice::from_ref(handle)).await?);
            }
        }
        Ok(results)
    }

    async fn change_visibility(
        &self,
        url: &str,
        changes: &[VisibilityChange],
    ) -> Result<Vec<EntryResult>, QueueError> {
        let extensions = changes.iter().map(|change| change.seconds).filter(|seconds| *seconds > 0);
        self.extensions.lock().unwrap().extend(extensions);
        if let Some(code) = *self.lose_extensions.lock().unwrap() {
            return Ok(changes.iter().map(|_| Err(entry_error(code))).collect());
        }
        self.queues.change_visibility(url, changes).await
    }

    async fn send(
        &self,
        url: &str,
        messages: &[Outgoing],
    ) -> Result<Vec<EntryResult<MessageId>>, QueueError> {
        self.queues.send(url, messages).await
    }
}
