//! Many records: which run side by side, which in order, and when no more is begun.
//!
//! Records are parsed first, then laid into lanes: by message group on a FIFO queue, by order on a standard one. A
//! lane runs in order; lanes run side by side, a few at once.

mod lanes;
mod pace;
mod read;

use std::{
    future::ready,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use tracing::Instrument;

pub use self::pace::{AtOnce, Pace};
use self::{lanes::Lanes, read::Parsed};
use crate::{
    charge::{Delivery, Facts, Health, Outcome, Step},
    clock::{Clock, Timestamp},
    deadline::DROP_RECORDS,
    decision::{AckReason, Decision, PoisonReason, RetryAfter, RetryReason},
    order::{Order, OrderRules},
    payload::Payloads,
    queue::{Outgoing, Queue},
    record::{ORIGINAL_MESSAGE_ID, ORIGINAL_SENT_AT, REASON, Record, TextAttribute},
    telemetry::ErrorChain,
};

/// So many failures in a row open the breaker.
const BREAKER_LIMIT: u32 = 3;
/// SQS takes at most ten attributes; four may be ours.
const KEPT_ATTRIBUTES: usize = 6;
/// The attributes that a moved message gets.
const OURS: [&str; 4] = [REASON, ORIGINAL_MESSAGE_ID, "original_deduplication_id", ORIGINAL_SENT_AT];

/// The settings of a batch.
#[derive(Clone, Debug)]
pub struct BatchRules {
    /// How many lanes run at once, at least 1.
    pub concurrency: usize,
    /// A record is begun only if this much time is left.
    pub time_to_begin: Duration,
    /// What orders may look like.
    pub order: OrderRules,
    /// The dead-letter queue's URL, if poison is moved there at once (`POISON_MODE=dlq`).
    pub move_poison_to: Option<String>,
}

/// One record and what was decided about it.
#[derive(Debug)]
pub struct Judged {
    /// The record.
    pub record: Record,
    /// The order, if there is a valid one.
    pub order: Option<Order>,
    /// The decision and what was seen on the way.
    pub outcome: Outcome,
    /// The position of the record that failed before this one in its FIFO group, so that this was not begun.
    pub behind: Option<usize>,
    /// When the work began, or when it was decided not to begin it.
    pub began: Timestamp,
    /// How long the work took.
    pub took: Duration,
}

/// What a batch runs on.
#[derive(Debug)]
pub struct Batch<'a, S, Q> {
    /// What is done with an order.
    pub step: &'a S,
    /// Where poison is moved to.
    pub queue: &'a Q,
    /// Where bodies lie that were too large for a message.
    pub payloads: &'a Payloads,
    /// The settings.
    pub rules: &'a BatchRules,
    /// Time.
    pub clock: &'a Clock,
    /// When everything must have ended.
    pub deadline: Timestamp,
}

/// The result of a batch.
#[derive(Debug)]
pub struct BatchResult {
    /// Every record of the batch once, in the order of the batch.
    pub judged: Vec<Judged>,
    /// Whether records were left because of what others ran into.
    pub breaker_opened: bool,
}

