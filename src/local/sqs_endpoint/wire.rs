//! The requests as they come over the wire, and messages as they go back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::md5;
use crate::{
    queue::{MAX_BATCH, Message, Outgoing, VisibilityChange, memory::SqsError},
    record::{MessageGroupId, ReceiptHandle, TextAttribute},
};

/// Reads the parameters of an action.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, SqsError> {
    serde_json::from_slice(body).map_err(|error| SqsError::InvalidParameterValue(error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CreateQueue {
    pub(super) queue_name: String,
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GetQueueUrl {
    pub(super) queue_name: String,
}

/// Any action that needs nothing but a queue.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct OfQueue {
    pub(super) queue_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GetQueueAttributes {
    pub(super) queue_url: String,
    #[serde(default)]
    pub(super) attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SetQueueAttributes {
    pub(super) queue_url: String,
    pub(super) attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListQueues {
    #[serde(default)]
    pub(super) queue_name_prefix: String,
    pub(super) max_results: Option<usize>,
    /// The last name of the page before.
    pub(super) next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SendMessage {
    /// Empty in the entries of a batch.
    #[serde(default)]
    pub(super) queue_url: String,
    message_body: String,
    #[serde(default)]
    delay_seconds: u64,
    #[serde(default)]
    message_attributes: BTreeMap<String, Attribute>,
    #[serde(default)]
    message_system_attributes: BTreeMap<String, Value>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    data_type: String,
    string_value: Option<String>,
}

impl SendMessage {
    /// The message to send.
    pub(super) fn into_outgoing(self) -> Result<Outgoing, SqsError> {
        if !self.message_system_attributes.is_empty() {
            let message = "message system attributes are not supported here".to_owned();
            return Err(SqsError::UnsupportedOperation(message));
        }
        let text = |(name, attribute): (String, Attribute)| {
            let message = || format!("message attribute {name} is binary, which is not supported here");
            let value = attribute.string_value.ok_or_else(|| SqsError::UnsupportedOperation(message()))?;
            Ok(TextAttribute { data_type: attribute.data_type, value, name })
        };
        Ok(Outgoing {
            body: self.message_body,
            attributes: self.message_attributes.into_iter().map(text).collect::<Result<_, SqsError>>()?,
            group: self.message_group_id.and_then(MessageGroupId::new),
            deduplication_id: self.message_deduplication_id,
            delay: std::time::Duration::from_secs(self.delay_seconds),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiveMessage {
    pub(super) queue_url: String,
    pub(super) max_number_of_messages: Option<i64>,
    pub(super) wait_time_seconds: Option<u64>,
    pub(super) visibility_timeout: Option<u64>,
    /// The older name of the next.
    #[serde(default)]
    pub(super) attribute_names: Vec<String>,
    #[serde(default)]
    pub(super) message_system_attribute_names: Vec<String>,
    #[serde(default)]
    pub(super) message_attribute_names: Vec<String>,
}

impl ReceiveMessage {
    /// A message as the answer shows it: with those attributes that were asked for.
    pub(super) fn answer(&self, message: Message) -> Value {
        let mut system = message.system;
        let names = || self.attribute_names.iter().chain(&self.message_system_attribute_names);
        system.retain(|name, _| names().any(|asked| asked == "All" || asked == name));
        let mut attributes = message.attributes;
        attributes.retain(|attribute| {
            self.message_attribute_names.iter().any(|asked| covers(asked, &attribute.name))
        });
        let mut answer = json!({
            "MessageId": message.id.as_str(),
            "ReceiptHandle": message.receipt_handle.as_str(),
            "MD5OfBody": md5::of_body(&message.body),
            "Body": message.body,
        });
        if let Some(fields) = answer.as_object_mut() {
            if !system.is_empty() {
                fields.insert("Attributes".to_owned(), json!(system));
            }
            if let Some(digest) = md5::of_attributes(&attributes) {
                fields.insert("MD5OfMessageAttributes".to_owned(), digest.into());
                let value =
                    |a: TextAttribute| (a.name, json!({"DataType": a.data_type, "StringValue": a.value}));
                fields.insert("MessageAttributes".to_owned(), attributes.into_iter().map(value).collect());
            }
        }
        answer
    }
}

/// Whether a name asked for, such as `All` or `order.*`, covers an attribute.
fn covers(asked: &str, name: &str) -> bool {
    match asked.strip_suffix(".*") {
        Some(prefix) => name.starts_with(prefix),
        None => asked == "All" || asked == name,
    }
}

/// `DeleteMessage` and its batch entries.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DeleteMessage {
    #[serde(default)]
    pub(super) queue_url: String,
    receipt_handle: String,
}

impl DeleteMessage {
    pub(super) fn handle(&self) -> Result<ReceiptHandle, SqsError> {
        ReceiptHandle::new(&self.receipt_handle).ok_or(SqsError::MissingParameter("ReceiptHandle"))
    }
}

/// `ChangeMessageVisibility` and its batch entries.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ChangeMessageVisibility {
    #[serde(default)]
    pub(super) queue_url: String,
    pub(super) receipt_handle: String,
    pub(super) visibility_timeout: u32,
}

impl ChangeMessageVisibility {
    pub(super) fn change(&self) -> Result<VisibilityChange, SqsError> {
        let receipt_handle =
            ReceiptHandle::new(&self.receipt_handle).ok_or(SqsError::MissingParameter("ReceiptHandle"))?;
        Ok(VisibilityChange { receipt_handle, seconds: self.visibility_timeout })
    }
}

/// A batch call: entries, each with a name of its own.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Batch<E> {
    pub(super) queue_url: String,
    #[serde(default = "Vec::new")]
    pub(super) entries: Vec<Entry<E>>,
}

#[derive(Deserialize)]
pub(super) struct Entry<E> {
    #[serde(rename = "Id")]
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) entry: E,
}

impl<E> Batch<E> {
    /// Refuses what SQS refuses as a whole.
    pub(super) fn check(&self) -> Result<(), SqsError> {
        match self.entries.len() {
            0 => return Err(SqsError::EmptyBatchRequest),
            1..=MAX_BATCH => {}
            count => return Err(SqsError::TooManyEntriesInBatchRequest(count)),
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let mut seen = BTreeSet::new();
        for Entry { id, .. } in &self.entries {
            if id.is_empty() || id.len() > 80 || !id.chars().all(allowed) {
                return Err(SqsError::InvalidBatchEntryId);
            }
            if !seen.insert(id) {
                return Err(SqsError::BatchEntryIdsNotDistinct(id.clone()));
            }
        }
        Ok(())
    }

    /// Turns every entry into something else under the same name.
    pub(super) fn map<T>(self, turn: impl Fn(E) -> T) -> Batch<T> {
        let entries = self.entries.into_iter();
        let entries = entries.map(|Entry { id, entry }| Entry { id, entry: turn(entry) }).collect();
        Batch { queue_url: self.queue_url, entries }
    }

    /// Does every entry on its own and answers with both lists.
    pub(super) fn each(self, mut act: impl FnMut(E) -> Result<Value, SqsError>) -> Value {
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for Entry { id, entry } in self.entries {
            match act(entry) {
                Ok(mut answer) => {
                    if let Some(fields) = answer.as_object_mut() {
                        fields.insert("Id".to_owned(), id.into());
                    }
                    successful.push(answer);
                }
                Err(error) => failed.push(json!({
                    "Id": id,
                    "Code": error.code(),
                    "Message": error.to_string(),
                    "SenderFault": true,
                })),
            }
        }
        json!({ "Successful": successful, "Failed": failed })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StartMessageMoveTask {
    pub(super) source_arn: String,
    pub(super) destination_arn: Option<String>,
    pub(super) max_number_of_messages_per_second: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListMessageMoveTasks {
    pub(super) source_arn: String,
    pub(super) max_results: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CancelMessageMoveTask {
    pub(super) task_handle: String,
}
