//! Stand-ins for Stripe that other people wrote, as a second opinion on what this crate takes for granted. They run
//! as processes of their own: `make peers` starts them and names them in the environment. What they do otherwise
//! than Stripe is in `docs/peers.md`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod client;
mod keys;
mod states;

/// The URL in a variable that `scripts/peers` sets.
#[expect(clippy::disallowed_methods, reason = "names the process that scripts/peers started")]
fn peer(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `make peers`"))
}
