//! Records by their condition, for people and the sweeper. Not part of [`Ledger`](super::Ledger): charging never
//! needs a list, and a list may be old when it is read.

use std::future::Future;

use super::{Attention, Entry, Found, LedgerError};
use crate::{clock::Timestamp, order::OrderId};

/// Which records to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those in the index `attention`.
    Attention(Attention),
    /// Live records whose lease has ended, also those that a killed owner never marked. Reads the whole table.
    Abandoned {
        /// The present instant.
        now: Timestamp,
    },
}

impl Selection {
    /// Whether a record belongs to the list of records whose state changed before `before`.
    pub fn takes(self, entry: &Entry, before: Timestamp) -> bool {
        let selected = match self {
            Self::Attention(attention) => entry.attention == Some(attention),
            Self::Abandoned { now } => {
                entry.state.is_live() && entry.lease_until.is_some_and(|until| until < now)
            }
        };
        selected && entry.state_changed_at < before
    }
}

/// A record in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The order.
    pub order_id: OrderId,
    /// Its record.
    pub entry: Found,
}

/// A ledger that can be looked through.
pub trait Overview: Send + Sync {
    /// The records whose state changed before `before`, the oldest doubt first, at most `limit`.
    ///
    /// # Errors
    /// The store did not answer.
    fn list(
        &self,
        selection: Selection,
        before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Listed>, LedgerError>> + Send;
}
