//! What is decided about one record: acknowledge it, try again later, or give it up to the dead-letter queue.

use std::{fmt, time::Duration};

use crate::{
    envelope::EnvelopeError,
    order::{OrderError, may_be_a_card},
    payload::PayloadFault,
    record::RecordError,
    telemetry::ErrorChain,
};

/// The one result of a record. A failure is a decision, never an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The message may be deleted.
    Ack(AckReason),
    /// The message stays in the queue and is tried again.
    Retry {
        /// When.
        after: RetryAfter,
        /// Why.
        reason: RetryReason,
    },
    /// The message can never succeed and should reach the dead-letter queue soon.
    Poison(PoisonReason),
}

/// When a message is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// After the exponential backoff with jitter.
    Backoff,
    /// After the backoff, but not before this has passed.
    NotBefore(Duration),
    /// When another owner's lease ends, this long from now.
    LeaseEnd(Duration),
    /// Now: nothing was tried.
    Immediately,
}

/// Why a message may be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AckReason {
    /// The order was charged and that is recorded.
    Charged,
    /// What was to be done for the order is done: the answer of a step that is no charge.
    Done,
    /// The order had been charged, or done, before.
    Duplicate,
    /// The decline is recorded and `DECLINED=ack` is set.
    Declined(Code),
    /// `POISON_MODE=dlq`: the dead-letter queue has taken a copy.
    MovedToDlq(PoisonReason),
}

/// Why a message is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// Another owner works on the order.
    Busy,
    /// The ledger did not answer, or not in time.
    Store,
    /// The ledger has a record that this version does not understand.
    RecordUnreadable,
    /// The record changed hands while it was worked on.
    LeaseLost,
    /// The gateway's answer proves nothing final; the code says which kind it was.
    Gateway(Code),
    /// The provider still works on the charge.
    Processing,
    /// The money moved but the ledger could not be told.
    ChargedNotRecorded,
    /// The charge contradicts what the ledger says.
    ChargeContradictsRecord,
    /// The order's payload could not be fetched from S3.
    Payload,
    /// Not begun: too little time was left.
    NotStartedDeadline,
    /// Not begun: the breaker is open.
    NotStartedBreaker,
    /// Not begun: an earlier message of its FIFO group failed.
    NotStartedGroup,
    /// Not begun: the worker is stopping.
    NotStartedStopping,
    /// Not begun: the message's visibility timeout could not be extended, so another consumer may have it by now.
    NotStartedLost,
    /// Begun but not finished when the time was up.
    Unfinished,
    /// The code that worked on the record panicked.
    Panicked,
}

/// Why a message can never succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoisonReason {
    /// The record itself cannot be used.
    Record(RecordError),
    /// The body is known to hold no order.
    Envelope(EnvelopeError),
    /// The object behind an S3 pointer can never be an order.
    PayloadUnusable(PayloadFault),
    /// The order breaks a rule.
    Order(OrderError),
    /// The order has no `payment_method` and the gateway needs one.
    PaymentMethodMissing,
    /// The provider has no unit that can express the amount.
    AmountNotRepresentable,
    /// The ledger knows this `order_id` with another content.
    Mismatch,
    /// The ledger knows a later attempt of this order.
    Superseded,
    /// The provider declined or refused the charge for good.
    Declined(Code),
    /// The order waits for a person.
    Held(Code),
}

/// A short machine-readable code from a provider or from us: at most 120 printable ASCII characters, so it can
/// go into logs and records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Code(String);

impl Code {
    /// Longest code, in characters.
    pub const MAX: usize = 120;

    /// Keeps what is printable ASCII, and `unknown` if nothing is.
    pub fn new(text: &str) -> Self {
        let kept: String = text.chars().filter(char::is_ascii_graphic).take(Self::MAX).collect();
        Self(if kept.is_empty() { "unknown".to_owned() } else { kept })
    }

    /// A code as a provider sent it. What has spaces inside is a text of the issuer, and what has as many digits as a
    /// card may be one: neither belongs into logs and records, so both become `unreadable`.
    pub fn foreign(text: &str) -> Self {
        let text = text.trim();
        let is_code = !may_be_a_card(text) && text.bytes().all(|byte| byte.is_ascii_graphic());
        Self::new(if is_code { text } else { "unreadable" })
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Decision {
    /// A retry after the ordinary backoff.
    pub fn retry(reason: RetryReason) -> Self {
        Self::Retry { after: RetryAfter::Backoff, reason }
    }

    /// Whether the message may be deleted.
    pub fn is_ack(&self) -> bool {
        matches!(self, Self::Ack(_))
    }

    /// The value of the log field `decision`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ack(_) => "ack",
            Self::Retry { .. } => "retry",
            Self::Poison(_) => "poison",
        }
    }

