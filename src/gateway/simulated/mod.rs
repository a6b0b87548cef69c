//! A payment provider for local mode and tests: both contracts, real key semantics, and every fault.
//!
//! [`Provider`] is the machine, without sockets or waiting; [`Simulated`] puts it behind a loopback port, where the
//! faults are real: connections reset, bodies that end early, answers that never come. A [`Script`] says who
//! meets which fault.

mod bank;
mod call;
mod card;
mod chance;
mod connection;
mod course;
mod director;
mod effect;
mod execution;
mod http_contract;
mod keys;
mod message;
mod provider;
mod refusal;
mod script;
mod server;
mod spec;
mod stripe;

#[cfg(test)]
mod tests;

pub use self::{
    bank::SimulatedCharge,
    call::{Contract, Operation},
    chance::{Chance, ChanceError},
    effect::Effect,
    message::{Answer, Reply, Request, Ticket},
    provider::{LoggedRequest, Provider},
    script::{Matcher, Rule, Script},
    server::Simulated,
    spec::SpecError,
};
