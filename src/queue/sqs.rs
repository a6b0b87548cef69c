//! The queue in Amazon SQS.
//!
//! A batch call names its entries by their place ("0" to "9"): message identifiers and receipt handles are not
//! unique inside a batch, and SQS refuses a batch whose entry ids repeat.

mod admin;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use aws_sdk_sqs::{
    Client,
    config::{retry::RetryConfig, timeout::TimeoutConfig},
    error::{BuildError, ProvideErrorMetadata, SdkError},
    types::{
        BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
        Message as SqsMessage, MessageAttributeValue, MessageSystemAttributeName,
        SendMessageBatchRequestEntry,
    },
};

pub use self::admin::{MoveTask, QueueFacts};
use super::{EntryError, EntryResult, Message, Outgoing, Queue, QueueError, Receive, VisibilityChange};
use crate::record::{MessageId, ReceiptHandle, TextAttribute};

/// A client that is made when it is first used.
type LazyClient = Arc<LazyLock<Client, Box<dyn FnOnce() -> Client + Send>>>;

/// A [`Queue`] over SQS clients. Cheap to clone.
#[derive(Clone)]
pub struct SqsQueue {
    client: LazyClient,
    /// A client of its own keeps long polls from holding the connections that acknowledgements need.
    receiver: LazyClient,
}

impl fmt::Debug for SqsQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqsQueue")
    }
}

impl SqsQueue {
    /// One client for all calls: enough where nothing is received in a loop.
    pub fn new(client: Client) -> Self {
        Self::made_by(|| client)
    }

    /// The same with a client that is made by `make` when the queue is first used.
    pub fn made_by(make: impl FnOnce() -> Client + Send + 'static) -> Self {
        let client: LazyClient = Arc::new(LazyLock::new(Box::new(make)));
        Self { receiver: Arc::clone(&client), client }
    }

    /// Retries and timeouts that fit inside an invocation.
    pub fn configure(config: aws_sdk_sqs::config::Builder) -> aws_sdk_sqs::config::Builder {
        config
            .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(50)))
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(Duration::from_secs(2))
                    .operation_timeout(Duration::from_secs(5))
                    .build(),
            )
    }

    /// Settings of a client that only receives: time for a long poll, and no retries, because whoever receives in a
    /// loop waits between failures by itself.
    pub fn configure_receiver(config: aws_sdk_sqs::config::Builder) -> aws_sdk_sqs::config::Builder {
        config.retry_config(RetryConfig::disabled()).timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(Duration::from_secs(3))
                .read_timeout(Duration::from_secs(30))
                .operation_timeout(Duration::from_secs(30))
                .build(),
        )
    }

    /// The same queue with a separate client for `ReceiveMessage`, whose timeouts must exceed the wait.
    #[must_use]
    pub fn receiving_over(self, receiver: Client) -> Self {
        Self { receiver: Self::new(receiver).client, ..self }
    }
}

impl Queue for SqsQueue {
    async fn receive(&self, url: &str, receive: Receive) -> Result<Vec<Message>, QueueError> {
        let call = self
            .receiver
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(receive.max_messages.into())
            .wait_time_seconds(whole_seconds(receive.wait))
            .set_visibility_timeout(receive.visibility.map(whole_seconds))
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All");
        let answer = Box::pin(call.send()).await.map_err(|error| failed("ReceiveMessage", url, error))?;
        Ok(answer.messages.unwrap_or_default().into_iter().filter_map(message).collect())
    }

    async fn delete(&self, url: &str, handles: &[ReceiptHandle]) -> Result<Vec<EntryResult>, QueueError> {
        const OPERATION: &str = "DeleteMessageBatch";
        let entries = entries(OPERATION, url, handles, |id, handle| {
            DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(handle.as_str()).build()
        })?;
        let call = self.client.delete_message_batch().queue_url(url).set_entries(Some(entries));
        let answer = Box::pin(call.send()).await.map_err(|error| failed(OPERATION, url, error))?;
        let done = answer.successful.into_iter().map(|entry| (entry.id, ()));
        Ok(in_order(handles.len(), done, answer.failed))
    }

