//! Everything that is tested from outside the crate, in one binary so that it links once.
#![expect(clippy::arithmetic_side_effects, reason = "tests")]
#![cfg(all(feature = "lambda", feature = "local"))]

mod abuse;
mod artefact;
mod cases;
mod concurrency;
mod crash_table;
mod deploy;
mod deployed;
mod docs;
mod fault_matrix;
mod fuzzing;
mod layering;
mod ledger;
mod local_mode;
mod model;
mod operations;
mod other_templates;
mod own_lambda;
mod payloads;
mod powertools_peers;
mod practice;
mod publishing;
mod queue;
mod queue_peers;
mod rehearsal;
mod shown;
mod situations;
mod soak;
mod spans;
mod stripe_peers;
mod support;
mod surroundings;
mod template;
mod template_parts;
mod typed;
mod worker;