    /// The value of the log field `reason`: a code, with detail behind a colon where there is one.
    pub fn reason(&self) -> String {
        match self {
            Self::Ack(reason) => reason.to_string(),
            Self::Retry { reason, .. } => reason.to_string(),
            Self::Poison(reason) => reason.to_string(),
        }
    }
}

impl PoisonReason {
    /// What is wrong in words, where the code alone does not say it.
    pub fn explain(&self) -> Option<String> {
        match self {
            Self::Record(error) => Some(ErrorChain(error).to_string()),
            Self::Envelope(error) => Some(ErrorChain(error).to_string()),
            Self::PayloadUnusable(fault) => Some(ErrorChain(fault).to_string()),
            Self::Order(error) => Some(ErrorChain(error).to_string()),
            Self::PaymentMethodMissing => {
                Some("the order has no `payment_method`, and GATEWAY=stripe needs one".to_owned())
            }
            Self::AmountNotRepresentable => Some("the provider has no unit for this amount".to_owned()),
            Self::Mismatch => Some(
                "the ledger has this `order_id` with another content, an attempt that is not declined, or another provider"
                    .to_owned(),
            ),
            Self::Superseded => Some("the ledger has a later attempt of this order".to_owned()),
            Self::Declined(_) | Self::Held(_) => None,
        }
    }
}

impl fmt::Display for AckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Charged => f.write_str("CHARGED"),
            Self::Done => f.write_str("DONE"),
            Self::Duplicate => f.write_str("DUPLICATE"),
            Self::Declined(code) => write!(f, "DECLINED:{code}"),
            Self::MovedToDlq(reason) => write!(f, "MOVED_TO_DLQ:{reason}"),
        }
    }
}

impl fmt::Display for RetryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self {
            Self::Busy => "BUSY",
            Self::Store => "STORE_UNAVAILABLE",
            Self::RecordUnreadable => "RECORD_UNREADABLE",
            Self::LeaseLost => "LEASE_LOST",
            Self::Gateway(code) => return write!(f, "GATEWAY:{code}"),
            Self::Processing => "PROCESSING",
            Self::ChargedNotRecorded => "CHARGED_NOT_RECORDED",
            Self::ChargeContradictsRecord => "CHARGE_CONTRADICTS_RECORD",
            Self::Payload => "PAYLOAD_UNAVAILABLE",
            Self::NotStartedDeadline => "NOT_STARTED:DEADLINE",
            Self::NotStartedBreaker => "NOT_STARTED:BREAKER",
            Self::NotStartedGroup => "NOT_STARTED:GROUP",
            Self::NotStartedStopping => "NOT_STARTED:STOPPING",
            Self::NotStartedLost => "NOT_STARTED:LOST",
            Self::Unfinished => "UNFINISHED",
            Self::Panicked => "PANICKED",
        };
        f.write_str(code)
    }
}

impl fmt::Display for PoisonReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self {
            Self::Record(error) => error.code(),
            Self::Envelope(error) => error.code(),
            Self::PayloadUnusable(_) => "PAYLOAD_UNUSABLE",
            Self::Order(error) => error.code(),
            Self::PaymentMethodMissing => "PAYMENT_METHOD_MISSING",
            Self::AmountNotRepresentable => "AMOUNT_NOT_REPRESENTABLE",
            Self::Mismatch => "MISMATCH",
            Self::Superseded => "SUPERSEDED",
            Self::Declined(code) => return write!(f, "DECLINED:{code}"),
            Self::Held(code) => return write!(f, "HELD:{code}"),
        };
        f.write_str(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_short_and_printable() {
        assert_eq!(Code::new("card\n_declined\u{1b}é ").as_str(), "card_declined");
        assert_eq!(Code::new(" \n").as_str(), "unknown");
        assert_eq!(Code::new(&"x".repeat(500)).as_str().len(), Code::MAX);
    }

    #[test]
    fn a_foreign_code_is_neither_a_text_nor_a_card() {
        let cases = [
            ("insufficient_funds", "insufficient_funds"),
            (" 51\n", "51"),
            ("", "unknown"),
            ("Declined for E. Mustermann", "unreadable"),
            ("4242424242424242", "unreadable"),
            ("card_4242-4242-4242", "unreadable"),
            ("refus\u{e9}", "unreadable"),
        ];
        for (sent, kept) in cases {
            assert_eq!(Code::foreign(sent).as_str(), kept, "{sent}");
        }
    }

    #[test]
    fn reasons_carry_their_detail() {
        assert_eq!(Decision::Ack(AckReason::Done).reason(), "DONE");
        let declined = PoisonReason::Declined(Code::new("card_declined"));
        assert_eq!(Decision::Poison(declined.clone()).reason(), "DECLINED:card_declined");
        assert_eq!(
            Decision::Ack(AckReason::MovedToDlq(declined)).reason(),
            "MOVED_TO_DLQ:DECLINED:card_declined"
        );
    }
}