    async fn change_visibility(
        &self,
        url: &str,
        changes: &[VisibilityChange],
    ) -> Result<Vec<EntryResult>, QueueError> {
        const OPERATION: &str = "ChangeMessageVisibilityBatch";
        let entries = entries(OPERATION, url, changes, |id, change| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(id)
                .receipt_handle(change.receipt_handle.as_str())
                .visibility_timeout(i32::try_from(change.seconds).unwrap_or(i32::MAX))
                .build()
        })?;
        let call = self.client.change_message_visibility_batch().queue_url(url).set_entries(Some(entries));
        let answer = Box::pin(call.send()).await.map_err(|error| failed(OPERATION, url, error))?;
        let done = answer.successful.into_iter().map(|entry| (entry.id, ()));
        Ok(in_order(changes.len(), done, answer.failed))
    }

    async fn send(
        &self,
        url: &str,
        messages: &[Outgoing],
    ) -> Result<Vec<EntryResult<MessageId>>, QueueError> {
        const OPERATION: &str = "SendMessageBatch";
        let entries = entries(OPERATION, url, messages, outgoing)?;
        let call = self.client.send_message_batch().queue_url(url).set_entries(Some(entries));
        let answer = Box::pin(call.send()).await.map_err(|error| failed(OPERATION, url, error))?;
        let done = answer
            .successful
            .into_iter()
            .filter_map(|entry| Some((entry.id, MessageId::new(entry.message_id)?)));
        Ok(in_order(messages.len(), done, answer.failed))
    }
}

/// Builds the entries of a batch call, each named by its place.
fn entries<T, E>(
    operation: &'static str,
    url: &str,
    items: &[T],
    build: impl Fn(String, &T) -> Result<E, BuildError>,
) -> Result<Vec<E>, QueueError> {
    items
        .iter()
        .enumerate()
        .map(|(place, item)| build(place.to_string(), item))
        .collect::<Result<_, _>>()
        .map_err(|error| QueueError { operation, queue: url.to_owned(), code: None, source: error.into() })
}

fn outgoing(id: String, message: &Outgoing) -> Result<SendMessageBatchRequestEntry, BuildError> {
    let mut attributes = HashMap::new();
    for attribute in &message.attributes {
        let value = MessageAttributeValue::builder()
            .data_type(&attribute.data_type)
            .string_value(&attribute.value)
            .build()?;
        attributes.insert(attribute.name.clone(), value);
    }
    SendMessageBatchRequestEntry::builder()
        .id(id)
        .message_body(&message.body)
        .set_message_attributes((!attributes.is_empty()).then_some(attributes))
        .set_message_group_id(message.group.as_ref().map(|group| group.as_str().to_owned()))
        .set_message_deduplication_id(message.deduplication_id.clone())
        // FIFO queues refuse the parameter itself, whatever its value.
        .set_delay_seconds((!message.delay.is_zero()).then(|| whole_seconds(message.delay)))
        .build()
}

/// A received message, or `None` if it could be neither named nor deleted.
fn message(message: SqsMessage) -> Option<Message> {
    let id = message.message_id.and_then(MessageId::new);
    let receipt_handle = message.receipt_handle.and_then(ReceiptHandle::new);
    let (Some(id), Some(receipt_handle)) = (id, receipt_handle) else {
        tracing::warn!("received a message without identifier or receipt handle; it will reappear");
        return None;
    };
    let system = message.attributes.unwrap_or_default();
    let attributes = message.message_attributes.unwrap_or_default();
    Some(Message {
        id,
        receipt_handle,
        body: message.body.unwrap_or_default(),
        system: system.into_iter().map(|(name, value)| (name.as_str().to_owned(), value)).collect(),
        attributes: attributes.into_iter().filter_map(text_attribute).collect(),
    })
}

