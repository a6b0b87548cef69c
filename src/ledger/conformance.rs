//! The suite that every ledger passes.
