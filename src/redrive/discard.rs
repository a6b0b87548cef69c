//! Deletes chosen letters; refuses those whose orders are not settled.

use std::{collections::HashSet, ops::ControlFlow};

use super::{DeadLetter, Filter, Standing, Undertaker, Walk, WalkError, letter::IN_S3};
use crate::{ledger::Ledger, queue::Queue, record::MessageId};

/// What to delete.
#[derive(Debug)]
pub struct Discard<'a, Q, L> {
    /// From where.
    pub from: &'a Undertaker<Q, L>,
    /// Which letters are meant.
    pub filter: Filter,
    /// Of those only these, because a copy of each is kept; all if `None`.
    pub only: Option<HashSet<MessageId>>,
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
    /// Among those, orders of which it is not known whether they are paid.
    pub in_doubt: Vec<String>,
    /// Orders that were refused.
    pub refused: Vec<String>,
    /// Still in the queue although they should be gone.
    pub not_deleted: usize,
}

impl<Q: Queue, L: Ledger> Discard<'_, Q, L> {
    /// Walks through the queue once; `seen` is called as it goes on, between two batches, and tells whether it may.
    ///
    /// The first part of the answer is what was done, also before an error: the queue or the ledger did not answer.
    pub async fn run(
        &self,
        mut seen: impl FnMut(&Discarded) -> ControlFlow<()>,
    ) -> (Discarded, Result<(), WalkError>) {
        let mut walk = self.from.walk();
        let mut done = Discarded::default();
        let result = loop {
            match self.step(&mut walk, &mut done).await {
                Ok(true) if seen(&done).is_continue() => {}
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let finished = walk.finish().await;
        (done, result.and(finished))
    }

    /// One batch; whether there may be more.
    async fn step(&self, walk: &mut Walk<'_, Q, L>, done: &mut Discarded) -> Result<bool, WalkError> {
        let letters = walk.next().await?;
        let chosen: Vec<&DeadLetter> = letters.iter().filter(|letter| done.takes(self, letter)).collect();
        let left = if self.confirm { walk.delete(&chosen).await? } else { 0 };
        done.not_deleted = done.not_deleted.saturating_add(left);
        done.deleted = done.deleted.saturating_add(chosen.len().saturating_sub(left));
        Ok(!letters.is_empty())
    }
}

impl Discarded {
    fn takes<Q, L>(&mut self, discard: &Discard<'_, Q, L>, letter: &DeadLetter) -> bool {
        self.seen = self.seen.saturating_add(1);
        let kept = discard.only.as_ref().is_none_or(|only| only.contains(&letter.message.id));
        if !discard.filter.takes(letter) || !kept {
            return false;
        }
        let name = letter.name();
        match &letter.standing {
            Standing::Held { .. } | Standing::Unsettled | Standing::Unreadable if !discard.force => {
                self.refused.push(name);
                return false;
            }
            // It may be any order, and any record may be about it.
            Standing::NoOrder { code } if code == IN_S3 && !discard.force => {
                self.refused.push(name);
                return false;
            }
            Standing::Paid { .. } => {}
            Standing::Held { .. } | Standing::Unsettled | Standing::Unreadable => self.in_doubt.push(name),
            Standing::NoOrder { .. }
            | Standing::NoRecord
            | Standing::Begun
            | Standing::Declined { .. }
            | Standing::Mismatch => self.not_paid.push(name),
        }
        true
    }
}