/// The attribute, or `None` if it is binary.
fn text_attribute((name, value): (String, MessageAttributeValue)) -> Option<TextAttribute> {
    Some(TextAttribute { name, data_type: value.data_type, value: value.string_value? })
}

/// One result for each of `count` entries, in their order. An entry that the answer does not mention failed:
/// nothing says that it was done.
fn in_order<T>(
    count: usize,
    successful: impl Iterator<Item = (String, T)>,
    failed: Vec<BatchResultErrorEntry>,
) -> Vec<EntryResult<T>> {
    let failed = failed.into_iter().map(|entry| {
        let error = EntryError { code: entry.code, message: entry.message.unwrap_or_default() };
        (entry.id, Err(error))
    });
    let mut by_id: HashMap<_, _> = successful.map(|(id, done)| (id, Ok(done))).chain(failed).collect();
    (0..count)
        .map(|place| {
            by_id.remove(&place.to_string()).unwrap_or_else(|| {
                let message = "the answer does not mention this entry".to_owned();
                Err(EntryError { code: "NotAnswered".to_owned(), message })
            })
        })
        .collect()
}

fn failed<E, R>(operation: &'static str, queue: &str, error: SdkError<E, R>) -> QueueError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: fmt::Debug + Send + Sync + 'static,
{
    let code = error.code().map(api_name);
    QueueError { operation, queue: queue.to_owned(), code, source: Box::new(error) }
}

/// The error's name in the API. The client reports the name of the older query protocol, which SQS sends along.
fn api_name(code: &str) -> String {
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    match code {
        "NonExistentQueue" => "QueueDoesNotExist",
        "QueueAlreadyExists" => "QueueNameExists",
        other => other,
    }
    .to_owned()
}

/// SQS counts in whole seconds; a part of a second counts as one, so nothing reappears early.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_follow_the_order_of_the_entries_and_silence_is_failure() {
        let refused = |id: &str| {
            let entry =
                BatchResultErrorEntry::builder().id(id).sender_fault(true).code("ReceiptHandleIsInvalid");
            entry.message("no").build().unwrap()
        };
        let done = [("2".to_owned(), 'c'), ("0".to_owned(), 'a'), ("7".to_owned(), 'x')];
        let results = in_order(4, done.into_iter(), vec![refused("3")]);
        assert_eq!(results[0], Ok('a'));
        assert_eq!(results[1].as_ref().unwrap_err().code, "NotAnswered");
        assert_eq!(results[2], Ok('c'));
        assert_eq!(results[3].as_ref().unwrap_err().code, "ReceiptHandleIsInvalid");
        assert_eq!(results.len(), 4);
    }

    #[test]
    fn an_entry_both_done_and_failed_failed() {
        let failed = BatchResultErrorEntry::builder().id("0").sender_fault(true).code("E").build().unwrap();
        assert!(in_order(1, std::iter::once(("0".to_owned(), ())), vec![failed])[0].is_err());
    }

    #[test]
    fn errors_go_by_their_name_in_the_api() {
        for (code, name) in [
            ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"),
            ("AWS.SimpleQueueService.EmptyBatchRequest", "EmptyBatchRequest"),
            ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
        ] {
            assert_eq!(api_name(code), name);
        }
    }

    #[test]
    fn seconds_are_rounded_up() {
        let seconds = [0, 1, 999, 1000, 1001].map(|ms| whole_seconds(Duration::from_millis(ms)));
        assert_eq!(seconds, [0, 1, 1, 1, 2]);
        assert_eq!(whole_seconds(Duration::MAX), i32::MAX);
    }

    #[test]
    fn a_message_without_handle_or_name_is_left_to_reappear() {
        assert_eq!(message(SqsMessage::builder().message_id("m").body("{}").build()), None);
        assert_eq!(message(SqsMessage::builder().message_id("").receipt_handle("h").build()), None);
        assert!(message(SqsMessage::builder().message_id("m").receipt_handle("h").build()).is_some());
    }
}
