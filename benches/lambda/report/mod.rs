//! Tables and plots, from the same figures.

pub(crate) mod bars;
pub(crate) mod lines;
mod svg;
pub(crate) mod table;

use std::time::Duration;

/// The middle of several measurements.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds with one decimal, whole ones from 100 on.
pub(crate) fn ms(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 99.95 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

/// Whole microseconds.
pub(crate) fn us(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// Megabytes (2^20 bytes) with one decimal.
pub(crate) fn mb(kib: u64) -> String {
    format!("{:.1} MB", as_f64(kib) / 1024.0)
}

/// Thousands of instructions.
pub(crate) fn thousands(count: u64) -> String {
    format!("{:.0} k", as_f64(count) / 1e3)
}

/// `a / b`
pub(crate) fn ratio(a: f64, b: f64) -> String {
    let ratio = if b > 0.0 { a / b } else { 0.0 };
    if ratio < 9.995 { format!("{ratio:.2} x") } else { format!("{ratio:.0} x") }
}

/// Counts here are far below 2^52.
pub(crate) fn as_f64(count: u64) -> f64 {
    u32::try_from(count).map_or_else(|_large| as_f64(count / 1024) * 1024.0, f64::from)
}
