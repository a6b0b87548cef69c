//! Dead letters as JSON Lines: what `export` writes and `import` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DeadLetter;
use crate::{
    queue::Message,
    record::{MessageId, ReceiptHandle, TextAttribute},
};

/// One exported message. The body is in it, whatever it holds: keep the file as safe as the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The message's name.
    pub message_id: String,
    /// The order, for people and tools; not read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// Why it died, for people and tools; not read back.
    #[serde(default)]
    pub reason: String,
    /// How its order stood in the ledger then; not read back.
    #[serde(default)]
    pub ledger: String,
    /// SQS's own attributes.
    pub system: BTreeMap<String, String>,
    /// The producer's attributes.
    #[serde(default)]
    pub attributes: Vec<Attribute>,
    /// The text.
    pub body: String,
}

/// A message attribute that holds text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// `String` or `Number`.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The value.
    pub value: String,
}

/// Why a line cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is no line of an export.
    #[error("line {line} is no exported message")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// It has no message id.
    #[error("line {0} has no message_id")]
    NoId(usize),
}

impl Line {
    /// The line of a letter.
    pub fn of(letter: &DeadLetter) -> Self {
        let attributes = letter.message.attributes.iter().cloned();
        Self {
            message_id: letter.message.id.to_string(),
            order_id: letter.order_id.as_ref().map(ToString::to_string),
            reason: letter.reason.clone(),
            ledger: letter.standing.name().to_owned(),
            system: letter.message.system.clone(),
            attributes: attributes
                .map(|TextAttribute { name, data_type, value }| Attribute { name, data_type, value })
                .collect(),
            body: letter.message.body.clone(),
        }
    }

    /// Reads a file of lines; empty ones are skipped.
    ///
    /// # Errors
    /// The first line that is not one.
    pub fn parse_all(text: &str) -> Result<Vec<Message>, FileError> {
        // Windows editors put a byte order mark before the first line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(index, line)| Self::parse(index.saturating_add(1), line)).collect()
    }

    fn parse(line: usize, text: &str) -> Result<Message, FileError> {
        let read: Self = serde_json::from_str(text).map_err(|source| FileError::Syntax { line, source })?;
        let id = MessageId::new(&*read.message_id).ok_or(FileError::NoId(line))?;
        // Nothing is deleted after an import, so any name will do.
        let receipt_handle = ReceiptHandle::new(read.message_id).ok_or(FileError::NoId(line))?;
        let attributes = read.attributes.into_iter();
        Ok(Message {
            id,
            receipt_handle,
            body: read.body,
            system: read.system,
            attributes: attributes
                .map(|Attribute { name, data_type, value }| TextAttribute { name, data_type, value })
                .collect(),
        })
    }
}
