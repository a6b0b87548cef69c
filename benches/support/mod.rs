//! What the benches share.

pub(crate) mod delay;
pub(crate) mod function;
pub(crate) mod report;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
