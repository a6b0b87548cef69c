//! One dead letter: the message, its order, and what the ledger knows of it.

use std::time::Duration;

use super::Undertaker;
use crate::{
    clock::Timestamp,
    envelope::Envelope,
    ledger::{Entry, Found, Ledger, LedgerError, State},
    order::{Order, OrderId, OrderRules},
    queue::{Message, Queue},
    record::REASON,
};

/// Where SQS says that a message came from which it moved itself.
pub(super) const SOURCE: &str = "DeadLetterQueueSourceArn";
/// The reason of a message that only points to its order: these tools do not read S3.
pub(super) const IN_S3: &str = "IN_S3";

/// A dead-lettered message with what is known of it.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The message.
    pub message: Message,
    /// Its order, if there is one in it.
    pub order_id: Option<OrderId>,
    /// What the ledger knows of that order.
    pub standing: Standing,
    /// Why it died: what the function wrote on the message, else what the order or the ledger gives away.
    pub reason: String,
    /// How long ago it was sent.
    pub age: Duration,
    /// How often it was received, also by looking.
    pub receive_count: u32,
}

/// What the ledger knows of a dead letter's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no usable order in the message.
    NoOrder {
        /// Why.
        code: String,
    },
    /// Never begun, or forgotten; or only the attempt before it was, and declined.
    NoRecord,
    /// Begun; nothing can have been charged.
    Begun,
    /// It is not known whether money moved; the next delivery finds out.
    Unsettled,
    /// Charged: the message may be dropped.
    Paid {
        /// The charge.
        charge_id: Option<String>,
    },
    /// Not charged, for good.
    Declined {
        /// Why.
        code: String,
    },
    /// Waits for a person.
    Held {
        /// Why.
        reason: String,
    },
    /// The record is about another content under the same `order_id`.
    Mismatch,
    /// A later version wrote the record.
    Unreadable,
}

impl Standing {
    /// Every name, for help texts.
    pub const NAMES: [&str; 9] =
        ["no-order", "none", "begun", "unsettled", "paid", "declined", "held", "mismatch", "unreadable"];

    /// The name in filters and output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOrder { .. } => "no-order",
            Self::NoRecord => "none",
            Self::Begun => "begun",
            Self::Unsettled => "unsettled",
            Self::Paid { .. } => "paid",
            Self::Declined { .. } => "declined",
            Self::Held { .. } => "held",
            Self::Mismatch => "mismatch",
            Self::Unreadable => "unreadable",
        }
    }

    /// What the ledger knows of `order`.
    fn of(order: &Order, found: &Found) -> Self {
        match found {
            Found::Nothing => Self::NoRecord,
            Found::Unreadable => Self::Unreadable,
            Found::Entry(entry) => Self::recorded(order, entry),
        }
    }

    fn recorded(order: &Order, entry: &Entry) -> Self {
        let code = |code: &Option<String>| code.clone().unwrap_or_else(|| "unknown".to_owned());
        match entry.state {
            // The attempt after a declined one: nothing was begun of it, and its delivery charges.
            State::Declined if entry.attempt.checked_add(1) == Some(order.attempt()) => Self::NoRecord,
            // A record about another content says nothing about this one, whoever was charged for what.
            _ if entry.fingerprint != order.fingerprint() && entry.attempt >= order.attempt() => {
                Self::Mismatch
            }
            State::Paid if entry.fingerprint != order.fingerprint() => Self::Mismatch,
            State::Paid => Self::Paid { charge_id: entry.charge_id.clone() },
            State::Declined => Self::Declined { code: code(&entry.error) },
            State::Held => Self::Held { reason: code(&entry.held_reason) },
            State::Claimed => Self::Begun,
            State::Prepared | State::Sent => Self::Unsettled,
        }
    }

    /// Whether the next delivery of the same message must end like the last one. What lies in S3 is not looked at here,
    /// and nobody knows.
    pub(super) fn is_hopeless(&self) -> bool {
        match self {
            Self::NoOrder { code } => code != IN_S3,
            Self::Declined { .. } | Self::Mismatch => true,
            Self::NoRecord
            | Self::Begun
            | Self::Unsettled
            | Self::Paid { .. }
            | Self::Held { .. }
            | Self::Unreadable => false,
        }
    }

    pub(super) fn reason(&self) -> String {
        match self {
            Self::NoOrder { code } => code.clone(),
            Self::NoRecord => "NO_RECORD".to_owned(),
            Self::Begun => "RETRIES_EXHAUSTED".to_owned(),
            Self::Unsettled => "UNSETTLED".to_owned(),
            Self::Paid { .. } => "PAID".to_owned(),
            Self::Declined { code } => format!("DECLINED:{code}"),
            Self::Held { reason } => format!("HELD:{reason}"),
            Self::Mismatch => "MISMATCH".to_owned(),
            Self::Unreadable => "RECORD_UNREADABLE".to_owned(),
        }
    }
}

