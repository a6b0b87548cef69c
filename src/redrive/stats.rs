//! Dead letters by reason: how many, how old, how often received, what the ledger says.

use std::{collections::BTreeMap, time::Duration};

use super::DeadLetter;

/// A summary of a dead-letter queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By reason, the largest group first.
    pub groups: Vec<Group>,
    /// How many letters.
    pub total: usize,
}

/// The letters that died of one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// The age of the oldest.
    pub oldest: Duration,
    /// The age of the youngest.
    pub youngest: Duration,
    /// The lowest and the highest receive count.
    pub receives: (u32, u32),
    /// How many stand how in the ledger.
    pub ledger: BTreeMap<&'static str, usize>,
}

impl Stats {
    /// Sums up.
    pub fn of(letters: &[DeadLetter]) -> Self {
        let mut by_reason: BTreeMap<&str, Group> = BTreeMap::new();
        for letter in letters {
            by_reason.entry(&letter.reason).or_default().add(letter);
        }
        let mut groups: Vec<_> = by_reason.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        Self { groups, total: letters.len() }
    }
}

impl Group {
    fn add(&mut self, letter: &DeadLetter) {
        if self.count == 0 {
            self.reason.clone_from(&letter.reason);
            self.youngest = letter.age;
            self.receives = (letter.receive_count, letter.receive_count);
        }
        self.count = self.count.saturating_add(1);
        self.oldest = self.oldest.max(letter.age);
        self.youngest = self.youngest.min(letter.age);
        let (lowest, highest) = self.receives;
        self.receives = (lowest.min(letter.receive_count), highest.max(letter.receive_count));
        let count = self.ledger.entry(letter.standing.name()).or_default();
        *count = count.saturating_add(1);
    }
}