impl<S: Step, Q: Queue> Batch<'_, S, Q> {
    /// Works on every record of the batch.
    pub async fn run(&self, records: Vec<Record>) -> BatchResult {
        self.run_paced(records, &AtOnce).await
    }

    /// Works on every record of the batch, each once `pace` has a place for it.
    pub async fn run_paced(&self, records: Vec<Record>, pace: &impl Pace) -> BatchResult {
        let breaker = Breaker::default();
        // Only a body that lies elsewhere takes time to read; it is not known before whose lane a record is in.
        let mut judged = Vec::with_capacity(records.len());
        let lanes = stream::iter(records)
            .map(|record| self.read(record))
            .buffered(self.rules.concurrency.max(1))
            .fold(Lanes::default(), |lanes, parsed| ready(lanes.with(parsed)))
            .await;
        stream::iter(lanes.into_vec())
            // On the heap, or its kilobytes would be moved with each step of the stream.
            .map(|lane| Box::pin(self.run_lane(lane, &breaker, pace)))
            .buffer_unordered(self.rules.concurrency.max(1))
            .for_each(|lane| {
                judged.extend(lane);
                ready(())
            })
            .await;
        // Positions differ, and a stable sort would take the memory of all records once more.
        judged.sort_unstable_by_key(|judged: &Judged| judged.record.position);
        BatchResult { judged, breaker_opened: breaker.is_open() }
    }

    async fn run_lane(&self, lane: Vec<Parsed>, breaker: &Breaker, pace: &impl Pace) -> Vec<Judged> {
        let mut done: Vec<Judged> = Vec::with_capacity(lane.len());
        let mut head = None;
        for Parsed { record, order } in lane {
            let judged = match (head, order) {
                (Some(head), order) => {
                    let (after, reason) = (RetryAfter::Immediately, RetryReason::NotStartedGroup);
                    Judged { behind: Some(head), ..self.not_begun(record, order.ok(), after, reason) }
                }
                (None, Ok(order)) => self.run_order(record, order, breaker, pace).await,
                (None, Err(outcome)) => self.done(record, None, *outcome, self.clock.now()).await,
            };
            // On a standard queue a lane holds messages of one order, and each may be tried for itself.
            if judged.record.is_fifo() && !judged.outcome.decision.is_ack() {
                head = head.or(Some(judged.record.position));
            }
            pace.decided(&judged);
            done.push(judged);
        }
        done
    }

    async fn run_order(&self, record: Record, order: Order, breaker: &Breaker, pace: &impl Pace) -> Judged {
        let _place = match pace.place(&record).await {
            Ok(place) => place,
            Err(reason) => return self.not_begun(record, Some(order), RetryAfter::Immediately, reason),
        };
        let began = self.clock.now();
        if began.plus(self.rules.time_to_begin) > self.deadline {
            let reason = RetryReason::NotStartedDeadline;
            return self.not_begun(record, Some(order), RetryAfter::Immediately, reason);
        }
        if breaker.is_open() {
            let reason = RetryReason::NotStartedBreaker;
            return self.not_begun(record, Some(order), RetryAfter::Backoff, reason);
        }
        let outcome = self.step(&order, &record).await;
        breaker.note(&outcome);
        self.done(record, Some(order), outcome, began).await
    }

    /// What became of a record that was worked on.
    async fn done(&self, record: Record, order: Option<Order>, outcome: Outcome, began: Timestamp) -> Judged {
        let outcome = self.poisoned(&record, outcome).await;
        Judged { record, order, outcome, behind: None, began, took: self.clock.now().since(began) }
    }

    fn not_begun(
        &self,
        record: Record,
        order: Option<Order>,
        after: RetryAfter,
        reason: RetryReason,
    ) -> Judged {
        Judged {
            record,
            order,
            outcome: Outcome::of(Decision::Retry { after, reason }),
            behind: None,
            began: self.clock.now(),
            took: Duration::ZERO,
        }
    }

    /// Runs the step; a panic, and work that does not end in time, are results of this record alone.
    async fn step(&self, order: &Order, record: &Record) -> Outcome {
        let delivery = Delivery {
            message_id: record.message_id.clone(),
            receive_count: record.receive_count,
            sent_at: record.first_sent_at(),
            deadline: self.deadline,
        };
        let span = tracing::info_span!(
            "record",
            message_id = record.message_id.as_ref().map(|id| id.as_str()),
            order_id = order.id().as_str(),
            trace_header = record.trace_header.as_deref(),
        );
        let work = AssertUnwindSafe(self.step.run(order, &delivery).instrument(span)).catch_unwind();
        let time = self.deadline.minus(DROP_RECORDS).since(self.clock.now());
        match tokio::time::timeout(time, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Outcome {
                decision: Decision::retry(RetryReason::Panicked),
                facts: Facts { error: Some(panic_text(&*panic)), ..Facts::default() },
            },
            Err(_elapsed) => Outcome::of(Decision::retry(RetryReason::Unfinished)),
        }
    }

    /// `POISON_MODE=dlq`: poison whose copy the dead-letter queue has taken is acknowledged; if it has not, the
    /// message takes the ordinary way.
    async fn poisoned(&self, record: &Record, outcome: Outcome) -> Outcome {
        let (Some(url), Decision::Poison(reason), Ok(body)) =
            (&self.rules.move_poison_to, &outcome.decision, &record.body)
        else {
            return outcome;
        };
        // A copy would come back here, and Lambda drops a message that goes round so for the 16th time.
        if record.queue.as_ref().is_some_and(|queue| queue.is_at(url)) {
            tracing::error!("DLQ_URL is the queue that the message came from: poison stays there");
            return outcome;
        }
        let copy = copy_for_dlq(record, body, reason);
        let time = self.deadline.minus(DROP_RECORDS).since(self.clock.now());
        let sent = tokio::time::timeout(time, self.queue.send(url, &[copy])).await;
        let error = match sent {
            Ok(Ok(results)) => match results.into_iter().next() {
                Some(Ok(_new_id)) => {
                    let decision = Decision::Ack(AckReason::MovedToDlq(reason.clone()));
                    return Outcome { decision, ..outcome };
                }
                Some(Err(error)) => error.to_string(),
                None => "no result for the message".to_owned(),
            },
            Ok(Err(error)) => ErrorChain(&error).to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        let message_id = record.message_id.as_ref().map(|id| id.as_str());
        tracing::warn!(
            message_id,
            error,
            "the message could not be moved to the dead-letter queue and stays"
        );
        outcome
    }
}

