//! What identifies and describes one delivery of one SQS message.

use std::{fmt, sync::Arc};

use crate::clock::Timestamp;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The identifier, or `None` for an empty text, which names nothing.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                (!text.is_empty()).then_some(Self(text))
            }

            /// The identifier as SQS wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// Names a message; the only thing `batchItemFailures` may contain. Never empty: an empty identifier makes
    /// Lambda treat the whole batch as failed.
    MessageId
);
text_id!(
    /// The right to delete or hide one delivery. A new one comes with every receive.
    ReceiptHandle
);
text_id!(
    /// The group inside which a FIFO queue keeps order. Standard queues carry it too (fair queues), so it never
    /// tells that a queue is FIFO.
    MessageGroupId
);

/// The queue a record came from, read from its ARN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueArn {
    partition: String,
    region: String,
    account: String,
    name: String,
}

impl QueueArn {
    /// Reads `arn:PARTITION:sqs:REGION:ACCOUNT:NAME`; `None` for anything else.
    pub fn parse(arn: &str) -> Option<Self> {
        let mut parts = arn.splitn(6, ':');
        let ("arn", partition, "sqs") = (parts.next()?, parts.next()?, parts.next()?) else { return None };
        let (region, account, name) = (parts.next()?, parts.next()?, parts.next()?);
        // They become part of an address and of a metric: what AWS would never write there is no ARN.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let usable = |part: &str| !part.is_empty() && part.bytes().all(plain);
        let complete = [partition, region, account, name].into_iter().all(usable);
        complete.then(|| Self {
            partition: partition.into(),
            region: region.into(),
            account: account.into(),
            name: name.into(),
        })
    }

    /// The queue behind a URL such as `https://sqs.eu-west-1.amazonaws.com/111122223333/orders`; `None` if the URL
    /// does not end in an account and a name. A host that names no Region, as emulators have, is kept in its place.
    pub fn of_url(url: &str) -> Option<Self> {
        let (_scheme, rest) = url.split_once("://")?;
        let (host, path) = rest.split_once('/')?;
        let host = host.split(':').next()?;
        let region = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next()).unwrap_or(host);
        let (account, name) = path.rsplit_once('/')?;
        let account = account.rsplit('/').next()?;
        Self::parse(&format!("arn:aws:sqs:{region}:{account}:{name}"))
    }

    /// Whether the URL is that of this queue. Regions are not compared: emulators have none in their URLs.
    pub fn is_at(&self, url: &str) -> bool {
        Self::of_url(url).is_some_and(|other| other.account == self.account && other.name == self.name)
    }

    /// The queue's name, the value of the `queue` metric dimension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the queue is FIFO: SQS requires the suffix `.fifo` of every FIFO queue and of no other.
    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    /// The queue's URL, or `None` in a partition whose domain is not known here: set `QUEUE_URL` there.
    pub fn url(&self) -> Option<String> {
        let domain = match self.partition.as_str() {
            "aws" | "aws-us-gov" => "amazonaws.com",
            "aws-cn" => "amazonaws.com.cn",
            "aws-eusc" => "amazonaws.eu",
            _ => return None,
        };
        Some(format!("https://sqs.{}.{domain}/{}/{}", self.region, self.account, self.name))
    }
}

/// One delivery of a message, as far as it could be read.
#[derive(Clone, Debug)]
pub struct Record {
    /// Place in the batch, from 0: the only name of a record without an identifier.
    pub position: usize,
    /// `None` if absent, null or empty: such a record cannot be reported.
    pub message_id: Option<MessageId>,
    /// `None` if absent: such a record's visibility cannot be changed.
    pub receipt_handle: Option<ReceiptHandle>,
    /// The queue, shared by the records that came from it; `None` if the ARN is absent or unreadable.
    pub queue: Option<Arc<QueueArn>>,
    /// The message group, on FIFO and fair queues.
    pub group: Option<MessageGroupId>,
    /// The deduplication id, kept when a message is moved to the dead-letter queue.
    pub deduplication_id: Option<String>,
    /// How often SQS has handed the message out, at least 1.
    pub receive_count: u32,
    /// When the producer's message reached SQS.
    pub sent_at: Option<Timestamp>,
    /// When the message was first handed out.
    pub first_received_at: Option<Timestamp>,
    /// The X-Ray header of the sender.
    pub trace_header: Option<String>,
    /// Message attributes of type String or Number, kept when a message is moved to the dead-letter queue.
    pub attributes: Vec<TextAttribute>,
    /// The message body, or why there is none. A batch empties it once its order is read, unless it may have to be
    /// sent on.
    pub body: Result<String, RecordError>,
}

/// A message attribute that holds text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextAttribute {
    /// The attribute's name.
    pub name: String,
    /// `String` or `Number`, with an optional custom label behind a dot.
    pub data_type: String,
    /// The value as text.
    pub value: String,
}

impl TextAttribute {
    /// An attribute of the type `String`.
    pub fn string(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), data_type: "String".to_owned(), value: value.into() }
    }
}

