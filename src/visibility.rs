//! Decisions -> how long each message that stays in the queue is hidden before its next try.

use std::time::Duration;

use crate::{
    backoff::{Backoff, Random},
    batch::Judged,
    clock::Timestamp,
    decision::{Decision, RetryAfter},
    queue::VisibilityChange,
};

/// SQS refuses a timeout that ends later than this after the message was received.
const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// How much longer than a lease its followers wait at most.
const AFTER_LEASE: Duration = Duration::from_secs(1);

/// The settings.
#[derive(Clone, Copy, Debug)]
pub struct VisibilityRules {
    /// For whatever is tried again without a better reason.
    pub backoff: Backoff,
    /// The queue's `maxReceiveCount`, if it is known.
    pub max_receive_count: Option<u32>,
}

/// The changes for a batch: one for each message that is not acknowledged and has a receipt handle.
pub fn changes(
    judged: &[Judged],
    rules: &VisibilityRules,
    random: &Random,
    now: Timestamp,
) -> Vec<VisibilityChange> {
    let mut drawn: Vec<(usize, u32)> = Vec::with_capacity(judged.len());
    let mut changes = Vec::new();
    for one in judged {
        let of_head = one.behind.and_then(|head| drawn.iter().find(|(position, _)| *position == head));
        let seconds = match of_head {
            // SQS hands out nothing of a group while one of its messages is hidden, so all wait alike.
            Some((_, seconds)) => Some(*seconds),
            None => seconds(one, rules, random, now),
        };
        let Some(seconds) = seconds else { continue };
        drawn.push((one.record.position, seconds));
        if let Some(handle) = &one.record.receipt_handle {
            changes.push(VisibilityChange { receipt_handle: handle.clone(), seconds });
        }
    }
    changes
}

/// `None` for a message that may be deleted.
fn seconds(judged: &Judged, rules: &VisibilityRules, random: &Random, now: Timestamp) -> Option<u32> {
    let record = &judged.record;
    let after = match &judged.outcome.decision {
        Decision::Ack(_) => return None,
        Decision::Poison(_) => return Some(0),
        Decision::Retry { after, .. } => *after,
    };
    // SQS moves a message to the dead-letter queue on the receive after the last allowed one.
    if rules.max_receive_count.is_some_and(|max| record.receive_count >= max) {
        return Some(0);
    }
    let backoff = || rules.backoff.delay(record.receive_count, random);
    let seconds = match after {
        RetryAfter::Immediately => return Some(0),
        RetryAfter::Backoff => whole_seconds_up(backoff()),
        RetryAfter::NotBefore(earliest) => whole_seconds_up(backoff().max(earliest)),
        RetryAfter::LeaseEnd(left) => {
            whole_seconds_up(left).max(left.saturating_add(random.up_to(AFTER_LEASE)).as_secs())
        }
    };
    let left = record.first_received_at.map(|first| LONGEST.saturating_sub(now.since(first)).as_secs());
    // A message first received more than 12 h ago has been received again since, which starts SQS's clock anew.
    let seconds =
        left.filter(|left| *left > 0).map_or(seconds, |left| seconds.min(left)).min(LONGEST.as_secs());
    u32::try_from(seconds).ok()
}

fn whole_seconds_up(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}
