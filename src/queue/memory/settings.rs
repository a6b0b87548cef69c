//! A queue's settings, and the attributes they are written as in SQS's API.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{error::SqsError, limits::MAX_BYTES};

/// Encryption, access and throughput: nothing here depends on them.
const KEPT: [&str; 6] = [
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "Policy",
    "RedriveAllowPolicy",
    "SqsManagedSseEnabled",
];

/// The settings of a queue. The defaults are those of SQS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long a received message stays hidden, 0 to 12 h.
    pub visibility: Duration,
    /// How long a new message stays hidden, 0 to 15 min.
    pub delay: Duration,
    /// How long a message is kept, 60 s to 14 days.
    pub retention: Duration,
    /// How long a receive waits if it does not say, 0 to 20 s.
    pub wait: Duration,
    /// The most bytes of a message, 1,024 to 1 MiB.
    pub maximum_message_size: usize,
    /// Where messages go that were received too often.
    pub redrive: Option<RedrivePolicy>,
    /// Set on FIFO queues.
    pub fifo: Option<FifoSettings>,
    /// Attributes that are kept and answered and change nothing, such as `SqsManagedSseEnabled`.
    pub kept: BTreeMap<String, String>,
}

/// Where messages go that were received too often. They go on the receive after the last allowed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedrivePolicy {
    /// The dead-letter queue's ARN. It must be of the same type.
    pub dead_letter_queue: String,
    /// How often a message may be received, 1 to 1000.
    pub max_receive_count: u32,
}

/// What only FIFO queues have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoSettings {
    /// Whether the body's SHA-256 stands in for a missing deduplication id.
    pub content_based_deduplication: bool,
    /// Whether deduplication looks at one group only, not at the whole queue.
    pub deduplicate_per_group: bool,
}

impl QueueSettings {
    /// A standard queue.
    pub fn standard() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            delay: Duration::ZERO,
            retention: Duration::from_secs(345_600),
            wait: Duration::ZERO,
            maximum_message_size: MAX_BYTES,
            redrive: None,
            fifo: None,
            kept: BTreeMap::new(),
        }
    }

    /// A FIFO queue, without content-based deduplication.
    pub fn fifo() -> Self {
        Self { fifo: Some(FifoSettings::default()), ..Self::standard() }
    }

    /// The settings that `CreateQueue` attributes ask for.
    ///
    /// # Errors
    /// An attribute is unknown or its value out of range.
    pub fn from_attributes(attributes: &BTreeMap<String, String>) -> Result<Self, SqsError> {
        let mut settings = match attributes.get("FifoQueue").map(String::as_str) {
            None => Self::standard(),
            Some("true") => Self::fifo(),
            Some(_) => return Err(SqsError::InvalidAttributeValue("FifoQueue".to_owned())),
        };
        let rest: BTreeMap<_, _> = attributes.iter().filter(|(name, _)| *name != "FifoQueue").collect();
        for (name, value) in rest {
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    /// Changes one setting by the name of its attribute.
    ///
    /// # Errors
    /// The attribute is unknown, cannot be changed or its value is out of range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqsError> {
        let bad = || SqsError::InvalidAttributeValue(name.to_owned());
        let number = |low: u64, high: u64| {
            value.parse().ok().filter(|number| (low..=high).contains(number)).ok_or_else(bad)
        };
        let seconds = |low, high| number(low, high).map(Duration::from_secs);
        match (name, &mut self.fifo) {
            ("VisibilityTimeout", _) => self.visibility = seconds(0, 43_200)?,
            ("DelaySeconds", _) => self.delay = seconds(0, 900)?,
            ("MessageRetentionPeriod", _) => self.retention = seconds(60, 1_209_600)?,
            ("ReceiveMessageWaitTimeSeconds", _) => self.wait = seconds(0, 20)?,
            ("MaximumMessageSize", _) => {
                self.maximum_message_size = usize::try_from(number(1024, 1_048_576)?).map_err(|_| bad())?;
            }
            ("RedrivePolicy", _) => self.redrive = redrive_policy(value).ok_or_else(bad)?,
            ("ContentBasedDeduplication", Some(fifo)) => {
                fifo.content_based_deduplication = value.parse().map_err(|_| bad())?;
            }
            ("DeduplicationScope", Some(fifo)) => {
                fifo.deduplicate_per_group = match value {
                    "messageGroup" => true,
                    "queue" => false,
                    _ => return Err(bad()),
                };
            }
            (kept, _) if KEPT.contains(&kept) => {
                self.kept.insert(name.to_owned(), value.to_owned());
            }
            _ => return Err(SqsError::InvalidAttributeName(name.to_owned())),
        }
        Ok(())
    }

    /// The settings as `GetQueueAttributes` answers them.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let mut all = self.kept.clone();
        let mut put = |name: &str, value: String| all.insert(name.to_owned(), value);
        put("VisibilityTimeout", self.visibility.as_secs().to_string());
        put("DelaySeconds", self.delay.as_secs().to_string());
        put("MessageRetentionPeriod", self.retention.as_secs().to_string());
        put("ReceiveMessageWaitTimeSeconds", self.wait.as_secs().to_string());
        put("MaximumMessageSize", self.maximum_message_size.to_string());
        if let Some(policy) = &self.redrive {
            let json = json!({
                "deadLetterTargetArn": policy.dead_letter_queue,
                "maxReceiveCount": policy.max_receive_count,
            });
            put("RedrivePolicy", json.to_string());
        }
        if let Some(fifo) = &self.fifo {
            let scope = if fifo.deduplicate_per_group { "messageGroup" } else { "queue" };
            put("FifoQueue", "true".to_owned());
            put("ContentBasedDeduplication", fifo.content_based_deduplication.to_string());
            put("DeduplicationScope", scope.to_owned());
        }
        all
    }
}

