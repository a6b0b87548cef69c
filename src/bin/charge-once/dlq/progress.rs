//! The progress bar: on standard error, and only if that is a terminal.

use std::{ops::ControlFlow, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use crate::signals::Stop;

const TEMPLATE: &str = "{bar:30} {pos}/{len} {msg} {per_sec} {eta}";

/// A bar towards `total` messages.
pub(super) fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Moves the bar to what was seen; whether the next step may begin.
pub(super) fn step(bar: &ProgressBar, seen: usize, stop: &Stop) -> ControlFlow<()> {
    bar.set_position(count(seen));
    stop.go_on()
}

/// A count as a bar takes it.
pub(super) fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
