//! Sends exported messages to a queue, after asking the ledger about each.

use std::ops::ControlFlow;

use super::{DeadLetter, Fate, Moved, Pace, Plan, WalkError, outgoing};
use crate::{
    clock::Clock,
    ledger::Ledger,
    order::OrderRules,
    queue::{Message, Queue},
};

/// Sends messages that are in no queue.
#[derive(Debug)]
pub struct Import<'a, Q, L> {
    /// The queues.
    pub queue: &'a Q,
    /// The ledger.
    pub ledger: &'a L,
    /// How orders are read.
    pub rules: OrderRules,
    /// Time.
    pub clock: Clock,
    /// Which messages, and where to.
    pub plan: Plan,
    /// Whether to do it, or only to say what would be done.
    pub confirm: bool,
}

impl<Q: Queue, L: Ledger> Import<'_, Q, L> {
    /// Sends the messages in their order; `seen` is called as it goes on, between two messages, and tells whether it may.
    /// Run twice it sends twice, save those whose orders are paid by then.
    ///
    /// The first part of the answer is what was done, also before an error: the queue or the ledger did not answer.
    pub async fn run(
        &self,
        messages: Vec<Message>,
        mut pace: Pace,
        mut seen: impl FnMut(&Moved) -> ControlFlow<()>,
    ) -> (Moved, Result<(), WalkError>) {
        let mut moved = Moved::default();
        for message in messages {
            if let Err(error) = self.send(message, &mut pace, &mut moved).await {
                return (moved, Err(error));
            }
            if seen(&moved).is_break() {
                break;
            }
        }
        (moved, Ok(()))
    }

    async fn send(&self, message: Message, pace: &mut Pace, moved: &mut Moved) -> Result<(), WalkError> {
        let letter = &DeadLetter::read(message, self.ledger, &self.rules, self.clock.now()).await?;
        let fate = self.plan.fate(letter);
        moved.note(fate, letter);
        moved.seen = moved.seen.saturating_add(1);
        let (Fate::Sent, Some(url)) = (fate, self.plan.destination(letter)) else { return Ok(()) };
        let copy = outgoing::of_file(letter, &url);
        if !outgoing::fits(&copy) {
            moved.failed.push(format!("{}: {}", letter.message.id, outgoing::TOO_LARGE));
            return Ok(());
        }
        if !self.confirm {
            moved.sent = moved.sent.saturating_add(1);
            return Ok(());
        }
        pace.take(1).await;
        let results = self.queue.send(&url, &[copy]).await?;
        match results.into_iter().next() {
            Some(Ok(_new_id)) => moved.sent = moved.sent.saturating_add(1),
            Some(Err(error)) => moved.failed.push(format!("{}: {error}", letter.message.id)),
            None => moved.failed.push(format!("{}: no answer", letter.message.id)),
        }
        Ok(())
    }
}
