//! Dead letters: why each died, what the ledger knows of its order, and the ways out of the queue.
//!
//! A dead-letter queue keeps messages, not reasons, and says nothing about money. So every look joins a message
//! with the record of its order, and every way out asks the record first: an order that was charged need not be
//! sent again, and one that waits for a person must not be.

mod discard;
mod edit;
mod file;
mod filter;
mod import;
mod letter;
mod mover;
mod outgoing;
mod pace;
mod stats;
mod walk;

pub use self::{
    discard::{Discard, Discarded},
    edit::{Edit, EditError, NotEdited},
    file::{FileError, Line},
    filter::{Filter, FilterError},
    import::Import,
    letter::{DeadLetter, Standing},
    mover::{Fate, Moved, Mover, Plan},
    pace::Pace,
    stats::{Group, Stats},
    walk::{Undertaker, Walk, WalkError},
};
