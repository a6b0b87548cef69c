//! The crash table of docs/ledger.md, row by row: the charge step on a DynamoDB and a payment provider, both over
//! real sockets. A crash is work that is dropped where it stands.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod one_shot;
mod provider_faults;
mod shop;
mod two_phase;
