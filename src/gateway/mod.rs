//! The gateway seam: two kinds of provider, and what each answer proves about the money.
//!
//! The question is never "may I resend?" but "what does this prove?". A two-phase provider makes a handle without
//! moving money and charges that one handle later; a one-shot provider charges in a single call under an
//! idempotency key.

use std::{fmt, future::Future, time::Duration};

use sha2::{Digest, Sha256};

use crate::{
    decision::{Code, PoisonReason},
    order::{Order, OrderId, hex},
};

pub mod http;
pub mod secret;
#[cfg(feature = "local")]
pub mod simulated;
pub mod stripe;
mod transport;

pub use self::transport::{Answering, Transport};

/// How the provider recognises a request that it has seen before.
///
/// `co1-` and the first 36 hex digits of SHA-256 over `v1 NUL provider NUL order_id NUL attempt NUL operation`:
/// 40 characters fit every provider's limit. A pure function, the same in every process and for every delivery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One-shot: the charge.
    Charge,
    /// Two-phase: make a handle.
    Create {
        /// The generation of the handle.
        generation: u32,
    },
    /// Two-phase: make a handle although the provider answers [`Operation::Create`] with a server error, which it
    /// may replay for a day.
    CreateAnew {
        /// The generation of the handle.
        generation: u32,
        /// The owner's fence.
        fence: u64,
    },
    /// Two-phase: charge the handle. With the owner's fence: a new owner gets a new key, so a `500` that the
    /// provider has cached cannot wedge the order. Safe only because a handle charges at most once.
    Commit {
        /// The owner's fence.
        fence: u64,
    },
    /// Two-phase: make sure the handle is never charged.
    Seal {
        /// The generation of the handle.
        generation: u32,
        /// The owner's fence.
        fence: u64,
    },
}

impl IdempotencyKey {
    /// The key of one operation of one attempt of one order.
    pub fn new(provider: &str, order_id: &OrderId, attempt: u32, operation: Operation) -> Self {
        let operation = match operation {
            Operation::Charge => "charge".to_owned(),
            Operation::Create { generation } => format!("create:{generation}"),
            Operation::CreateAnew { generation, fence } => format!("create:{generation}:{fence}"),
            Operation::Commit { fence } => format!("commit:{fence}"),
            Operation::Seal { generation, fence } => format!("seal:{generation}:{fence}"),
        };
        let digest = hex(&Sha256::digest(format!("v1\0{provider}\0{order_id}\0{attempt}\0{operation}")));
        Self(format!("co1-{}", digest.get(..36).unwrap_or(&digest)))
    }

    /// The key as sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A provider that charges in one call.
pub trait OneShotGateway: Send + Sync {
    /// Provider, account and mode, as the ledger records them.
    fn provider(&self) -> &str;

    /// Charges the order, or repeats the answer that the provider gave under this key. The request must be the
    /// same to the byte for the same order and key, and must end within `within`.
    ///
    /// # Errors
    /// Anything but a final or pending answer, classified by what it proves.
    fn charge(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        within: Duration,
    ) -> impl Future<Output = Result<Answer, GatewayError>> + Send;

    /// Looks up the order's charge, for when the provider has forgotten the key.
    ///
    /// # Errors
    /// The look-up proved nothing.
    fn find(
        &self,
        order: &Order,
        within: Duration,
    ) -> impl Future<Output = Result<LookedUp, GatewayError>> + Send;
}

/// What a one-shot provider's look-up says of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookedUp {
    /// The charge of this very attempt.
    Charge(Answer),
    /// The provider knows no charge of this order.
    Nothing,
    /// A charge that may not be of this attempt: a person must look.
    Unclear,
}

/// What a one-shot provider says of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The money moved.
    Succeeded(Receipt),
    /// It may still move.
    Processing,
    /// It will not move.
    Failed(Code),
}

/// A provider that prepares a handle and charges it in a second step, at most once for ever.
pub trait TwoPhaseGateway: Send + Sync {
    /// Provider, account and mode, as the ledger records them.
    fn provider(&self) -> &str;

    /// Whether the provider can charge this order at all; asked before anything is claimed.
    ///
    /// # Errors
    /// Why it never can.
    fn accept(&self, order: &Order) -> Result<(), PoisonReason>;

    /// Makes a handle; no money moves.
    ///
    /// # Errors
    /// No handle is known; one may exist, but it is never charged.
    fn prepare(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        within: Duration,
    ) -> impl Future<Output = Result<String, GatewayError>> + Send;

    /// Charges the handle.
    ///
    /// # Errors
    /// It is not known whether the handle was charged, unless the error says so.
    fn commit(
        &self,
        order: &Order,
        handle: &str,
        key: &IdempotencyKey,
        within: Duration,
    ) -> impl Future<Output = Result<Sighting, GatewayError>> + Send;

