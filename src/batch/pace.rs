//! When a record may be begun, and who hears what became of it.

use std::future::Future;

use super::Judged;
use crate::{decision::RetryReason, record::Record};

/// What a shell adds to a batch: a place for each record that is begun, and ears for each result.
pub trait Pace: Send + Sync {
    /// Held while the record is worked on.
    type Place: Send;

    /// Waits until the record may be begun.
    ///
    /// # Errors
    /// It must not be begun at all, for this reason; it then returns to the queue at once.
    fn place(&self, record: &Record) -> impl Future<Output = Result<Self::Place, RetryReason>> + Send;

    /// Hears of each record as soon as it is decided about, inside a lane in order.
    fn decided(&self, judged: &Judged);
}

/// Each record is begun as soon as its lane comes to it, and the results wait for the end of the batch.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce;

impl Pace for AtOnce {
    type Place = ();

    async fn place(&self, _record: &Record) -> Result<(), RetryReason> {
        Ok(())
    }

    fn decided(&self, _judged: &Judged) {}
}
