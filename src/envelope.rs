//! The order's text inside a message body: plain, wrapped by SNS or EventBridge, or left in S3. Recognised by shape
//! alone.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The class names that the SQS extended client writes in front of its pointer (the second is the older one).
const S3_POINTERS: [&str; 2] =
    ["software.amazon.payloadoffloading.PayloadS3Pointer", "com.amazon.sqs.javamessaging.MessageS3Pointer"];

/// S3's longest key, in bytes.
const LONGEST_KEY: usize = 1024;

/// What a body turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Envelope<'a> {
    /// The text that should hold the order.
    Order(Cow<'a, str>),
    /// A pointer to an object in S3.
    S3Pointer(S3Pointer),
}

/// Where the extended client put the body.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3Pointer {
    /// The bucket.
    pub s3_bucket_name: String,
    /// The object.
    pub s3_key: String,
}

/// Why no order can be in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Amazon S3 sends this once when notifications are configured.
    #[error(
        "the body is an Amazon S3 test event, not an order; take the orders queue out of the bucket's notifications"
    )]
    S3TestEvent,
    /// Amazon SNS sends these when a subscription is made or ended.
    #[error("the body is an Amazon SNS subscription message, not an order")]
    SnsSubscription,
    /// An S3, SES or DynamoDB notification: an object with a `Records` list.
    #[error("the body is an AWS event with `Records`, not an order")]
    AwsRecords,
    /// The body is a pointer of the extended client but cannot be read.
    #[error("the body is an S3 pointer of the SQS extended client that cannot be read")]
    S3PointerMalformed,
    /// The bucket is not one that may be read.
    #[error("the body points into an S3 bucket that PAYLOAD_BUCKETS does not name")]
    S3PointerNotAllowed,
}

impl EnvelopeError {
    /// The reason in logs and on dead-lettered messages.
    pub fn code(self) -> &'static str {
        match self {
            Self::S3TestEvent => "S3_TEST_EVENT",
            Self::SnsSubscription => "SNS_SUBSCRIPTION",
            Self::AwsRecords => "AWS_EVENT_RECORDS",
            Self::S3PointerMalformed => "S3_POINTER_MALFORMED",
            Self::S3PointerNotAllowed => "S3_POINTER_NOT_ALLOWED",
        }
    }
}

/// The members that tell envelopes apart. Everything else is skipped.
#[derive(Default, Deserialize)]
struct Shape<'a> {
    #[serde(borrow, rename = "Type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, rename = "TopicArn")]
    topic_arn: Option<&'a RawValue>,
    #[serde(borrow, rename = "Message")]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "detail-type")]
    detail_type: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
    #[serde(borrow, rename = "Event")]
    event: Option<&'a RawValue>,
    #[serde(borrow, rename = "Records")]
    records: Option<&'a RawValue>,
    #[serde(borrow)]
    order_id: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Takes the envelope off. A body of no known shape is taken for the order itself, and judged there.
    ///
    /// # Errors
    /// The body is known to be something else than an order.
    pub fn open(body: &'a str) -> Result<Self, EnvelopeError> {
        let json = body.strip_prefix('\u{feff}').unwrap_or(body).trim_start();
        if json.starts_with('[') {
            return Self::open_list(body, json);
        }
        // A body that cannot be read as an object, or that says a member twice, is the order parser's to refuse.
        let shape: Shape<'a> = match json.starts_with('{') {
            true => serde_json::from_str(json).unwrap_or_default(),
            false => Shape::default(),
        };
        if shape.order_id.is_some() {
            return Ok(Self::Order(Cow::Borrowed(body)));
        }
        match shape {
            Shape { kind: Some(kind), topic_arn: Some(_), message: Some(message), .. }
                if text(kind).as_deref() == Some("Notification") && text(message).is_some() =>
            {
                Self::open_message(text(message).unwrap_or_default())
            }
            Shape { kind: Some(kind), topic_arn: Some(_), .. }
                if text(kind).is_some_and(|kind| {
                    kind.ends_with("subscribeConfirmation") || kind.ends_with("SubscriptionConfirmation")
                }) =>
            {
                Err(EnvelopeError::SnsSubscription)
            }
            Shape { detail_type: Some(_), source: Some(_), detail: Some(detail), .. } => {
                Ok(Self::Order(Cow::Borrowed(detail.get())))
            }
            Shape { event: Some(event), .. } if text(event).as_deref() == Some("s3:TestEvent") => {
                Err(EnvelopeError::S3TestEvent)
            }
            Shape { records: Some(records), .. } if records.get().starts_with('[') => {
                Err(EnvelopeError::AwsRecords)
            }
            _ => Ok(Self::Order(Cow::Borrowed(body))),
        }
    }

    fn open_list(body: &'a str, json: &'a str) -> Result<Self, EnvelopeError> {
        Ok(pointer(json)?.map_or(Self::Order(Cow::Borrowed(body)), Self::S3Pointer))
    }

    /// What SNS carries: the order, or a pointer, because SNS has an extended client too.
    fn open_message(message: Cow<'a, str>) -> Result<Self, EnvelopeError> {
        Ok(pointer(&message)?.map_or(Self::Order(message), Self::S3Pointer))
    }
}

