//! What SQS refuses, by the names of its API.

use crate::{
    queue::{EntryError, MAX_BATCH, QueueError},
    record::ReceiptHandle,
};

/// A refusal, worded as SQS words it where tools match on the words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqsError {
    /// No queue of that name.
    #[error("The specified queue does not exist.")]
    QueueDoesNotExist,
    /// A queue of that name exists with other attributes.
    #[error("A queue already exists with the same name and a different value for attribute {0}")]
    QueueNameExists(String),
    /// The text is no receipt handle of this queue.
    #[error("The input receipt handle \"{0}\" is not a valid receipt handle.")]
    ReceiptHandleIsInvalid(String),
    /// The delivery's visibility timeout has ended; the message waits to be received again.
    #[error("The message referred to isn't in flight.")]
    MessageNotInflight,
    /// Too many messages are in flight.
    #[error("The maximum number of in flight messages is reached.")]
    OverLimit,
    /// A batch without entries.
    #[error("There should be at least one entry in the request.")]
    EmptyBatchRequest,
    /// A batch of so many entries, more than 10.
    #[error("Maximum number of entries per request are {MAX_BATCH}. You have sent {0}.")]
    TooManyEntriesInBatchRequest(usize),
    /// Two entries of a batch share this id.
    #[error("Id {0} repeated.")]
    BatchEntryIdsNotDistinct(String),
    /// An entry id that is not 1 to 80 letters, digits, hyphens or underscores.
    #[error("A batch entry id can only contain alphanumeric characters, hyphens and underscores.")]
    InvalidBatchEntryId,
    /// The batch holds so many bytes, more than a message may.
    #[error("Batch requests cannot be longer than 1048576 bytes. You have sent {0} bytes.")]
    BatchRequestTooLong(usize),
    /// Characters outside the range that SQS carries.
    #[error(
        "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF."
    )]
    InvalidMessageContents,
    /// A parameter that the call needs.
    #[error("The request must contain the parameter {0}.")]
    MissingParameter(&'static str),
    /// A parameter out of range, or not allowed here.
    #[error("{0}")]
    InvalidParameterValue(String),
    /// No attribute of that name.
    #[error("Unknown Attribute {0}.")]
    InvalidAttributeName(String),
    /// A value out of range for this attribute.
    #[error("Invalid value for the parameter {0}.")]
    InvalidAttributeValue(String),
    /// No move task of that handle, or none that runs.
    #[error("{0}")]
    ResourceNotFound(&'static str),
    /// Something that SQS can do and this queue cannot.
    #[error("{0}")]
    UnsupportedOperation(String),
}

impl SqsError {
    /// The error's name in SQS's API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueueDoesNotExist => "QueueDoesNotExist",
            Self::QueueNameExists(_) => "QueueNameExists",
            Self::ReceiptHandleIsInvalid(_) => "ReceiptHandleIsInvalid",
            Self::MessageNotInflight => "MessageNotInflight",
            Self::OverLimit => "OverLimit",
            Self::EmptyBatchRequest => "EmptyBatchRequest",
            Self::TooManyEntriesInBatchRequest(_) => "TooManyEntriesInBatchRequest",
            Self::BatchEntryIdsNotDistinct(_) => "BatchEntryIdsNotDistinct",
            Self::InvalidBatchEntryId => "InvalidBatchEntryId",
            Self::BatchRequestTooLong(_) => "BatchRequestTooLong",
            Self::InvalidMessageContents => "InvalidMessageContents",
            Self::MissingParameter(_) => "MissingParameter",
            Self::InvalidParameterValue(_) => "InvalidParameterValue",
            Self::InvalidAttributeName(_) => "InvalidAttributeName",
            Self::InvalidAttributeValue(_) => "InvalidAttributeValue",
            Self::ResourceNotFound(_) => "ResourceNotFoundException",
            Self::UnsupportedOperation(_) => "UnsupportedOperation",
        }
    }

    /// FIFO queues refuse a handle whose visibility timeout has ended, and not as `ReceiptHandleIsInvalid`.
    pub(super) fn expired(handle: &ReceiptHandle) -> Self {
        let reason = "The receipt handle has expired.";
        Self::InvalidParameterValue(format!(
            "Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"
        ))
    }

    /// Standard queues cannot hide a message that is deleted or was received again since.
    pub(super) fn gone(handle: &ReceiptHandle) -> Self {
        let reason = "Message does not exist or is not available for visibility timeout change.";
        Self::InvalidParameterValue(format!(
            "Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"
        ))
    }

    pub(super) fn visibility(seconds: u32, reason: &str) -> Self {
        Self::InvalidParameterValue(format!(
            "Value {seconds} for parameter VisibilityTimeout is invalid. Reason: {reason}"
        ))
    }

    pub(super) fn of(self, operation: &'static str, url: &str) -> QueueError {
        QueueError {
            operation,
            queue: url.to_owned(),
            code: Some(self.code().to_owned()),
            source: self.into(),
        }
    }
}

impl From<SqsError> for EntryError {
    fn from(error: SqsError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string() }
    }
}
