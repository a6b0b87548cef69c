//! What both algorithms and the sweeper share: claim the order, call the provider in time, record the result.

use std::time::Duration;

use super::{Alarm, Delivery, Facts, Health, tenure::Tenure};
use crate::{
    backoff::Random,
    clock::{Clock, Timestamp},
    order::Order,
    telemetry::ErrorChain,
};

mod calling;
mod claiming;
mod recording;

pub(in crate::charge) use self::calling::Resends;

/// How long the lease outlives what it protects, so that nothing of its owner can still be on its way.
pub(in crate::charge) const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// The settings of the charge step.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Upper bound of a lease.
    pub lease: Duration,
    /// Whether a lease is renewed while its work goes on: where no invocation's deadline bounds the work.
    pub renews_lease: bool,
    /// Upper bound of one call to the provider.
    pub call_timeout: Duration,
    /// How long finished records are kept.
    pub retention: Duration,
    /// The moment since which the table is complete.
    pub epoch: Option<Timestamp>,
    /// Whether a recorded decline is acknowledged.
    pub ack_declined: bool,
}

/// The ledger, the rules, time and chance: everything but the provider.
#[derive(Clone, Debug)]
pub struct Desk<L> {
    /// Where orders are recorded.
    pub ledger: L,
    /// The settings.
    pub rules: Rules,
    /// Time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
}

/// One order on the desk.
pub(in crate::charge) struct Work<'a> {
    pub(in crate::charge) order: &'a Order,
    pub(in crate::charge) delivery: &'a Delivery,
    pub(in crate::charge) tenure: &'a Tenure,
    pub(in crate::charge) facts: Facts,
}

impl<'a> Work<'a> {
    pub(in crate::charge) fn new(order: &'a Order, delivery: &'a Delivery, tenure: &'a Tenure) -> Self {
        Self { order, delivery, tenure, facts: Facts::default() }
    }

    fn note(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.facts.error = Some(ErrorChain(error).to_string());
    }
}