/// The pointer, or `None` if the text is something else than one of the extended client.
fn pointer(json: &str) -> Result<Option<S3Pointer>, EnvelopeError> {
    let json = json.trim_start();
    let named = json.strip_prefix('[').is_some_and(|list| {
        S3_POINTERS.iter().any(|class| list.trim_start().starts_with(&format!("\"{class}\"")))
    });
    if !named {
        return Ok(None);
    }
    let (_class, pointer): (&str, S3Pointer) =
        serde_json::from_str(json).map_err(|_unreadable| EnvelopeError::S3PointerMalformed)?;
    let usable = !pointer.s3_bucket_name.is_empty() && (1..=LONGEST_KEY).contains(&pointer.s3_key.len());
    if usable { Ok(Some(pointer)) } else { Err(EnvelopeError::S3PointerMalformed) }
}

fn text<'a>(raw: &'a RawValue) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'a>>(raw.get()).ok().map(|text| text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"order_id":"o-1"}"#;

    fn order(text: &str) -> Result<Envelope<'_>, EnvelopeError> {
        Ok(Envelope::Order(Cow::Borrowed(text)))
    }

    #[test]
    fn a_plain_body_is_the_order_itself() {
        for body in [ORDER, "", "not json", "[1]", "null", r#"{"Type":"Notification"}"#, "\u{feff}{}"] {
            assert_eq!(Envelope::open(body), order(body), "{body}");
        }
        let confusing = r#"{"order_id":"o-1","Type":"Notification","TopicArn":"t","Message":"x"}"#;
        assert_eq!(Envelope::open(confusing), order(confusing), "an order may carry any other member");
    }

    #[test]
    fn sns_with_and_without_signature_is_opened() {
        for signature in ["", r#","Signature":"c2ln","SignatureVersion":"1""#] {
            let body = format!(
                r#"{{"Type":"Notification","TopicArn":"arn:aws:sns:r:1:t","Message":"{{\"order_id\":\"o-1\"}}"{signature}}}"#
            );
            assert_eq!(Envelope::open(&body), order(ORDER));
        }
    }

    #[test]
    fn eventbridge_is_opened() {
        let body =
            format!(r#"{{"version":"0","detail-type":"OrderPlaced","source":"shop","detail":{ORDER}}}"#);
        assert_eq!(Envelope::open(&body), order(ORDER));
    }

    #[test]
    fn s3_pointers_are_recognised_in_both_spellings() {
        for class in S3_POINTERS {
            let body = format!(r#"[ "{class}", {{"s3BucketName":"b","s3Key":"k"}} ]"#);
            let pointer = S3Pointer { s3_bucket_name: "b".into(), s3_key: "k".into() };
            assert_eq!(Envelope::open(&body), Ok(Envelope::S3Pointer(pointer)));
            let long = "k".repeat(LONGEST_KEY + 1);
            for fields in [
                r#""s3BucketName":"b""#.to_owned(),
                r#""s3BucketName":"","s3Key":"k""#.to_owned(),
                r#""s3BucketName":"b","s3Key":"""#.to_owned(),
                format!(r#""s3BucketName":"b","s3Key":"{long}""#),
            ] {
                let broken = format!(r#"["{class}",{{{fields}}}]"#);
                assert_eq!(Envelope::open(&broken), Err(EnvelopeError::S3PointerMalformed));
            }
        }
    }

    #[test]
    fn sns_may_carry_a_pointer() {
        let message = |text: &str| {
            let text = serde_json::to_string(text).unwrap();
            format!(r#"{{"Type":"Notification","TopicArn":"arn:aws:sns:r:1:t","Message":{text}}}"#)
        };
        let body = message(&format!(r#"["{}",{{"s3BucketName":"b","s3Key":"k"}}]"#, S3_POINTERS[0]));
        let pointer = S3Pointer { s3_bucket_name: "b".into(), s3_key: "k".into() };
        assert_eq!(Envelope::open(&body), Ok(Envelope::S3Pointer(pointer)));
        let broken = message(&format!(r#"["{}"]"#, S3_POINTERS[0]));
        assert_eq!(Envelope::open(&broken), Err(EnvelopeError::S3PointerMalformed));
    }

    #[test]
    fn other_aws_events_are_named() {
        let test_event = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}"#;
        assert_eq!(Envelope::open(test_event), Err(EnvelopeError::S3TestEvent));
        assert_eq!(Envelope::open(r#"{"Records":[]}"#), Err(EnvelopeError::AwsRecords));
        for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
            let body = format!(r#"{{"Type":"{kind}","TopicArn":"t","Message":"m"}}"#);
            assert_eq!(Envelope::open(&body), Err(EnvelopeError::SnsSubscription));
        }
    }
}
