//! Deletes chosen letters; refuses those whose orders are not settled.

use super::{DeadLetter, Filter, Standing, Undertaker, WalkError};
use crate::{ledger::Ledger, queue::Queue};

/// What to delete.
#[derive(Debug)]
pub struct Discard<'a, Q, L> {
    /// From where.
    pub from: &'a Undertaker<Q, L>,
    /// Which letters are meant.
    pub filter: Filter,
    /// Also those whose order waits for a person, or of which it is not known whether money moved.
    pub force: bool,
    /// Whether to do it, or only to say what would be done.
    pub confirm: bool,
}

/// What a discard did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// Letters seen.
    pub seen: usize,
    /// Deleted.
    pub deleted: usize,
    /// Among those, orders that are not paid: they will never be charged.
    pub not_paid: Vec<String>,
    /// Orders that were refused.
    pub refused: Vec<String>,
    /// Still in the queue although they should be gone.
    pub not_deleted: usize,
}

impl<Q: Queue, L: Ledger> Discard<'_, Q, L> {
    /// Walks through the queue once; `seen` is called as it goes on.
    ///
    /// # Errors
    /// The queue or the ledger did not answer.
    pub async fn run(&self, mut seen: impl FnMut(&Discarded)) -> Result<Discarded, WalkError> {
        let mut walk = self.from.walk();
        let mut done = Discarded::default();
        let result = loop {
            let letters = match walk.next().await {
                Ok(letters) if letters.is_empty() => break Ok(done),
                Ok(letters) => letters,
                Err(error) => break Err(error),
            };
            let chosen: Vec<&DeadLetter> = letters.iter().filter(|letter| done.takes(self, letter)).collect();
            let left = match self.confirm {
                true => match walk.delete(&chosen).await {
                    Ok(left) => left,
                    Err(error) => break Err(error),
                },
                false => 0,
            };
            done.not_deleted = done.not_deleted.saturating_add(left);
            done.deleted = done.deleted.saturating_add(chosen.len().saturating_sub(left));
            seen(&done);
        };
        let finished = walk.finish().await;
        let done = result?;
        finished?;
        Ok(done)
    }
}

impl Discarded {
    fn takes<Q, L>(&mut self, discard: &Discard<'_, Q, L>, letter: &DeadLetter) -> bool {
        self.seen = self.seen.saturating_add(1);
        if !discard.filter.takes(letter) {
            return false;
        }
        let name =
            letter.order_id.as_ref().map_or_else(|| letter.message.id.to_string(), ToString::to_string);
        match &letter.standing {
            Standing::Held { .. } | Standing::Unsettled | Standing::Unreadable if !discard.force => {
                self.refused.push(name);
                return false;
            }
            Standing::Paid { .. } => {}
            Standing::Held { .. }
            | Standing::Unsettled
            | Standing::Unreadable
            | Standing::NoOrder { .. }
            | Standing::NoRecord
            | Standing::Begun
            | Standing::Declined { .. }
            | Standing::Mismatch => self.not_paid.push(name),
        }
        true
    }
}
