//! The last second and a half of an invocation, in the order in which its parts end.
//!
//! Lambda kills what runs past the deadline, and a killed batch comes back as a whole. So sending ends first, then
//! recording, then the records that still run are dropped, and the answer gets out.

use std::time::Duration;

/// Nothing is sent to a provider later than this before the deadline: its answer still has to be recorded.
pub const STOP_SENDING: Duration = Duration::from_millis(1500);
/// A charge is recorded until then: before records are dropped, so that one that could not be recorded is told.
pub const STOP_RECORDING: Duration = Duration::from_millis(900);
/// A record that still runs is dropped, and is a failure of the batch.
pub const DROP_RECORDS: Duration = Duration::from_millis(700);
/// Visibility changes end: what is left belongs to the answer itself.
pub const ANSWER: Duration = Duration::from_millis(200);
/// Spans are sent until then, within what is left for the answer.
pub const SPANS: Duration = Duration::from_millis(100);
