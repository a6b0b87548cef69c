//! Charges every order of an SQS queue at most once and loses none.
pub mod backoff;
pub mod clock;
pub mod envelope;
pub mod event;
pub mod money;
pub mod order;
pub mod queue;
pub mod record;
pub mod decision;
pub mod ledger;
pub mod gateway;
pub mod charge;
pub mod telemetry;