/// The attribute in which a copy in the dead-letter queue says why its message was given up.
pub const REASON: &str = "reason";
/// The attribute in which a copy carries the first name of its message.
pub const ORIGINAL_MESSAGE_ID: &str = "original_message_id";
/// The attribute in which a copy of a message says when the message itself reached SQS, in epoch milliseconds.
pub const ORIGINAL_SENT_AT: &str = "original_sent_at";

impl Record {
    /// A record of which nothing can be read.
    pub(crate) fn unusable(position: usize) -> Self {
        Self {
            position,
            message_id: None,
            receipt_handle: None,
            queue: None,
            group: None,
            deduplication_id: None,
            receive_count: 1,
            sent_at: None,
            first_received_at: None,
            trace_header: None,
            attributes: Vec::new(),
            body: Err(RecordError::NotAnObject),
        }
    }

    /// When the producer's message reached SQS: a copy of it, as a redrive sends one, is no younger than the message.
    pub fn first_sent_at(&self) -> Option<Timestamp> {
        let named = self.attributes.iter().find(|attribute| attribute.name == ORIGINAL_SENT_AT);
        let original = named.and_then(|attribute| attribute.value.parse().ok()).map(Timestamp::from_millis);
        [self.sent_at, original].into_iter().flatten().min()
    }

    /// Whether the record came from a FIFO queue.
    pub fn is_fifo(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_fifo())
    }
}

/// Why a record cannot be used at all. It fails that record, never its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record is a number, a list or the like.
    #[error("the record is not a JSON object")]
    NotAnObject,
    /// The record has no `body`, or it is null.
    #[error("the record has no body")]
    BodyMissing,
    /// The `body` is JSON but not a string; SQS only sends text.
    #[error("the record's body is not a string")]
    BodyNotText,
}

impl RecordError {
    /// The reason in logs and on dead-lettered messages.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotAnObject => "RECORD_NOT_AN_OBJECT",
            Self::BodyMissing => "BODY_MISSING",
            Self::BodyNotText => "BODY_NOT_TEXT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_identifier_names_nothing() {
        assert_eq!(MessageId::new(""), None);
        assert_eq!(MessageId::new("m-1").unwrap().as_str(), "m-1");
    }

    #[test]
    fn the_queue_url_follows_the_partition() {
        let url = |arn| QueueArn::parse(arn).unwrap().url();
        let cases = [
            (
                "arn:aws:sqs:eu-west-1:111122223333:orders",
                "https://sqs.eu-west-1.amazonaws.com/111122223333/orders",
            ),
            ("arn:aws-cn:sqs:cn-north-1:1:q", "https://sqs.cn-north-1.amazonaws.com.cn/1/q"),
            ("arn:aws-us-gov:sqs:us-gov-west-1:1:q", "https://sqs.us-gov-west-1.amazonaws.com/1/q"),
            ("arn:aws-eusc:sqs:eusc-de-east-1:1:q.fifo", "https://sqs.eusc-de-east-1.amazonaws.eu/1/q.fifo"),
        ];
        for (arn, expected) in cases {
            assert_eq!(url(arn).as_deref(), Some(expected));
        }
        assert_eq!(url("arn:aws-unknown:sqs:r:1:q"), None);
    }

    #[test]
    fn a_queue_is_known_by_its_url() {
        let queue = |url| QueueArn::of_url(url).map(|queue| (queue.name().to_owned(), queue.is_fifo()));
        let cases = [
            (
                "https://sqs.eu-west-1.amazonaws.com/111122223333/orders.fifo",
                Some(("orders.fifo".to_owned(), true)),
            ),
            ("http://127.0.0.1:9324/000000000000/orders", Some(("orders".to_owned(), false))),
            ("https://sqs.eu-west-1.amazonaws.com/orders", None),
            ("orders", None),
        ];
        for (url, expected) in cases {
            assert_eq!(queue(url), expected, "{url}");
        }
        let orders = QueueArn::parse("arn:aws-cn:sqs:cn-north-1:111122223333:orders").unwrap();
        assert!(orders.is_at("https://sqs.cn-north-1.amazonaws.com.cn/111122223333/orders"));
        for other in ["111122223333/orders-dlq", "444455556666/orders"] {
            assert!(!orders.is_at(&format!("https://sqs.cn-north-1.amazonaws.com.cn/{other}")), "{other}");
        }
    }

    #[test]
    fn only_complete_sqs_arns_are_read() {
        let elsewhere = ["arn:aws:sqs:evil.example/#:1:q", "arn:aws:sqs:r:1:q/../x", "arn:aws:sqs:r:1:q\n"];
        let incomplete =
            ["", "arn:aws:sns:r:1:t", "arn:aws:sqs:r:1", "arn:aws:sqs:r:1:", "arn:aws:sqs:r:1:a:b"];
        for arn in incomplete.into_iter().chain(elsewhere) {
            assert_eq!(QueueArn::parse(arn), None, "{arn}");
        }
        assert!(QueueArn::parse("arn:aws:sqs:r:1:q.fifo").unwrap().is_fifo());
        assert!(!QueueArn::parse("arn:aws:sqs:r:1:fifo").unwrap().is_fifo());
    }
}
