//! Charges every order of an SQS queue at most once and loses none.
pub mod backoff;
pub mod clock;
pub mod queue;
pub mod record;
