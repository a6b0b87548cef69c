//! The memory queues as a [`Queue`].

use super::{MemoryQueues, check_total_size, error::SqsError};
use crate::{
    queue::{EntryResult, MAX_BATCH, Message, Outgoing, Queue, QueueError, Receive, VisibilityChange},
    record::{MessageId, ReceiptHandle},
};

impl Queue for MemoryQueues {
    async fn receive(&self, url: &str, receive: Receive) -> Result<Vec<Message>, QueueError> {
        self.receive_from(name_in(url), receive).await.map_err(|error| error.of("ReceiveMessage", url))
    }

    async fn delete(&self, url: &str, handles: &[ReceiptHandle]) -> Result<Vec<EntryResult>, QueueError> {
        const OPERATION: &str = "DeleteMessageBatch";
        self.check_batch(OPERATION, url, handles)?;
        Ok(handles.iter().map(|handle| Ok(self.delete_one(name_in(url), handle)?)).collect())
    }

    async fn change_visibility(
        &self,
        url: &str,
        changes: &[VisibilityChange],
    ) -> Result<Vec<EntryResult>, QueueError> {
        const OPERATION: &str = "ChangeMessageVisibilityBatch";
        self.check_batch(OPERATION, url, changes)?;
        Ok(changes.iter().map(|change| Ok(self.change_one(name_in(url), change)?)).collect())
    }

    async fn send(
        &self,
        url: &str,
        messages: &[Outgoing],
    ) -> Result<Vec<EntryResult<MessageId>>, QueueError> {
        const OPERATION: &str = "SendMessageBatch";
        self.check_batch(OPERATION, url, messages)?;
        check_total_size(messages).map_err(|error| error.of(OPERATION, url))?;
        let send = |message: &Outgoing| Ok(self.send_one(name_in(url), message.clone())?.id);
        Ok(messages.iter().map(send).collect())
    }
}

impl MemoryQueues {
    /// What fails a batch call as a whole.
    fn check_batch<T>(&self, operation: &'static str, url: &str, entries: &[T]) -> Result<(), QueueError> {
        let check = match entries.len() {
            0 => Err(SqsError::EmptyBatchRequest),
            1..=MAX_BATCH => self.lock().slot(name_in(url)).map(|_| ()),
            count => Err(SqsError::TooManyEntriesInBatchRequest(count)),
        };
        check.map_err(|error| error.of(operation, url))
    }
}

/// The queue's name in a URL: its last segment.
fn name_in(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}
