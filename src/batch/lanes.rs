//! Which records wait for each other: those of a message group on a FIFO queue, those of one order on a standard one.

use std::collections::HashMap;

use super::read::Parsed;

/// Every record once; inside a lane records keep the order in which they came.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: Vec<Vec<Parsed>>,
    by_key: HashMap<String, usize>,
}

impl Lanes {
    /// Puts the record at the end of its lane.
    pub(super) fn with(mut self, parsed: Parsed) -> Self {
        let key = match (&parsed.order, parsed.record.is_fifo()) {
            // Real FIFO queues always name a group; a record without one is its own lane.
            (_, true) => parsed.record.group.as_ref().map(|group| format!("group {group}")),
            (Ok(order), false) => Some(format!("order {}", order.id())),
            (Err(_), false) => None,
        };
        let next = self.lanes.len();
        let lane = key.and_then(|key| self.lanes.get_mut(*self.by_key.entry(key).or_insert(next)));
        match lane {
            Some(lane) => lane.push(parsed),
            None => self.lanes.push(vec![parsed]),
        }
        self
    }

    pub(super) fn into_vec(self) -> Vec<Vec<Parsed>> {
        self.lanes
    }
}
