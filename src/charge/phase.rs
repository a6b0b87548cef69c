//! Where a two-phase charge is, and what this delivery has done so far: what [`TwoPhaseCharge`](super::TwoPhaseCharge)
//! walks through.

use std::time::Duration;

use crate::{
    decision::{Code, Decision, RetryAfter},
    gateway::Sighting,
    ledger::Lease,
};

/// After a server error on commit, or an unexplained charge on a handle, the provider may still be rolling its own
/// work forward.
pub(super) const SETTLING_PAUSE: Duration = Duration::from_secs(60);

/// A lease on a record that stores a handle.
pub(super) struct Armed {
    pub(super) lease: Lease,
    pub(super) handle: String,
}

/// What is done next.
pub(super) enum Phase {
    /// Make a handle and store it, in the place of `expired` if there is one.
    Prepare { lease: Lease, expired: Option<String> },
    /// Charge the handle.
    Commit(Armed, Commit),
    /// Ask how the handle stands, because the commit before did not say.
    Inspect(Armed, Commit),
    /// Act on how the handle stands.
    Settle(Armed, Sighting, Commit),
    /// Make sure that the declined handle is never charged.
    Seal(Armed, Code),
    /// Done.
    End(Decision),
}

/// What this delivery has committed so far.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Commit {
    /// Nothing.
    None,
    /// Once, without a clear answer.
    Once,
    /// Twice, without a clear answer.
    Twice,
    /// And the provider answered with a server error.
    ServerError,
    /// And the provider refused to charge this handle.
    Rejected(Code),
}

impl Commit {
    /// The decision of a delivery that did not learn how the handle stands: after a server error the next one comes no
    /// sooner than if it had learned that nothing is charged yet.
    pub(super) fn paused(&self, decision: Decision) -> Decision {
        match (self, decision) {
            (Self::ServerError, Decision::Retry { after, reason }) => {
                let asked = if let RetryAfter::NotBefore(asked) = after { asked } else { Duration::ZERO };
                Decision::Retry { after: RetryAfter::NotBefore(asked.max(SETTLING_PAUSE)), reason }
            }
            (_, decision) => decision,
        }
    }
}
