//! Charges every order of an SQS queue at most once and loses none.
//!
//! This is the library behind two binaries: `bootstrap`, the Lambda function, and `charge-once`, the command line
//! that runs it on one machine. What it promises and how to deploy it is in `README.md`; why it is built like this
//! is in `ARCHITECTURE.md`.
//!
//! # Where to begin
//!
//! | you want | begin with |
//! |---|---|
//! | a Lambda function with a step of your own | `lambda::run` (feature `lambda`) and `docs/your-own-lambda.md` |
//! | another provider | [`gateway::OneShotGateway`] or [`gateway::TwoPhaseGateway`], under [`charge::OneShotCharge`] or [`charge::TwoPhaseCharge`] |
//! | another store | [`ledger::Ledger`], and [`ledger::conformance`] to know that it is one |
//! | something that is no charge | [`charge::Step`], as in the example below |
//! | a part only | [`event::records`], [`order::Order::parse`], [`money::Money::parse`], [`backoff::Backoff`], each a function of its arguments |
//!
//! # The flow
//!
//! ```text
//! event -> record -> envelope -> order -> batch -> charge -> decision -> visibility, response
//!                                                  |    |
//!                                             ledger    gateway
//! ```
//!
//! Imports point one way, and a test says so.
//!
//! # The layout
//!
//! | what comes in | |
//! |---|---|
//! | [`event`], [`record`] | the SQS event, read leniently; one delivery of one message |
//! | [`envelope`], [`payload`] | the order inside a plain, SNS or EventBridge body, or in S3 behind a pointer |
//! | [`order`], [`money`] | a valid order; an amount in minor units |
//!
//! | what is done | |
//! |---|---|
//! | [`batch`] | many records: lanes, concurrency, deadline, panics, breaker |
//! | [`charge`] | one order, one decision; the only place that knows ledger and gateway together |
//! | [`ledger`] | one record per order, written only under conditions; leases that are spent |
//! | [`gateway`] | the providers, and what their answers prove |
//!
//! | what comes out | |
//! |---|---|
//! | [`decision`] | acknowledge, try again, or give up, and why |
//! | [`visibility`], [`backoff`] | how long a failed message stays hidden |
//! | [`queue`] | the calls to SQS, answered entry by entry; a queue in memory |
//! | [`metrics`], [`spans`], [`telemetry`] | what can be seen of it |
//!
//! | around it | |
//! |---|---|
//! | `handler`, `response` | the Lambda shell and its answer (feature `lambda`) |
//! | `worker`, `heartbeat`, [`report`] | the long-poll shell (feature `worker`); the line of one record |
//! | [`config`], `clients`, `wiring`, `lambda` | the settings, read once; the AWS clients; both and the gateway put together; the function's process |
//! | [`deadline`] | the end of an invocation, part by part |
//! | [`clock`] | time as an argument |
//! | `generate` | events and messages of any number (feature `cli`) |
//! | `local` | Lambda, SQS, DynamoDB and a provider on loopback (feature `local`) |
//! | `redrive`, `doctor` | dead letters and the ledger; a deployment held to the rules that no linter knows (feature `cli`) |
//!
//! # Another step than a charge
//!
//! Batches, lanes, retries and answers know nothing of charges: they run a [`charge::Step`].
//!
//! ```
//! use charge_once::{
//!     charge::{Delivery, Outcome, Step},
//!     decision::{AckReason, Decision, RetryReason},
//!     order::Order,
//! };
//!
//! /// Books an order instead of charging it.
//! struct Book<F>(F);
//!
//! impl<F: Fn(&str, i64) -> bool + Send + Sync> Step for Book<F> {
//!     async fn run(&self, order: &Order, _delivery: &Delivery) -> Outcome {
//!         let booked = (self.0)(order.id().as_str(), order.money().minor());
//!         Outcome::of(match booked {
//!             true => Decision::Ack(AckReason::Done),
//!             false => Decision::retry(RetryReason::Store),
//!         })
//!     }
//! }
//! ```

pub mod backoff;
pub mod batch;
pub mod charge;
#[cfg(feature = "aws")]
pub mod clients;
pub mod clock;
pub mod config;
pub mod deadline;
pub mod decision;
#[cfg(feature = "cli")]
pub mod doctor;
pub mod envelope;
pub mod event;
pub mod gateway;
#[cfg(feature = "cli")]
pub mod generate;
#[cfg(feature = "lambda")]
pub mod handler;
#[cfg(feature = "worker")]
pub mod heartbeat;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod ledger;
#[cfg(feature = "local")]
pub mod local;
pub mod metrics;
pub mod money;
pub mod order;
pub mod payload;
pub mod queue;
pub mod record;
#[cfg(feature = "cli")]
pub mod redrive;
pub mod report;
#[cfg(feature = "lambda")]
pub mod response;
pub mod spans;
pub mod telemetry;
pub mod visibility;
#[cfg(feature = "aws")]
pub mod wiring;
#[cfg(feature = "worker")]
pub mod worker;
