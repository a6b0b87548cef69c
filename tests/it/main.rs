//! What needs more than one module: one binary, so that the crates link once.

#[cfg(feature = "local")]
mod queue;
