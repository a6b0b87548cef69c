//! Local mode: the deployed binary on a machine without AWS, Docker or an account.
//!
//! Everything the function talks to is here, on loopback and on free ports: the Lambda [`runtime_api`] hands it
//! events, an embedded [`dynamodb`] keeps the ledger, a simulated provider takes the money, the [`sqs_endpoint`]
//! serves queues and notes the visibility changes. The [`function`] itself is the real `bootstrap` as a child
//! process, wired by its [`environment`] only. [`stack`] starts all of it, [`answer`] reads what the function
//! answers as AWS does, and the [`mapping`] feeds it from a queue. A [`rehearsal`] runs generated orders through all
//! of it until the queue is empty, while the metrics that AWS would have are written into the function's [`log`]; the
//! [`audit`] then looks for every order. While it only serves, the other commands [`practice`] on it.

pub mod answer;
pub mod audit;
mod aws_metrics;
pub mod dynamodb;
pub mod environment;
pub mod function;
pub mod invoke_api;
pub mod log;
pub mod mapping;
pub mod practice;
pub mod rehearsal;
pub mod runtime_api;
pub mod sample;
pub mod sqs_endpoint;
pub mod stack;
pub mod worker_process;
