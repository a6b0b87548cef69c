//! What the worker did so far, and whether it still gets on.

use std::{
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::{Clock, Timestamp},
    metrics::{Counts, Metrics},
};

/// A worker that neither received nor finished anything for so long is stuck: six long polls.
const STUCK_AFTER: Duration = Duration::from_secs(120);

/// Counters and signs of life. A long poll that ends empty is one: it shows that the queue answers.
#[derive(Debug)]
pub struct Monitor {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    counts: Counts,
    receives: u64,
    receive_errors: u64,
    /// For the provider and for the ledger, as [`WAITS`] names them.
    waits: [Wait; 2],
    /// Visibility changes that failed since the last batch was counted.
    visibility_failures: usize,
    last_sign_of_life: Timestamp,
}

/// How long records waited, all together.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    records: u64,
    sum: Duration,
}

/// What a record waits for while it is worked on.
const WAITS: [&str; 2] = ["charge_once_provider_latency_seconds", "charge_once_store_latency_seconds"];

impl Monitor {
    /// Nothing was done yet, and nothing is wrong.
    pub fn new(clock: Clock) -> Self {
        let state = State {
            counts: Counts::default(),
            receives: 0,
            receive_errors: 0,
            waits: [Wait::default(); 2],
            visibility_failures: 0,
            last_sign_of_life: clock.now(),
        };
        Self { clock, state: Mutex::new(state) }
    }

    /// The counters of all batches so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Receives that the queue answered, empty ones too.
    pub fn receives(&self) -> u64 {
        self.state().receives
    }

    /// Whether something was received or finished lately.
    pub fn is_healthy(&self) -> bool {
        self.silence() < STUCK_AFTER
    }

    /// How long ago that was.
    pub fn silence(&self) -> Duration {
        self.clock.now().since(self.state().last_sign_of_life)
    }

    /// The counters in the text format of Prometheus.
    pub fn to_prometheus(&self) -> String {
        let silence = self.silence().as_secs();
        let state = self.state();
        let mut text = String::new();
        let counts = state.counts.all().map(|(name, count)| (format!("{}_total", snake_case(name)), count));
        let receives = [
            ("receives_total".to_owned(), state.receives),
            ("receive_errors_total".to_owned(), state.receive_errors),
        ];
        for (name, count) in counts.into_iter().chain(receives) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# TYPE charge_once_{name} counter\ncharge_once_{name} {count}");
        }
        for (name, Wait { records, sum }) in WAITS.into_iter().zip(state.waits) {
            let (seconds, millis) = (sum.as_secs(), sum.subsec_millis());
            let _ = writeln!(
                text,
                "# TYPE {name} summary\n{name}_sum {seconds}.{millis:03}\n{name}_count {records}"
            );
        }
        let name = "charge_once_seconds_since_progress";
        let _ = writeln!(text, "# TYPE {name} gauge\n{name} {silence}");
        text
    }

    pub(super) fn received(&self) {
        let mut state = self.state();
        state.receives = state.receives.saturating_add(1);
        state.last_sign_of_life = self.clock.now();
    }

    pub(super) fn receive_failed(&self) {
        let mut state = self.state();
        state.receive_errors = state.receive_errors.saturating_add(1);
    }

    pub(super) fn progressed(&self) {
        self.state().last_sign_of_life = self.clock.now();
    }

    pub(super) fn visibility_failed(&self, count: usize) {
        let mut state = self.state();
        state.visibility_failures = state.visibility_failures.saturating_add(count);
    }

    /// Visibility changes that failed and are in no batch's metrics yet.
    pub(super) fn take_visibility_failures(&self) -> usize {
        std::mem::take(&mut self.state().visibility_failures)
    }

    pub(super) fn count(&self, metrics: &Metrics) {
        let mut state = self.state();
        state.counts.add(metrics.counts());
        for (wait, times) in state.waits.iter_mut().zip(metrics.waits()) {
            wait.records = wait.records.saturating_add(u64::try_from(times.len()).unwrap_or(u64::MAX));
            wait.sum = times.iter().fold(wait.sum, |sum, time| sum.saturating_add(*time));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ChargedNotRecorded` as `charged_not_recorded`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    };

    use super::*;

    #[test]
    fn silence_makes_the_worker_unhealthy_and_any_receive_heals_it() {
        let now = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&now);
        let monitor =
            Monitor::new(Clock::from_fn(move || Timestamp::from_millis(read.load(Ordering::Relaxed))));
        now.store(119_999, Ordering::Relaxed);
        monitor.receive_failed();
        assert!(monitor.is_healthy());
        now.store(120_000, Ordering::Relaxed);
        assert!(!monitor.is_healthy());
        monitor.received();
        assert!(monitor.is_healthy());
    }

    #[test]
    fn every_counter_is_exposed_under_one_name() {
        let monitor = Monitor::new(Clock::system());
        monitor.received();
        let text = monitor.to_prometheus();
        assert!(text.contains("# TYPE charge_once_charged_not_recorded_total counter\ncharge_once_charged_not_recorded_total 0\n"));
        assert!(text.contains("\ncharge_once_receives_total 1\n"));
        assert_eq!(text.matches("# TYPE").count(), Counts::NAMES.len() + 5);
    }
}
