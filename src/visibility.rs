//! Decisions -> how long each message that stays in the queue is hidden before its next try.

use std::{collections::HashMap, time::Duration};

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

/// What was drawn for a batch so far, in the order in which its records are decided about.
#[derive(Debug, Default)]
pub struct Drawn(HashMap<usize, u32>);

impl Drawn {
    /// The change for a message, unless it may be deleted or has no receipt handle.
    pub fn change(
        &mut self,
        judged: &Judged,
        rules: &VisibilityRules,
        random: &Random,
        now: Timestamp,
    ) -> Option<VisibilityChange> {
        let seconds = self.seconds(judged, rules, random, now)?;
        Some(VisibilityChange { receipt_handle: judged.record.receipt_handle.clone()?, seconds })
    }

    /// How long a message is hidden, in seconds; `None` for one that may be deleted.
    pub fn seconds(
        &mut self,
        judged: &Judged,
        rules: &VisibilityRules,
        random: &Random,
        now: Timestamp,
    ) -> Option<u32> {
        let of_head = judged.behind.and_then(|head| self.0.get(&head));
        let seconds = match of_head {
            // SQS hands out nothing of a group while one of its messages is hidden, so all wait alike.
            Some(seconds) => *seconds,
            None => seconds(judged, rules, random, now)?,
        };
        self.0.insert(judged.record.position, seconds);
        Some(seconds)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        charge::Outcome,
        decision::{AckReason, PoisonReason, RetryReason},
        record::{MessageId, ReceiptHandle, Record},
    };

    const RULES: VisibilityRules = VisibilityRules {
        backoff: Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) },
        max_receive_count: Some(8),
    };
    const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_000);

    fn judged(position: usize, receive_count: u32, decision: Decision) -> Judged {
        let record = Record {
            message_id: MessageId::new(format!("m-{position}")),
            receipt_handle: ReceiptHandle::new(format!("rh-{position}")),
            receive_count,
            first_received_at: Some(NOW),
            body: Ok(String::new()),
            ..Record::unusable(position)
        };
        Judged {
            record,
            order: None,
            outcome: Outcome::of(decision),
            behind: None,
            began: Timestamp::from_millis(0),
            took: Duration::ZERO,
        }
    }

    fn retry(after: RetryAfter) -> Decision {
        Decision::Retry { after, reason: RetryReason::Busy }
    }

    /// The shortest and the longest of many draws.
    fn range(receive_count: u32, after: RetryAfter) -> (u32, u32) {
        let random = Random::seeded(1);
        let one = judged(0, receive_count, retry(after));
        let drawn: Vec<u32> = (0..500).map(|_| seconds(&one, &RULES, &random, NOW).unwrap()).collect();
        (*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap())
    }

    #[test]
    fn each_row_of_the_table_has_its_range() {
        let seconds = Duration::from_secs;
        assert_eq!(range(1, RetryAfter::Backoff), (1, 5));
        let (_, longest) = range(4, RetryAfter::Backoff);
        assert!((30..=40).contains(&longest), "{longest}");
        let (shortest, longest) = range(1, RetryAfter::NotBefore(seconds(60)));
        assert_eq!((shortest, longest), (60, 60));
        assert_eq!(range(3, RetryAfter::Immediately), (0, 0));
        assert_eq!(range(1, RetryAfter::LeaseEnd(seconds(30))), (30, 30));
        assert_eq!(range(1, RetryAfter::LeaseEnd(Duration::from_millis(29_400))), (30, 30));
    }

    #[test]
    fn poison_and_the_last_receive_are_not_hidden() {
        let random = Random::seeded(1);
        let poison = judged(0, 1, Decision::Poison(PoisonReason::Mismatch));
        assert_eq!(seconds(&poison, &RULES, &random, NOW), Some(0));
        let last = judged(0, 8, retry(RetryAfter::NotBefore(Duration::from_secs(300))));
        assert_eq!(seconds(&last, &RULES, &random, NOW), Some(0));
    }

    #[test]
    fn delays_end_within_twelve_hours_of_the_first_receive() {
        let random = Random::seeded(1);
        let mut late = judged(0, 1, retry(RetryAfter::NotBefore(Duration::from_secs(900))));
        late.record.first_received_at = Some(NOW.minus(LONGEST).plus(Duration::from_secs(60)));
        assert_eq!(seconds(&late, &RULES, &random, NOW), Some(60));
        late.record.first_received_at = Some(NOW.minus(LONGEST).minus(Duration::from_secs(60)));
        assert_eq!(seconds(&late, &RULES, &random, NOW), Some(900));
    }

    #[test]
    fn followers_wait_as_long_as_their_head_and_done_messages_are_left_alone() {
        let head = judged(0, 3, retry(RetryAfter::NotBefore(Duration::from_secs(77))));
        let follower = Judged { behind: Some(0), ..judged(1, 1, retry(RetryAfter::Immediately)) };
        let done = judged(2, 1, Decision::Ack(AckReason::Charged));
        let mut nameless = judged(3, 1, Decision::Poison(PoisonReason::Mismatch));
        nameless.record.receipt_handle = None;
        let (mut drawn, random) = (Drawn::default(), Random::seeded(1));
        let changes = [head, follower, done, nameless].map(|one| drawn.change(&one, &RULES, &random, NOW));
        let seen = changes.map(|change| change.map(|it| (it.receipt_handle.to_string(), it.seconds)));
        assert_eq!(seen, [Some(("rh-0".into(), 77)), Some(("rh-1".into(), 77)), None, None]);
    }
}