impl DeadLetter {
    /// Reads a message and asks the ledger about its order.
    pub(super) async fn read(
        message: Message,
        ledger: &impl Ledger,
        rules: &OrderRules,
        now: Timestamp,
    ) -> Result<Self, LedgerError> {
        let (order_id, standing) = match order(&message.body, rules) {
            Ok(order) => {
                let found = ledger.get(order.id()).await?;
                (Some(order.id().clone()), Standing::of(&order, &found))
            }
            Err(code) => Self::without_order(&message.body, code, ledger).await?,
        };
        // What SQS moved itself it says nothing about: the attribute is of an earlier death, or the producer's own.
        let by_sqs = message.system.contains_key(SOURCE);
        let written = message.attributes.iter().find(|attribute| attribute.name == REASON && !by_sqs);
        let reason = written.map_or_else(|| standing.reason(), |attribute| attribute.value.clone());
        let number = |name: &str| message.system.get(name).and_then(|text| text.parse::<i64>().ok());
        let age = number("SentTimestamp")
            .map_or(Duration::ZERO, |millis| now.since(Timestamp::from_millis(millis)));
        let receive_count =
            number("ApproximateReceiveCount").and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
        Ok(Self { order_id, standing, reason, age, receive_count, message })
    }

    /// No usable order, by the rules that are known here. Where a currency is missing that the function would add, the
    /// record is still the order's: what waits for a person or is in doubt must not pass for nobody's.
    async fn without_order(
        body: &str,
        code: String,
        ledger: &impl Ledger,
    ) -> Result<(Option<OrderId>, Standing), LedgerError> {
        let Some(order_id) = named(body) else { return Ok((None, Standing::NoOrder { code })) };
        let standing = match ledger.get(&order_id).await? {
            Found::Unreadable => Standing::Unreadable,
            Found::Entry(entry) => match entry.state {
                State::Held => Standing::Held { reason: entry.held_reason.clone().unwrap_or(code) },
                State::Prepared | State::Sent => Standing::Unsettled,
                State::Claimed | State::Paid | State::Declined => Standing::NoOrder { code },
            },
            Found::Nothing => Standing::NoOrder { code },
        };
        let named = !matches!(standing, Standing::NoOrder { .. });
        Ok((named.then_some(order_id), standing))
    }

    /// The same message with another body, and what the ledger knows of the order that is in it now.
    pub(super) async fn with_body<Q: Queue, L: Ledger>(
        &self,
        body: String,
        from: &Undertaker<Q, L>,
    ) -> Result<Self, LedgerError> {
        let message = Message { body, ..self.message.clone() };
        let read = Self::read(message, &from.ledger, &from.rules, from.clock.now()).await?;
        Ok(Self { reason: self.reason.clone(), ..read })
    }

    /// The order, or the message if there is none in it.
    pub(super) fn name(&self) -> String {
        self.order_id.as_ref().map_or_else(|| self.message.id.to_string(), ToString::to_string)
    }

    /// The message group.
    pub fn group(&self) -> Option<&str> {
        self.message.system.get("MessageGroupId").map(String::as_str)
    }
}

/// The `order_id` of a body that is no valid order.
fn named(body: &str) -> Option<OrderId> {
    let Ok(Envelope::Order(text)) = Envelope::open(body) else { return None };
    Order::named_in(&text)
}

/// The order, or the code that says why the body shows none.
fn order(body: &str, rules: &OrderRules) -> Result<Order, String> {
    match Envelope::open(body).map_err(|error| error.code().to_owned())? {
        Envelope::Order(text) => Order::parse(&text, rules).map_err(|error| error.code().to_owned()),
        Envelope::S3Pointer(_) => Err(IN_S3.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_an_order_says_why() {
        let code =
            |body| order(body, &OrderRules { default_currency: None, max_amount_minor: 1 }).unwrap_err();
        let pointer =
            r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]"#;
        assert_eq!(code(pointer), "IN_S3");
        assert_eq!(code(r#"{"Event":"s3:TestEvent"}"#), "S3_TEST_EVENT");
        assert_eq!(code("not json"), "BODY_NOT_JSON");
    }
}
