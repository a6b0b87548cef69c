//! The event source mapping: takes messages off a queue in batches, invokes the function, and deletes what the
//! function did not report.
//!
//! As Lambda does with `ReportBatchItemFailures`: several batches run side by side; whatever stays in the queue
//! comes back when its visibility timeout ends, also after a crash; the queue itself counts receives, moves what
//! was received too often, and keeps a FIFO group back while one of its messages is in flight. What Lambda has
//! and this has not: a batching window, and scaling.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::{
    local::{
        answer::{self, Reading},
        runtime_api::InvocationOutcome,
    },
    queue::{
        Message, Receive,
        memory::{MemoryQueues, SqsError},
    },
    record::ReceiptHandle,
};

/// How long a receive waits before the mapping looks whether the queue is empty.
const WAIT: Duration = Duration::from_secs(1);

/// What can be invoked with an event.
pub trait Invoke: Sync {
    /// Why there will be no further invocations.
    type Error: Send;

    /// Invokes the function and waits for its answer.
    ///
    /// # Errors
    /// The function cannot be invoked at all, now and later.
    fn invoke(&self, event: Bytes) -> impl Future<Output = Result<InvocationOutcome, Self::Error>> + Send;
}

/// Why a mapping stopped.
#[derive(Debug, thiserror::Error)]
pub enum MappingError<E> {
    /// The queue does not exist or refuses.
    #[error(transparent)]
    Queue(#[from] SqsError),
    /// The function cannot be invoked.
    #[error("the function cannot be invoked")]
    Function(#[source] E),
}

/// What a mapping has done so far.
#[derive(Debug, Default)]
pub struct Counts {
    deliveries: AtomicU64,
    invocations: AtomicU64,
    failed: AtomicU64,
    kept: AtomicU64,
    deleted: AtomicU64,
}

impl Counts {
    /// Messages handed to the function, each as often as it was.
    pub fn deliveries(&self) -> u64 {
        self.deliveries.load(Ordering::Relaxed)
    }

    /// Batches handed to the function.
    pub fn invocations(&self) -> u64 {
        self.invocations.load(Ordering::Relaxed)
    }

    /// Invocations without a usable answer: crashed, timed out, an error, or one that Lambda cannot read.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Messages that stayed in the queue because the function reported them, or gave no usable answer.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Messages deleted because the function did not report them.
    pub fn deleted(&self) -> u64 {
        self.deleted.load(Ordering::Relaxed)
    }
}

/// Connects a queue with a function.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a> {
    /// Where the queue is.
    pub queues: &'a MemoryQueues,
    /// The queue's name.
    pub queue: &'a str,
    /// The most messages of one invocation, 1 to 10.
    pub batch_size: u8,
    /// How many invocations run at once.
    pub concurrency: usize,
}

impl Mapping<'_> {
    /// Works until the queue holds no message any more, visible or not.
    ///
    /// # Errors
    /// The queue refuses, or the function cannot be invoked.
    pub async fn run_until_empty<F: Invoke>(
        &self,
        function: &F,
        counts: &Counts,
    ) -> Result<(), MappingError<F::Error>> {
        try_join_all((0..self.concurrency).map(|_| self.poll_until_empty(function, counts))).await?;
        Ok(())
    }

    async fn poll_until_empty<F: Invoke>(
        &self,
        function: &F,
        counts: &Counts,
    ) -> Result<(), MappingError<F::Error>> {
        let receive = Receive { max_messages: self.batch_size, wait: WAIT, visibility: None };
        while self.queues.depth(self.queue)?.total() > 0 {
            let messages = self.queues.receive_from(self.queue, receive).await?;
            if !messages.is_empty() {
                self.deliver(function, counts, &messages).await?;
            }
        }
        Ok(())
    }

    async fn deliver<F: Invoke>(
        &self,
        function: &F,
        counts: &Counts,
        messages: &[Message],
    ) -> Result<(), MappingError<F::Error>> {
        let delivered = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        counts.deliveries.fetch_add(delivered, Ordering::Relaxed);
        counts.invocations.fetch_add(1, Ordering::Relaxed);
        let event = Bytes::from(event(&MemoryQueues::arn(self.queue), messages).to_string());
        let outcome = function.invoke(event).await.map_err(MappingError::Function)?;
        let Some(kept) = kept(&outcome, messages) else {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            counts.kept.fetch_add(delivered, Ordering::Relaxed);
            return Ok(());
        };
        for message in messages {
            if kept.contains(message.id.as_str()) {
                counts.kept.fetch_add(1, Ordering::Relaxed);
            } else {
                counts.deleted.fetch_add(1, Ordering::Relaxed);
                self.delete(&message.receipt_handle)?;
            }
        }
        Ok(())
    }

    /// A handle whose time ran out deletes nothing, and the message comes again: as at SQS.
    fn delete(&self, handle: &ReceiptHandle) -> Result<(), SqsError> {
        match self.queues.delete_one(self.queue, handle) {
            Err(SqsError::QueueDoesNotExist) => Err(SqsError::QueueDoesNotExist),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The messages that stay in the queue; `None` if all of them do because there is no usable answer.
fn kept(outcome: &InvocationOutcome, messages: &[Message]) -> Option<BTreeSet<String>> {
    let InvocationOutcome::Response(answer) = outcome else { return None };
    let ids = messages.iter().map(|message| message.id.to_string()).collect();
    match answer::read(answer, &ids) {
        Reading::Success => Some(BTreeSet::new()),
        Reading::Partial(kept) => Some(kept),
        Reading::Failure(_) => None,
    }
}

/// The event that Lambda makes of a batch.
fn event(queue_arn: &str, messages: &[Message]) -> Value {
    let region = queue_arn.split(':').nth(3).unwrap_or_default();
    let records = messages.iter().map(|message| {
        json!({
            "messageId": message.id.as_str(),
            "receiptHandle": message.receipt_handle.as_str(),
            "body": message.body,
            "attributes": message.system,
            "messageAttributes": attributes(message),
            "md5OfBody": format!("{:x}", md5::compute(&message.body)),
            "eventSource": "aws:sqs",
            "eventSourceARN": queue_arn,
            "awsRegion": region,
        })
    });
    json!({ "Records": records.collect::<Vec<_>>() })
}

fn attributes(message: &Message) -> BTreeMap<&str, Value> {
    let value = |attribute: &crate::record::TextAttribute| json!({ "stringValue": attribute.value, "dataType": attribute.data_type });
    message.attributes.iter().map(|attribute| (attribute.name.as_str(), value(attribute))).collect()
}

#[cfg(test)]
mod tests;