/// The policy in an attribute's JSON, `Some(None)` for an empty text, which removes the policy.
fn redrive_policy(text: &str) -> Option<Option<RedrivePolicy>> {
    if text.is_empty() {
        return Some(None);
    }
    let policy: Value = serde_json::from_str(text).ok()?;
    let dead_letter_queue = policy.get("deadLetterTargetArn")?.as_str()?.to_owned();
    // SQS takes the number as JSON text too, and many tools write it so.
    let count = policy.get("maxReceiveCount")?;
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
    let max_receive_count = u32::try_from(count).ok().filter(|count| (1..=1000).contains(count))?;
    Some(Some(RedrivePolicy { dead_letter_queue, max_receive_count }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_survive_being_written_as_attributes() {
        let policy =
            r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":"5"}"#;
        let given = attributes(&[
            ("FifoQueue", "true"),
            ("ContentBasedDeduplication", "true"),
            ("DeduplicationScope", "messageGroup"),
            ("RedrivePolicy", policy),
            ("VisibilityTimeout", "180"),
            ("SqsManagedSseEnabled", "true"),
        ]);
        let settings = QueueSettings::from_attributes(&given).unwrap();
        assert_eq!(settings.redrive.as_ref().unwrap().max_receive_count, 5);
        assert_eq!(QueueSettings::from_attributes(&settings.attributes()).unwrap(), settings);
    }

    #[test]
    fn values_out_of_range_and_unknown_names_are_refused() {
        for (name, value) in [
            ("VisibilityTimeout", "43201"),
            ("VisibilityTimeout", "-1"),
            ("MessageRetentionPeriod", "59"),
            ("RedrivePolicy", r#"{"maxReceiveCount":5}"#),
            ("RedrivePolicy", r#"{"deadLetterTargetArn":"a","maxReceiveCount":0}"#),
            ("FifoQueue", "false"),
        ] {
            let refused = QueueSettings::from_attributes(&attributes(&[(name, value)]));
            assert_eq!(refused, Err(SqsError::InvalidAttributeValue(name.to_owned())), "{value}");
        }
        let only_on_fifo = QueueSettings::standard().set("ContentBasedDeduplication", "true");
        assert_eq!(only_on_fifo.unwrap_err().code(), "InvalidAttributeName");
    }
}