    /// Asks how the handle stands.
    ///
    /// # Errors
    /// That is still not known.
    fn inspect(
        &self,
        order: &Order,
        handle: &str,
        within: Duration,
    ) -> impl Future<Output = Result<Sighting, GatewayError>> + Send;

    /// Makes sure the handle is never charged. The answer says how it stands, which may be `Succeeded`.
    ///
    /// # Errors
    /// It is not known whether the handle is sealed.
    fn seal(
        &self,
        order: &Order,
        handle: &str,
        key: &IdempotencyKey,
        within: Duration,
    ) -> impl Future<Output = Result<Sighting, GatewayError>> + Send;
}

/// How a handle stands at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Whether amount, currency and order are those of our order.
    pub is_ours: bool,
    /// What is known.
    pub status: HandleStatus,
}

/// The states of a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandleStatus {
    /// Charged.
    Succeeded(Receipt),
    /// Not charged, can be.
    Ready {
        /// No charge was ever tried on it, not even one that failed.
        untouched: bool,
    },
    /// The provider works on it.
    Processing,
    /// Declined, or it needs the customer; could be charged by a later call, so it must be sealed.
    Failed(Code),
    /// Sealed: by us, or by a person at the provider.
    Sealed(Code),
    /// The provider sealed it by itself because it was old.
    Expired,
}

/// The provider's names of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The charge.
    pub charge_id: String,
    /// The request that proved it.
    pub request_id: Option<String>,
}

/// What a provider's refusal or silence proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayErrorKind {
    /// The request never left: no address, no connection, no TLS.
    NotSent,
    /// Anything may have happened.
    Unknown {
        /// Whether the provider said so itself, with a 5xx.
        server_error: bool,
    },
    /// The provider declined for good.
    Declined(Code),
    /// The provider refused the request itself.
    Rejected(Code),
    /// The key was used with other parameters.
    KeyMismatch,
    /// A request with this key is in progress.
    Conflict,
    /// The provider is locked by another request; nothing was done.
    Lock,
    /// Too many requests; nothing was done.
    RateLimited,
    /// The credential is wrong or may not do this.
    AuthConfig {
        /// Whether it is the credential itself (401), which no order can help.
        unauthenticated: bool,
    },
    /// There is no such handle.
    NotFound,
}

impl GatewayErrorKind {
    /// Whether the same call may be repeated at once, in this process.
    pub fn may_resend(&self) -> bool {
        match self {
            Self::NotSent | Self::Conflict | Self::Lock => true,
            Self::Unknown { .. }
            | Self::Declined(_)
            | Self::Rejected(_)
            | Self::KeyMismatch
            | Self::RateLimited
            | Self::AuthConfig { .. }
            | Self::NotFound => false,
        }
    }

    /// The kind in logs and in the record's `error`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotSent => "NOT_SENT",
            Self::Unknown { .. } => "UNKNOWN",
            Self::Declined(_) => "DECLINED",
            Self::Rejected(_) => "REJECTED",
            Self::KeyMismatch => "KEY_MISMATCH",
            Self::Conflict => "CONFLICT",
            Self::Lock => "LOCK",
            Self::RateLimited => "RATE_LIMITED",
            Self::AuthConfig { .. } => "AUTH_CONFIG",
            Self::NotFound => "NOT_FOUND",
        }
    }
}

/// A call to the provider that did not give a plain answer.
#[derive(Debug)]
pub struct GatewayError {
    /// What it proves.
    pub kind: GatewayErrorKind,
    /// Where it was seen: a status, or what broke on the way. Never the provider's own text.
    pub context: String,
    /// When the provider wants to be asked again, 1 s to 900 s.
    pub retry_after: Option<Duration>,
    /// How the handle stands, where the error's body says so.
    pub sighting: Option<Box<Sighting>>,
    /// What went wrong below.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl GatewayError {
    /// An error without a cause below it.
    pub fn new(kind: GatewayErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), retry_after: None, sighting: None, source: None }
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the provider's answer proves {}: {}", self.kind.code(), self.context)
    }
}

impl std::error::Error for GatewayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stable_short_and_distinct() {
        let order = OrderId::parse("o-1").unwrap();
        let key = |attempt, operation| IdempotencyKey::new("stripe:acct:live", &order, attempt, operation);
        let keys = [
            key(1, Operation::Charge),
            key(2, Operation::Charge),
            key(1, Operation::Create { generation: 0 }),
            key(1, Operation::Create { generation: 1 }),
            key(1, Operation::Commit { fence: 1 }),
            key(1, Operation::Commit { fence: 2 }),
            key(1, Operation::Seal { generation: 0, fence: 1 }),
        ];
        assert!(keys.iter().all(|key| key.as_str().len() == 40 && key.as_str().starts_with("co1-")));
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
        assert_eq!(key(1, Operation::Charge).as_str(), "co1-866aa07b170ccf2281449d6f94952e058d29");
    }
}
