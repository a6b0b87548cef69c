//! Selective redrive: chosen letters back to a queue, each deleted only after its copy was taken.
//!
//! Killed at any point it loses nothing: a letter is in the dead-letter queue until its copy is in the other one.
//! What was sent and not yet deleted is met again by the next run, which asks the ledger again; by then it is
//! usually PAID and stays. If it is not, a second copy is a duplicate delivery, which charges nothing.

use std::ops::ControlFlow;

use super::{
    DeadLetter, Edit, Filter, NotEdited, Pace, Standing, Undertaker, Walk, WalkError, letter::SOURCE,
    outgoing,
};
use crate::{ledger::Ledger, queue::Queue, record::QueueArn};

/// What to move, and where to.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Which letters are meant.
    pub filter: Filter,
    /// Where to; `None` sends each to the queue it came from.
    pub to: Option<String>,
    /// Where those go of which nothing tells where they came from.
    pub otherwise: Option<String>,
    /// Also those whose order is paid already.
    pub also_paid: bool,
    /// Also those whose order waits for a person.
    pub also_held: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// What is changed in their bodies.
    pub edit: Option<Edit>,
}

/// What becomes of one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The filter does not mean it.
    NotMeant,
    /// Its order is paid: safe to drop, no need to send.
    Paid,
    /// Its order waits for a person, or its record cannot be read.
    Refused,
    /// Nothing tells which queue it came from.
    NoWay,
    /// The edit cannot be made.
    NotEdited,
    /// It is sent.
    Sent,
}

/// What a redrive did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Letters seen.
    pub seen: usize,
    /// Sent, and gone from the dead-letter queue.
    pub sent: usize,
    /// Orders, among those sent, of which it is not known whether money moved.
    pub unsettled: Vec<String>,
    /// Messages, among those sent, that no delivery can bring to a charge as they are, each with the reason.
    pub hopeless: Vec<String>,
    /// Orders that are paid and were left: safe to drop.
    pub paid: Vec<String>,
    /// Orders that were refused, because they wait for a person.
    pub refused: Vec<String>,
    /// Messages that were left because nothing tells where they came from.
    pub no_way: Vec<String>,
    /// Messages that the queue did not take; they stay.
    pub failed: Vec<String>,
    /// Sent, but still in the dead-letter queue.
    pub not_deleted: usize,
    /// Orders, among those sent, whose body was edited, each with the members that changed.
    pub edited: Vec<String>,
    /// Messages that were left because their body could not be edited, each with the reason.
    pub not_edited: Vec<String>,
}

/// Moves letters.
#[derive(Debug)]
pub struct Mover<'a, Q, L> {
    /// From where.
    pub from: &'a Undertaker<Q, L>,
    /// Which, and where to.
    pub plan: Plan,
    /// Whether to do it, or only to say what would be done.
    pub confirm: bool,
}