fn copy_for_dlq(record: &Record, body: &str, reason: &PoisonReason) -> Outgoing {
    let ours = |name: &str, value: String| TextAttribute::string(name, value);
    let mut attributes = vec![ours(REASON, reason.to_string())];
    attributes.extend(record.message_id.as_ref().map(|id| ours(ORIGINAL_MESSAGE_ID, id.to_string())));
    attributes
        .extend(record.deduplication_id.as_ref().map(|id| ours("original_deduplication_id", id.clone())));
    attributes.extend(record.first_sent_at().map(|at| ours(ORIGINAL_SENT_AT, at.as_millis().to_string())));
    let kept = record
        .attributes
        .iter()
        .filter(|attribute| !OURS.contains(&attribute.name.as_str()) && !attribute.value.is_empty());
    attributes.extend(kept.take(KEPT_ATTRIBUTES).cloned());
    Outgoing {
        body: body.to_owned(),
        attributes,
        group: record.group.clone(),
        // Not the producer's: within five minutes the dead-letter queue would swallow another message with the same
        // one, and the send would look like a success.
        // And none on a standard queue, which may have groups and refuses the id.
        deduplication_id: record.message_id.as_ref().filter(|_| record.is_fifo()).map(ToString::to_string),
        delay: Duration::ZERO,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}

/// Counts failures in a row of what every record depends on.
#[derive(Debug, Default)]
struct Breaker {
    failures: AtomicU32,
    /// Whether the latest failure was the provider's.
    of_the_provider: AtomicBool,
    open: AtomicBool,
}

impl Breaker {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    fn note(&self, outcome: &Outcome) {
        match outcome.facts.health {
            // The ledger's answer ends no row of failures of the provider.
            Health::Fine
                if outcome.is_of_the_ledger_alone() && self.of_the_provider.load(Ordering::Relaxed) => {}
            Health::Fine => self.failures.store(0, Ordering::Relaxed),
            Health::Failing => {
                self.of_the_provider.store(outcome.facts.provider_time.is_some(), Ordering::Relaxed);
                let before = self.failures.fetch_add(1, Ordering::Relaxed);
                if before.saturating_add(1) >= BREAKER_LIMIT {
                    self.open.store(true, Ordering::Relaxed);
                }
            }
            Health::Stop => self.open.store(true, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
