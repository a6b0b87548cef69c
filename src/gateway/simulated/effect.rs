//! Everything that can go wrong between a caller and its payment provider.

use serde::{Deserialize, Serialize};

/// What happens to a request instead of, or on top of, its proper answer. In JSON the name stands in `effect`,
/// in lower case with hyphens (`reset-after`), and the fields beside it.
///
/// Unless an effect says otherwise, a used key replays its stored answer and the effect only touches what it
/// names: a `decline` changes nothing about a replay, a `reset-after` loses the replay too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// The issuer declines. Matches only operations that charge (`charge`, `confirm`).
    Decline {
        /// The reason, such as `insufficient_funds`; `card_declined` without one.
        #[serde(default = "card_declined")]
        code: String,
    },
    /// The charge is accepted and decided later, then succeeding. Matches only operations that charge.
    Processing {
        /// When it is decided, in milliseconds of the provider's clock.
        #[serde(default = "half_a_minute")]
        settle_ms: u64,
    },
    /// An HTTP status instead of the proper answer.
    Status {
        /// The status, 200 to 599.
        status: u16,
        /// The body; a fitting error of the contract without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// Whether the answer is stored under the key and replayed. A key that has an answer keeps it.
        #[serde(default)]
        sticky: bool,
        /// Whether the request is executed first.
        #[serde(default)]
        after_charge: bool,
        /// The value of the header `Stripe-Should-Retry`; none without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        should_retry: Option<bool>,
    },
    /// 409: another request with this key is in progress. Not executed.
    Conflict {},
    /// 429: too many requests. Not executed.
    RateLimit {
        /// Seconds in `Retry-After`; no header without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
        /// Whether `Retry-After` is an HTTP date that far from now instead of a number.
        #[serde(default)]
        as_date: bool,
    },
    /// 429 with code `lock_timeout`: the object is being worked on. Not executed.
    LockTimeout {},
    /// The connection is reset before the request is executed.
    ResetBefore {},
    /// The request is executed, then the connection is reset.
    ResetAfter {},
    /// Nothing is executed and nothing is answered.
    HangBefore {},
    /// The request is executed and nothing is answered.
    HangAfter {},
    /// The request is executed; the answer breaks off in the middle of its body.
    Truncated {},
    /// The request is executed; the answer arrives byte by byte.
    Drip {
        /// The pause before each byte, in milliseconds.
        every_ms: u64,
    },
    /// The request is executed; the answer is a 200 that is not JSON.
    Unparsable {},
    /// The request is being worked on for a while, its key in use, then executed and answered.
    Delay {
        /// How long, in milliseconds.
        ms: u64,
    },
    /// The caller hears nothing; the request arrives later and is executed then, its answer lost.
    Late {
        /// Just before the nth request that follows, from 1; without, when
        /// [`Provider::deliver_late`](super::Provider::deliver_late) is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
    },
    /// Every key is forgotten, then the request is executed and answered as usual.
    ForgetKeys {},
}

impl Effect {
    /// A decline without a particular reason.
    pub fn decline() -> Self {
        Self::Decline { code: card_declined() }
    }

    /// A status with a fitting body; the request is not executed and the key not used.
    pub fn status(status: u16) -> Self {
        Self::Status { status, body: None, sticky: false, after_charge: false, should_retry: None }
    }

    /// A status that is stored under the key; the request is not executed.
    pub fn sticky_status(status: u16) -> Self {
        Self::Status { status, body: None, sticky: true, after_charge: false, should_retry: None }
    }

    /// A charge that is decided after half a minute.
    pub fn processing() -> Self {
        Self::Processing { settle_ms: half_a_minute() }
    }

    /// Whether only operations that charge can be met.
    pub(super) fn needs_charge(&self) -> bool {
        matches!(self, Self::Decline { .. } | Self::Processing { .. })
    }

    /// What is wrong with the effect's fields, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let Self::Status { status, .. } = self else { return None };
        (!(200..=599).contains(status)).then(|| format!("status {status} is not within 200 to 599"))
    }
}

fn card_declined() -> String {
    "card_declined".to_owned()
}

/// Less than the minute after which a caller asks again.
fn half_a_minute() -> u64 {
    30_000
}
