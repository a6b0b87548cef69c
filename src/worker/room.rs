//! Back-pressure: no more is received than can be begun soon.
//!
//! At most one round waits behind the messages that are worked on, and only where a round lasts no longer than half
//! a visibility timeout; what is slower is received only once there is a free place for it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::queue::MAX_BATCH;

/// How much of the slowest work's time is remembered with every faster one: 15 of 16 parts.
const MEMORY: u32 = 16;

/// The room for messages, shared by all receive loops.
#[derive(Debug)]
pub(super) struct Room {
    places: usize,
    longest_round: Duration,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Messages received, or about to be, whose result is not known.
    taken: usize,
    /// How long the slowest of the recent work took; `None` before the first.
    round: Option<Duration>,
    /// Nothing is received before this.
    closed_until: Option<Instant>,
}

impl Room {
    /// Room for `places` messages at once under this visibility timeout.
    pub(super) fn new(places: usize, visibility: Duration) -> Self {
        let longest_round = visibility.checked_div(2).unwrap_or_default();
        Self { places: places.max(1), longest_round, state: Mutex::default(), freed: Notify::new() }
    }

    /// Waits for room and takes it: for ten messages, or for half as many rather than wait longer.
    pub(super) async fn take(&self) -> u8 {
        loop {
            // Listening begins before looking: what is freed in between is not missed.
            let freed = self.freed.notified();
            match self.try_take() {
                Ok(count) => return count,
                Err(Some(closed_until)) => sleep_until(closed_until).await,
                Err(None) => freed.await,
            }
        }
    }

    fn try_take(&self) -> Result<u8, Option<Instant>> {
        let mut state = self.state();
        if let Some(until) = state.closed_until.filter(|until| *until > Instant::now()) {
            return Err(Some(until));
        }
        let ahead =
            if state.round.is_some_and(|round| round <= self.longest_round) { self.places } else { 0 };
        let free = self.places.saturating_add(ahead).saturating_sub(state.taken);
        let wanted = MAX_BATCH.min(self.places);
        if free < wanted.div_ceil(2) {
            return Err(None);
        }
        let count = free.min(wanted);
        state.taken = state.taken.saturating_add(count);
        u8::try_from(count).map_err(|_too_many| None)
    }

    /// Gives room back that was taken for messages.
    pub(super) fn give_back(&self, count: usize) {
        let mut state = self.state();
        state.taken = state.taken.saturating_sub(count);
        drop(state);
        self.freed.notify_waiters();
    }

    /// Learns how long the work on one message took.
    pub(super) fn learn(&self, took: Duration) {
        let mut state = self.state();
        let faded = state.round.map_or(Duration::ZERO, |round| {
            round.saturating_sub(round.checked_div(MEMORY).unwrap_or_default())
        });
        state.round = Some(took.max(faded));
    }

    /// Receives nothing for a while.
    pub(super) fn close_for(&self, pause: Duration) {
        let mut state = self.state();
        state.closed_until = state.closed_until.max(Instant::now().checked_add(pause));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const VISIBILITY: Duration = Duration::from_secs(30);

    #[test]
    fn before_the_first_result_only_free_places_are_filled() {
        let room = Room::new(12, VISIBILITY);
        assert_eq!(room.take().now_or_never(), Some(10));
        assert_eq!(room.take().now_or_never(), None, "2 are fewer than half of what is wanted");
        room.give_back(4);
        assert_eq!(room.take().now_or_never(), Some(6));
    }

    #[test]
    fn one_round_waits_behind_work_that_is_fast_enough() {
        let room = Room::new(10, VISIBILITY);
        room.learn(Duration::from_secs(15));
        assert_eq!([(); 3].map(|()| room.take().now_or_never()), [Some(10), Some(10), None]);
    }

    #[test]
    fn slow_work_is_remembered_for_a_while() {
        let room = Room::new(10, VISIBILITY);
        room.learn(Duration::from_secs(16));
        assert_eq!([(); 2].map(|()| room.take().now_or_never()), [Some(10), None]);
        room.learn(Duration::from_millis(1));
        assert_eq!(room.take().now_or_never(), Some(10), "15 s fit");
    }
}
