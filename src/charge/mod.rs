//! One order -> one decision. The only place that knows the ledger and the gateway together.
//!
//! [`OneShotCharge`] and [`TwoPhaseCharge`] are the two algorithms; what they share (claiming the order, turning
//! what the ledger says into a decision, recording the result) is the `desk`. Whatever fails, the rule is the
//! same: the message is acknowledged only when the ledger says so, and money is sent only under a lease.

use std::{future::Future, time::Duration};

use crate::{
    clock::Timestamp,
    decision::{AckReason, Decision, RetryReason},
    order::{Order, OrderId},
    record::MessageId,
};

mod desk;
mod one_shot;
mod phase;
mod sweep;
mod tenure;
mod two_phase;

pub use self::{
    desk::{Desk, Rules},
    one_shot::{LookUp, OneShotCharge},
    sweep::Sweep,
    two_phase::TwoPhaseCharge,
};

/// What is done with one order. A fork with another step than a charge implements this.
pub trait Step: Send + Sync {
    /// Works on one order and decides about its message. Never fails: a failure is a decision.
    fn run(&self, order: &Order, delivery: &Delivery) -> impl Future<Output = Outcome> + Send;
}

/// What a step needs to know of the message that brought the order.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The message.
    pub message_id: Option<MessageId>,
    /// How often it was received.
    pub receive_count: u32,
    /// When it reached SQS.
    pub sent_at: Option<Timestamp>,
    /// When the work must have ended.
    pub deadline: Timestamp,
}

/// The decision, and what was seen on the way to it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What becomes of the message.
    pub decision: Decision,
    /// For logs and metrics.
    pub facts: Facts,
}

/// What was seen while one order was worked on.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The order that a body names which is no valid one.
    pub named: Option<OrderId>,
    /// How many owners the record has had.
    pub fence: Option<u64>,
    /// The provider's handle of the order, two-phase only.
    pub handle: Option<String>,
    /// The provider's name of the charge.
    pub charge_id: Option<String>,
    /// The last error with its whole chain of causes.
    pub error: Option<String>,
    /// Whether the owner before was cut off.
    pub took_over: bool,
    /// What the batch should know of the ledger's and the provider's health.
    pub health: Health,
    /// What somebody should be woken for.
    pub alarm: Option<Alarm>,
    /// Time spent waiting for the provider.
    pub provider_time: Option<Duration>,
    /// Time spent waiting for the ledger.
    pub store_time: Option<Duration>,
    /// Each call of both, for the spans below the record's.
    #[cfg(feature = "otel")]
    pub calls: Vec<Call>,
}

/// One call that a record waited for.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What was called.
    pub whom: Whom,
    /// When.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
}

/// What an order is charged with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The ledger.
    Ledger,
    /// The payment provider.
    Provider,
}

impl Facts {
    /// Notes a call and adds its time to that of the others.
    fn called(&mut self, call: Call) {
        let total = match call.whom {
            Whom::Ledger => &mut self.store_time,
            Whom::Provider => &mut self.provider_time,
        };
        *total = Some(total.unwrap_or_default().saturating_add(call.took));
        #[cfg(feature = "otel")]
        self.calls.push(call);
    }
}

/// What one record tells about those it depends on. The batch's breaker counts it for orders that were begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing is wrong with them.
    #[default]
    Fine,
    /// The ledger, the provider or S3 could not be reached or refused us.
    Failing,
    /// The provider asked for a pause, or the credential is wrong: no record should be begun.
    Stop,
}

/// What somebody should be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The money moved and the ledger could not be told; the next delivery finds out.
    ChargedNotRecorded,
    /// Two charges of one order are known.
    DoubleChargeDetected,
    /// A charge was made that the record cannot hold.
    ChargeContradictsRecord,
    /// The provider refuses the credential.
    AuthConfig,
    /// The ledger holds a record that this version does not understand.
    RecordUnreadable,
}

impl Outcome {
    /// A decision about which nothing else is known.
    pub fn of(decision: Decision) -> Self {
        Self { decision, facts: Facts::default() }
    }

    /// Whether the ledger alone had the answer, so that it says nothing about the provider.
    pub(crate) fn is_of_the_ledger_alone(&self) -> bool {
        use RetryReason::{Busy, LeaseLost, RecordUnreadable};
        let by_record = matches!(
            self.decision,
            Decision::Ack(AckReason::Duplicate)
                | Decision::Retry { reason: Busy | LeaseLost | RecordUnreadable, .. }
                | Decision::Poison(_)
        );
        by_record && self.facts.provider_time.is_none()
    }
}
