//! The ledger seam: one record per order, written only under conditions.
//!
//! A store implements one method, [`Ledger::apply`]. Everything a charge step needs is built on it here: `begin`
//! hands out a [`Lease`], and each way of ending the work spends it. Using a lease twice does not compile:
//!
//! ```compile_fail,E0382
//! # use charge_once::{clock::Timestamp, ledger::{Lease, Ledger, Left}};
//! async fn twice(ledger: &impl Ledger, lease: Lease, now: Timestamp) {
//!     let _ = ledger.release(lease, "TIMEOUT", Left::Doubt).await;
//!     let _ = ledger.hold(lease, "UNKNOWN_EXPIRED", now).await;
//! }
//! ```

use std::future::Future;

use crate::{clock::Timestamp, order::OrderId};

pub mod conformance;
#[cfg(feature = "aws")]
pub mod dynamodb;
mod entry;
mod lease;
pub mod memory;
mod overview;
mod transition;

pub use self::{
    entry::{Attention, Entry, Owner, State, VERSION},
    lease::{Claim, Completion, Lease, LeaseError, Paid},
    overview::{Listed, Overview, Selection},
    transition::{Begin, Evidence, Intent, Left, Refused, Resolution, SKEW, Verdict},
};

/// What a store found under an order's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No record.
    Nothing,
    /// A record of this version.
    Entry(Box<Entry>),
    /// A record of a later version, or with a state or an attribute that this version does not know. It is
    /// never acted on.
    Unreadable,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The condition held and the record was written.
    Written {
        /// The record before, if there was one.
        old: Option<Box<Entry>>,
        /// The record now.
        new: Box<Entry>,
    },
    /// The condition did not hold; nothing was written. The record is the one the condition was judged on.
    Refused(Found),
}

/// The store did not answer, or not in time. The write may have been applied.
#[derive(Debug, thiserror::Error)]
#[error("the call to the ledger failed ({code})")]
pub struct LedgerError {
    /// The store's error code, such as `ThrottlingException`.
    pub code: String,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A store of records whose writes to one record are linearizable.
pub trait Ledger: Send + Sync {
    /// Applies `intent` to the record of `order_id` exactly as [`Intent::apply`] says, atomically.
    ///
    /// # Errors
    /// The store did not answer; the write may have been applied all the same.
    fn apply(
        &self,
        order_id: &OrderId,
        intent: &Intent,
    ) -> impl Future<Output = Result<Applied, LedgerError>> + Send;

    /// Reads a record, for people and tools: the function decides about money by what its writes answer alone.
    ///
    /// # Errors
    /// The store did not answer.
    fn get(&self, order_id: &OrderId) -> impl Future<Output = Result<Found, LedgerError>> + Send;

    /// T1, T1b: claims the order, or says why it cannot be claimed.
    ///
    /// # Errors
    /// The store did not answer. If the claim was written all the same, it ends with its lease.
    fn begin(
        &self,
        order_id: &OrderId,
        begin: Begin,
    ) -> impl Future<Output = Result<Claim, LedgerError>> + Send {
        lease::begin(self, order_id, begin)
    }

    /// T2: stores the handle, after which only this handle may be charged.
    ///
    /// # Errors
    /// The record changed hands, or the store did not answer. Either way the handle must not be charged and
    /// **not be sealed**: a new owner may be about to store this very handle.
    fn store_handle(
        &self,
        lease: Lease,
        handle: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Lease, LeaseError>> + Send {
        let intent = Intent::StoreHandle { mine: lease.owner(), handle, now };
        lease::go_on(self, lease, intent)
    }

    /// T2b: replaces a handle that the provider expired by itself.
    ///
    /// # Errors
    /// As [`Ledger::store_handle`].
    fn replace_handle(
        &self,
        lease: Lease,
        old: String,
        new: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Lease, LeaseError>> + Send {
        let intent = Intent::ReplaceHandle { mine: lease.owner(), old, new, now };
        lease::go_on(self, lease, intent)
    }

    /// T3: writes down that the charge is about to be sent once more, one-shot.
    ///
    /// # Errors
    /// The record changed hands, or the store did not answer: nothing may be sent.
    fn resend(&self, lease: Lease, now: Timestamp) -> impl Future<Output = Result<Lease, LeaseError>> + Send {
        let intent = Intent::Resend { mine: lease.owner(), now };
        lease::go_on(self, lease, intent)
    }

    /// T4: records the charge, with up to three tries; it works for a stale owner too, because it carries proof.
    ///
    /// # Errors
    /// The store did not answer: the money moved and that is not recorded.
    fn complete(
        &self,
        lease: Lease,
        paid: Paid,
    ) -> impl Future<Output = Result<Completion, LedgerError>> + Send {
        lease::complete(self, lease, paid)
    }

    /// T5: records the decline.
    ///
    /// # Errors
    /// The record says something else by now, or the store did not answer.
    fn decline(
        &self,
        lease: Lease,
        refused: Refused,
        error: &str,
        now: Timestamp,
        expires_at: i64,
    ) -> impl Future<Output = Result<(), LeaseError>> + Send {
        lease::end(self, lease, Intent::Decline { refused, error: error.to_owned(), now, expires_at })
    }

    /// T6: lets go of the order, so that the next delivery need not wait for the lease to end.
    ///
    /// # Errors
    /// The record changed hands, or the store did not answer; the lease then ends by itself.
    fn release(
        &self,
        lease: Lease,
        error: &str,
        left: Left,
    ) -> impl Future<Output = Result<(), LeaseError>> + Send {
        let intent = Intent::Release { mine: lease.owner(), error: error.to_owned(), left };
        lease::end(self, lease, intent)
    }

    /// T7: keeps the claim while its work goes on.
    ///
    /// # Errors
    /// The record changed hands: stop sending. Or the store did not answer.
    fn renew(
        &self,
        order_id: &OrderId,
        mine: Owner,
        until: Timestamp,
    ) -> impl Future<Output = Result<(), LeaseError>> + Send {
        lease::renew(self, order_id, Intent::Renew { mine, until })
    }

    /// T8: leaves the order to a person.
    ///
    /// # Errors
    /// The record changed hands, or the store did not answer.
    fn hold(
        &self,
        lease: Lease,
        reason: &str,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), LeaseError>> + Send {
        let intent = Intent::Hold { mine: lease.owner(), reason: reason.to_owned(), now };
        lease::end(self, lease, intent)
    }

    /// T10: writes down what a person decided.
    ///
    /// # Errors
    /// The record changed since the person looked at it, or is not theirs to decide; or the store did not answer.
    fn resolve(
        &self,
        order_id: &OrderId,
        resolution: Resolution,
    ) -> impl Future<Output = Result<Entry, LeaseError>> + Send {
        lease::resolve(self, order_id, resolution)
    }
}
