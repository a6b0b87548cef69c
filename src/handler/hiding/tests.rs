use std::time::Duration;

use tokio::sync::Notify;

use super::*;
use crate::{
    backoff::Backoff,
    charge::Outcome,
    decision::{Decision, PoisonReason},
    queue::{EntryError, EntryResult, Message, Outgoing, QueueError, Receive},
    record::{MessageId, ReceiptHandle, RecordError},
};

const RULES: VisibilityRules = VisibilityRules {
    backoff: Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) },
    max_receive_count: None,
};
const DEADLINE: Timestamp = Timestamp::from_millis(100_000);

/// Tells of each call at once, and answers it when it may.
struct Slow {
    called: UnboundedSender<Vec<String>>,
    answer: Notify,
}

impl Queue for Slow {
    async fn receive(&self, _: &str, _: Receive) -> Result<Vec<Message>, QueueError> {
        unreachable!("a function does not receive")
    }
    async fn delete(&self, _: &str, _: &[ReceiptHandle]) -> Result<Vec<EntryResult>, QueueError> {
        unreachable!("a function does not delete")
    }
    async fn change_visibility(
        &self,
        _: &str,
        changes: &[VisibilityChange],
    ) -> Result<Vec<EntryResult>, QueueError> {
        self.called.send(changes.iter().map(|change| change.receipt_handle.to_string()).collect()).unwrap();
        self.answer.notified().await;
        let refused = EntryError { code: "ReceiptHandleIsInvalid".into(), message: "expired".into() };
        let refuse = |change: &VisibilityChange| match change.receipt_handle.as_str() {
            "rh-3" => Err(refused.clone()),
            _ => Ok(()),
        };
        Ok(changes.iter().map(refuse).collect())
    }
    async fn send(&self, _: &str, _: &[Outgoing]) -> Result<Vec<EntryResult<MessageId>>, QueueError> {
        unreachable!("a function does not send")
    }
}

fn failed(position: usize) -> Judged {
    let record = Record {
        message_id: MessageId::new(format!("m-{position}")),
        receipt_handle: ReceiptHandle::new(format!("rh-{position}")),
        ..Record::unusable(position)
    };
    let outcome = Outcome::of(Decision::Poison(PoisonReason::Record(RecordError::NotAnObject)));
    let began = Timestamp::from_millis(0);
    Judged { record, order: None, outcome, behind: None, began, took: Duration::ZERO }
}

fn clock() -> Clock {
    Clock::from_fn(|| Timestamp::from_millis(0))
}

#[tokio::test]
async fn ten_failures_are_told_while_the_batch_is_still_at_work() {
    let (clock, random) = (clock(), Random::seeded(1));
    let (called, mut calls) = unbounded_channel();
    let queue = Slow { called, answer: Notify::new() };
    let (hiding, changes) = Hiding::new(&RULES, &random, &clock);
    let batch = async {
        (0..12).for_each(|position| hiding.decided(&failed(position)));
        let first = calls.recv().await.unwrap();
        queue.answer.notify_one();
        drop(hiding);
        let last = calls.recv().await.unwrap();
        queue.answer.notify_one();
        (first, last)
    };
    let made = Calls { queue: &queue, url: Some("q"), clock: &clock, deadline: DEADLINE };
    let ((first, last), failures) = tokio::join!(batch, made.make(changes));
    assert_eq!((first.len(), last, failures), (10, vec!["rh-10".to_owned(), "rh-11".to_owned()], 1));
}

/// How many of three changes fail at a queue that never answers.
async fn unanswered(url: Option<&str>) -> usize {
    let (clock, random) = (clock(), Random::seeded(1));
    let (called, _calls) = unbounded_channel();
    let queue = Slow { called, answer: Notify::new() };
    let (hiding, changes) = Hiding::new(&RULES, &random, &clock);
    (0..3).for_each(|position| hiding.decided(&failed(position)));
    drop(hiding);
    Calls { queue: &queue, url, clock: &clock, deadline: DEADLINE }.make(changes).await
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_in_time_has_failed() {
    assert_eq!(unanswered(Some("q")).await, 3);
}

#[tokio::test]
async fn without_an_address_all_changes_have_failed() {
    assert_eq!(unanswered(None).await, 3);
}
