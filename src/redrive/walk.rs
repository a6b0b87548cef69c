//! A walk through a dead-letter queue: every message once, and afterwards those that stay are visible again.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream};

use super::DeadLetter;
use crate::{
    clock::Clock,
    ledger::{Ledger, LedgerError},
    order::OrderRules,
    queue::{MAX_BATCH, Message, Queue, QueueError, Receive, VisibilityChange},
    record::{MessageId, ReceiptHandle},
};

/// After so many receives in a row that bring nothing new, there is nothing new.
const KNOWN_IN_A_ROW: u8 = 100;

/// Where dead letters lie and what tells about their orders.
#[derive(Clone, Debug)]
pub struct Undertaker<Q, L> {
    /// The queues.
    pub queue: Q,
    /// The ledger.
    pub ledger: L,
    /// The dead-letter queue's URL.
    pub url: String,
    /// How orders are read.
    pub rules: OrderRules,
    /// Time.
    pub clock: Clock,
    /// How long a message stays hidden while the walk goes on; if the walk is killed, it reappears after that.
    pub hide: Duration,
    /// How long to wait for another message before the walk ends.
    pub wait: Duration,
}

/// Why a walk cannot go on. What was received and not dealt with reappears.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The ledger, without which nothing is moved or dropped.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// A walk under way.
#[derive(Debug)]
pub struct Walk<'a, Q, L> {
    undertaker: &'a Undertaker<Q, L>,
    /// The newest handle of every message met; `None` once it is dealt with.
    met: HashMap<MessageId, Option<ReceiptHandle>>,
}

impl<Q: Queue, L: Ledger> Undertaker<Q, L> {
    /// Begins a walk. End it with [`Walk::finish`], whatever happens.
    pub fn walk(&self) -> Walk<'_, Q, L> {
        Walk { undertaker: self, met: HashMap::new() }
    }

    /// Every letter, or the first `limit`; afterwards they are visible again.
    ///
    /// # Errors
    /// The queue or the ledger did not answer.
    pub async fn look(&self, limit: usize) -> Result<Vec<DeadLetter>, WalkError> {
        let mut walk = self.walk();
        let mut letters = Vec::new();
        let seen = loop {
            match walk.next().await {
                Ok(batch) if batch.is_empty() => break Ok(()),
                Ok(batch) => letters.extend(batch),
                Err(error) => break Err(error),
            }
            if letters.len() >= limit {
                break Ok(());
            }
        };
        walk.finish().await?;
        seen?;
        letters.truncate(limit);
        Ok(letters)
    }
}

impl<Q: Queue, L: Ledger> Walk<'_, Q, L> {
    /// The next letters that were not met before; none at the end.
    ///
    /// # Errors
    /// The queue or the ledger did not answer.
    pub async fn next(&mut self) -> Result<Vec<DeadLetter>, WalkError> {
        let undertaker = self.undertaker;
        let receive = Receive { max_messages: 10, wait: undertaker.wait, visibility: Some(undertaker.hide) };
        // On a long walk what was met reappears, and would be received for ever.
        for _ in 0..KNOWN_IN_A_ROW {
            let messages = undertaker.queue.receive(&undertaker.url, receive).await?;
            if messages.is_empty() {
                break;
            }
            let new: Vec<Message> = messages.into_iter().filter(|message| self.is_new(message)).collect();
            if !new.is_empty() {
                return self.read(new).await;
            }
        }
        Ok(Vec::new())
    }

    /// Notes the message. On a long walk one comes back when its time is over; only its handle is new then.
    fn is_new(&mut self, message: &Message) -> bool {
        let before = self.met.insert(message.id.clone(), Some(message.receipt_handle.clone()));
        before.is_none()
    }

    async fn read(&self, messages: Vec<Message>) -> Result<Vec<DeadLetter>, WalkError> {
        let Undertaker { ledger, rules, clock, .. } = self.undertaker;
        let now = clock.now();
        let read = messages.into_iter().map(|message| DeadLetter::read(message, ledger, rules, now));
        let letters: Vec<_> = stream::iter(read).buffered(MAX_BATCH).collect().await;
        Ok(letters.into_iter().collect::<Result<_, _>>()?)
    }

    /// Deletes letters that were dealt with; answers how many could not be deleted and will be met again.
    ///
    /// # Errors
    /// The queue did not answer.
    pub async fn delete(&mut self, letters: &[&DeadLetter]) -> Result<usize, WalkError> {
        let mut left = 0_usize;
        for letters in letters.chunks(MAX_BATCH) {
            let handles: Vec<_> =
                letters.iter().map(|letter| letter.message.receipt_handle.clone()).collect();
            let results = self.undertaker.queue.delete(&self.undertaker.url, &handles).await?;
            for (letter, result) in letters.iter().zip(results) {
                match result {
                    Ok(()) => {
                        self.met.insert(letter.message.id.clone(), None);
                    }
                    Err(_) => left = left.saturating_add(1),
                }
            }
        }
        Ok(left)
    }

    /// Makes everything visible again that was met and not deleted.
    ///
    /// # Errors
    /// The queue did not answer; the rest reappears by itself after a while.
    pub async fn finish(self) -> Result<(), WalkError> {
        let changes: Vec<_> = self
            .met
            .into_values()
            .flatten()
            .map(|receipt_handle| VisibilityChange { receipt_handle, seconds: 0 })
            .collect();
        for changes in changes.chunks(MAX_BATCH) {
            // A handle that is too old means that the message is visible already.
            self.undertaker.queue.change_visibility(&self.undertaker.url, changes).await?;
        }
        Ok(())
    }
}