impl<Q: Queue, L: Ledger> Mover<'_, Q, L> {
    /// Walks through the queue once and moves what the plan means; `seen` is called as it goes on, between two batches,
    /// and tells whether it may.
    ///
    /// The first part of the answer is what was done, also before an error: the queue or the ledger did not answer.
    /// Nothing is lost then; run it again.
    pub async fn run(
        &self,
        mut pace: Pace,
        mut seen: impl FnMut(&Moved) -> ControlFlow<()>,
    ) -> (Moved, Result<(), WalkError>) {
        let mut walk = self.from.walk();
        let mut moved = Moved::default();
        let result = loop {
            match self.step(&mut walk, &mut pace, &mut moved).await {
                Ok(true) if seen(&moved).is_continue() => {}
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let finished = walk.finish().await;
        (moved, result.and(finished))
    }

    /// One batch; whether there may be more.
    async fn step(
        &self,
        walk: &mut Walk<'_, Q, L>,
        pace: &mut Pace,
        moved: &mut Moved,
    ) -> Result<bool, WalkError> {
        let letters = walk.next().await?;
        if letters.is_empty() {
            return Ok(false);
        }
        let mut judged = Vec::new();
        for letter in letters {
            judged.push(self.judge(letter).await?);
        }
        let mut chosen = Vec::new();
        for Judged { letter, fate, changed } in &judged {
            let fate = *fate;
            moved.seen = moved.seen.saturating_add(1);
            if fate == Fate::Sent && self.is_full(moved, chosen.len()) {
                break;
            }
            if let (Fate::Sent, Some(url)) = (fate, self.plan.destination(letter)) {
                chosen.push((letter, url));
            }
            moved.note(fate, letter);
            moved.note_edit(letter, changed);
        }
        self.send(walk, pace, chosen, moved).await?;
        Ok(!self.is_full(moved, 0))
    }

    /// What becomes of a letter, after the edit if the filter means it.
    async fn judge(&self, letter: DeadLetter) -> Result<Judged, WalkError> {
        let fate = self.plan.fate(&letter);
        let Some(edit) = self.plan.edit.as_ref().filter(|_| fate != Fate::NotMeant) else {
            return Ok(Judged { letter, fate, changed: Ok(Vec::new()) });
        };
        let edited = match edit.apply(&letter.message.body) {
            Ok(edited) => edited,
            Err(why) => return Ok(Judged { letter, fate: Fate::NotEdited, changed: Err(why) }),
        };
        let after = letter.with_body(edited.body, self.from).await?;
        let why = match &after.standing {
            Standing::NoOrder { code } => Some(NotEdited::NoOrder(code.clone())),
            Standing::Mismatch => Some(NotEdited::Mismatch),
            Standing::NoRecord
            | Standing::Begun
            | Standing::Unsettled
            | Standing::Paid { .. }
            | Standing::Declined { .. }
            | Standing::Held { .. }
            | Standing::Unreadable => None,
        };
        Ok(match why {
            Some(why) => Judged { letter, fate: Fate::NotEdited, changed: Err(why) },
            None => Judged { fate: self.plan.allowed(&after), letter: after, changed: Ok(edited.changed) },
        })
    }

    fn is_full(&self, moved: &Moved, more: usize) -> bool {
        let done = moved.sent.saturating_add(moved.failed.len()).saturating_add(more);
        self.plan.limit.is_some_and(|limit| done >= limit)
    }

    async fn send(
        &self,
        walk: &mut Walk<'_, Q, L>,
        pace: &mut Pace,
        chosen: Vec<(&DeadLetter, String)>,
        moved: &mut Moved,
    ) -> Result<(), WalkError> {
        let mut by_queue: Vec<(String, Vec<&DeadLetter>)> = Vec::new();
        for (letter, url) in chosen {
            match by_queue.iter_mut().find(|(known, _)| *known == url) {
                Some((_, letters)) => letters.push(letter),
                None => by_queue.push((url, vec![letter])),
            }
        }
        for (url, letters) in by_queue {
            self.send_to(&url, &letters, walk, pace, moved).await?;
        }
        Ok(())
    }

    async fn send_to(
        &self,
        url: &str,
        letters: &[&DeadLetter],
        walk: &mut Walk<'_, Q, L>,
        pace: &mut Pace,
        moved: &mut Moved,
    ) -> Result<(), WalkError> {
        let messages = letters.iter().map(|letter| outgoing::outgoing(letter, url)).collect();
        for batch in outgoing::batches(messages, pace.burst()) {
            if let [(place, message)] = &*batch
                && !outgoing::fits(message)
            {
                let name = letters.get(*place).map(|letter| letter.message.id.to_string());
                moved.failed.push(format!("{}: {}", name.unwrap_or_default(), outgoing::TOO_LARGE));
                continue;
            }
            if !self.confirm {
                moved.sent = moved.sent.saturating_add(batch.len());
                continue;
            }
            let (places, batch): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            pace.take(batch.len()).await;
            let results = self.from.queue.send(url, &batch).await?;
            let mut taken = Vec::new();
            for (place, result) in places.into_iter().zip(results) {
                let Some(letter) = letters.get(place) else { continue };
                match result {
                    Ok(_new_id) => taken.push(*letter),
                    Err(error) => moved.failed.push(format!("{}: {error}", letter.message.id)),
                }
            }
            moved.sent = moved.sent.saturating_add(taken.len());
            let left = walk.delete(&taken).await?;
            moved.not_deleted = moved.not_deleted.saturating_add(left);
        }
        Ok(())
    }
}

/// A letter, as it would be sent, and what becomes of it.
#[derive(Debug)]
struct Judged {
    letter: DeadLetter,
    fate: Fate,
    /// What the edit changed, or why nothing was edited.
    changed: Result<Vec<String>, NotEdited>,
}

impl Plan {
    /// What becomes of the letter.
    pub fn fate(&self, letter: &DeadLetter) -> Fate {
        if self.filter.takes(letter) { self.allowed(letter) } else { Fate::NotMeant }
    }

    /// What becomes of a letter that is meant.
    fn allowed(&self, letter: &DeadLetter) -> Fate {
        match &letter.standing {
            Standing::Paid { .. } if !self.also_paid => Fate::Paid,
            Standing::Held { .. } | Standing::Unreadable if !self.also_held => Fate::Refused,
            _ if self.destination(letter).is_none() => Fate::NoWay,
            Standing::Paid { .. }
            | Standing::Held { .. }
            | Standing::Unreadable
            | Standing::NoOrder { .. }
            | Standing::NoRecord
            | Standing::Begun
            | Standing::Unsettled
            | Standing::Declined { .. }
            | Standing::Mismatch => Fate::Sent,
        }
    }

    /// Where the letter goes. Only SQS's own move writes down where a message came from.
    pub(super) fn destination(&self, letter: &DeadLetter) -> Option<String> {
        let source = || letter.message.system.get(SOURCE);
        self.to.clone().or_else(|| QueueArn::parse(source()?)?.url()).or_else(|| self.otherwise.clone())
    }
}

impl Moved {
    /// Whether everything that was meant and allowed went through.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty()
            && self.not_deleted == 0
            && self.no_way.is_empty()
            && self.not_edited.is_empty()
    }

    pub(super) fn note(&mut self, fate: Fate, letter: &DeadLetter) {
        let name = letter.name();
        match fate {
            Fate::Paid => self.paid.push(name),
            Fate::Refused => self.refused.push(name),
            Fate::NoWay => self.no_way.push(letter.message.id.to_string()),
            Fate::Sent if letter.standing == Standing::Unsettled => self.unsettled.push(name),
            Fate::Sent if letter.standing.is_hopeless() => {
                self.hopeless.push(format!("{name}: {}", letter.standing.reason()));
            }
            Fate::NotMeant | Fate::NotEdited | Fate::Sent => {}
        }
    }

    fn note_edit(&mut self, letter: &DeadLetter, changed: &Result<Vec<String>, NotEdited>) {
        let name = letter.name();
        match changed {
            Ok(members) if members.is_empty() => {}
            Ok(members) => self.edited.push(format!("{name} ({})", members.join(", "))),
            Err(why) => self.not_edited.push(format!("{name}: {why}")),
        }
    }
}
