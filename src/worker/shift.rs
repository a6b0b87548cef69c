//! One run of the worker: receive, begin, settle.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    Polled, Worker, WorkerRules,
    hand::Hand,
    room::Room,
    settle::{Change, Settler},
};
use crate::{
    backoff::Backoff,
    batch::{Batch, BatchResult, BatchRules, Judged, Pace},
    charge::{Health, Step},
    clock::epoch_millis,
    decision::{Decision, RetryReason},
    event::receive_count,
    heartbeat::Heartbeat,
    metrics::Metrics,
    queue::{MAX_BATCH, Message, Queue, QueueError, Receive},
    record::{MessageGroupId, MessageId, QueueArn, ReceiptHandle, Record},
    report,
    telemetry::ErrorChain,
    visibility::Drawn,
};

/// Waits between receives that fail.
const RECEIVE_BACKOFF: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30) };
/// Waits while the ledger or the provider fails: receiving on would only use up the messages' receives.
const FAILING_BACKOFF: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(60) };
/// The same while the provider's answers prove nothing, such as server errors or none at all. They may be about a few
/// orders alone, and others should not wait long for those.
const DOUBTFUL_BACKOFF: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(20) };
/// So many batches in a row count as doubtful.
const DOUBTFUL: u32 = 3;
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// SQS lets nobody keep a message for more than 12 h; some minutes before that its work must have ended.
const LONGEST_HOLD: Duration = Duration::from_secs(11 * 3600 + 50 * 60);

/// What the loops share.
pub(super) struct Shift<S, Q> {
    worker: Arc<Worker<S, Q>>,
    rules: BatchRules,
    queue: Option<Arc<QueueArn>>,
    room: Room,
    /// A permit for each message that is worked on; closed when nothing more is begun.
    places: Semaphore,
    hand: Arc<Hand>,
    settler: Settler,
    stopped: watch::Receiver<bool>,
    /// Batches in a row that failed because of the ledger or the provider.
    failing: AtomicU32,
}

impl<S: Step + 'static, Q: Queue + 'static> Shift<S, Q> {
    pub(super) fn begin(
        worker: Arc<Worker<S, Q>>,
        stopped: watch::Receiver<bool>,
        settling: &mut JoinSet<()>,
    ) -> Self {
        let hand = Arc::new(Hand::default());
        let places = worker.rules.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            rules: BatchRules { concurrency: MAX_BATCH, ..worker.batch.clone() },
            queue: QueueArn::of_url(&worker.rules.queue_url).map(Arc::new),
            room: Room::new(places, worker.rules.visibility),
            places: Semaphore::new(places),
            settler: worker.settler(&hand, settling),
            hand,
            worker,
            stopped,
            failing: AtomicU32::new(0),
        }
    }

    /// What was not begun until now will not be.
    pub(super) fn begin_nothing_more(&self) {
        self.places.close();
    }

    /// Receives until the worker stops; returns when everything that was received is decided about.
    pub(super) async fn receive_in_a_loop(self: Arc<Self>) {
        let mut working = JoinSet::new();
        let mut failures: u32 = 0;
        while let Some(received) = self.receive_beside(&mut working).await {
            match received {
                Ok(messages) => {
                    failures = 0;
                    let shift = Arc::clone(&self);
                    working.spawn(async move { shift.work(messages).await });
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.worker.monitor.receive_failed();
                    tracing::warn!(error = %ErrorChain(&error), failures, "nothing could be received");
                    let pause = RECEIVE_BACKOFF.delay(failures, &self.worker.random);
                    self.unless_stopped(sleep(pause)).await;
                }
            }
        }
        while working.join_next().await.is_some() {}
    }

    /// One receive, and the work on what it brings; nothing if the worker stops first.
    pub(super) async fn receive_once(&self) -> Result<Polled, QueueError> {
        let count = u8::try_from(self.worker.rules.concurrency.clamp(1, MAX_BATCH)).unwrap_or(1);
        let Some(messages) = self.unless_stopped(self.receive(count)).await.transpose()? else {
            return Ok(Polled::default());
        };
        let received = messages.len();
        let counts = *self.work(messages).await.counts();
        Ok(Polled { received, counts })
    }

    /// The result, or `None` if the worker stops first. What is ready when it stops still counts: messages that
    /// were received must be handed back.
    async fn unless_stopped<T>(&self, waiting: impl Future<Output = T>) -> Option<T> {
        let mut stopped = self.stopped.clone();
        if *stopped.borrow() {
            return None;
        }
        tokio::select! {
            biased;
            result = waiting => Some(result),
            // An error means that the worker is gone, which is a stop too.
            _ = stopped.wait_for(|stopped| *stopped) => None,
        }
    }

    /// What the next receive brings, or `None` if the worker stops first, or if a task at work panics outside of a step:
    /// its messages stay in hand and would be dropped whenever they came again, so the loop has to end, and the process
    /// with it.
    async fn receive_beside(
        &self,
        working: &mut JoinSet<Metrics>,
    ) -> Option<Result<Vec<Message>, QueueError>> {
        let receiving = self.unless_stopped(self.receive_when_there_is_room());
        tokio::pin!(receiving);
        loop {
            tokio::select! {
                biased;
                received = &mut receiving => return received,
                Some(ended) = working.join_next() => {
                    ended.ok()?;
                }
            }
        }
    }

    async fn receive_when_there_is_room(&self) -> Result<Vec<Message>, QueueError> {
        let count = self.room.take().await;
        let received = self.receive(count).await;
        let fresh = received.as_ref().map_or(0, Vec::len);
        self.room.give_back(usize::from(count).saturating_sub(fresh));
        received
    }

    /// Receives up to `count` messages; those that are in hand already are left out.
    async fn receive(&self, count: u8) -> Result<Vec<Message>, QueueError> {
        let WorkerRules { queue_url, visibility, wait, .. } = &self.worker.rules;
        let receive = Receive { max_messages: count, wait: *wait, visibility: Some(*visibility) };
        let mut messages = self.worker.queue.receive(queue_url, receive).await?;
        self.worker.monitor.received();
        messages.retain(|message| self.hand.take(message));
        Ok(messages)
    }

    /// Works on received messages; returns when each is decided about.
    async fn work(&self, messages: Vec<Message>) -> Metrics {
        let Worker { step, queue, payloads, rules, clock, monitor, .. } = &*self.worker;
        let heartbeat = Arc::new(Heartbeat::new(messages.iter().map(|message| message.id.clone())));
        let records: Vec<Record> = messages
            .into_iter()
            .enumerate()
            .map(|(position, message)| self.record(position, message))
            .collect();
        if records.is_empty() {
            return Metrics::default();
        }
        let deadline = clock.now().plus(LONGEST_HOLD);
        let batch = Batch { step, queue: &**queue, payloads, rules: &self.rules, clock, deadline };
        let pace = BatchPace { shift: self, heartbeat: &heartbeat, drawn: Mutex::default() };
        let newest = |id: &MessageId| self.hand.handle(id);
        let decided = async {
            let result = batch.run_paced(records, &pace).await;
            heartbeat.rest().await;
            result
        };
        let result = tokio::select! {
            biased;
            result = Box::pin(decided) => result,
            never = heartbeat.beat(&**queue, &rules.queue_url, rules.visibility, newest) => match never {},
        };
        self.mind_failures(&result);
        let now = clock.now();
        let metrics = Metrics::of(&result, monitor.take_visibility_failures(), now);
        monitor.count(&metrics);
        let queue = self.queue.as_ref().map(|queue| queue.name());
        (self.worker.emit)(&metrics.to_emf(&self.worker.service, queue, &self.worker.random.token(), now));
        metrics
    }

    /// Receives nothing for a while when the ledger or the provider fails batch after batch.
    fn mind_failures(&self, result: &BatchResult) {
        let outcomes = || result.judged.iter().map(|one| &one.outcome);
        if outcomes().any(|outcome| outcome.decision.is_ack() && !outcome.is_of_the_ledger_alone()) {
            self.failing.store(0, Ordering::Relaxed);
            return;
        }
        let fails = outcomes().any(|outcome| outcome.facts.health != Health::Fine);
        if !fails && !outcomes().any(|outcome| is_without_proof(&outcome.decision)) {
            return;
        }
        let in_a_row = self.failing.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if !fails && in_a_row < DOUBTFUL {
            return;
        }
        let backoff = if fails { FAILING_BACKOFF } else { DOUBTFUL_BACKOFF };
        let pause = backoff.delay(in_a_row, &self.worker.random).max(SHORTEST_PAUSE);
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(pause_ms, "the ledger, the provider or S3 fails: nothing is received for a while");
        self.room.close_for(pause);
    }

    fn record(&self, position: usize, message: Message) -> Record {
        let system = |name: &str| message.system.get(name).map(String::as_str);
        Record {
            position,
            queue: self.queue.clone(),
            group: system("MessageGroupId").and_then(MessageGroupId::new),
            deduplication_id: system("MessageDeduplicationId").map(str::to_owned),
            receive_count: receive_count(system("ApproximateReceiveCount")),
            sent_at: system("SentTimestamp").and_then(epoch_millis),
            first_received_at: system("ApproximateFirstReceiveTimestamp").and_then(epoch_millis),
            trace_header: system("AWSTraceHeader").map(str::to_owned),
            message_id: Some(message.id),
            receipt_handle: Some(message.receipt_handle),
            attributes: message.attributes,
            body: Ok(message.body),
        }
    }
}

fn is_without_proof(decision: &Decision) -> bool {
    match decision {
        Decision::Retry { reason: RetryReason::Gateway(kind), .. } => {
            ["UNKNOWN", "SETTLING"].contains(&kind.as_str())
        }
        Decision::Retry { .. } | Decision::Ack(_) | Decision::Poison(_) => false,
    }
}

/// What the worker adds to a batch.
struct BatchPace<'a, S, Q> {
    shift: &'a Shift<S, Q>,
    heartbeat: &'a Arc<Heartbeat>,
    drawn: Mutex<Drawn>,
}

/// A place among the messages that are worked on; it notes how long they take.
struct Place<'a> {
    room: &'a Room,
    since: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.room.learn(self.since.elapsed());
    }
}

impl<'a, S: Step + 'static, Q: Queue + 'static> Pace for BatchPace<'a, S, Q> {
    type Place = Place<'a>;

    async fn place(&self, record: &Record) -> Result<Place<'a>, RetryReason> {
        let permit = self.shift.places.acquire().await.map_err(|_closed| RetryReason::NotStartedStopping)?;
        if record.message_id.as_ref().is_some_and(|id| self.heartbeat.has_lost(id)) {
            return Err(RetryReason::NotStartedLost);
        }
        Ok(Place { room: &self.shift.room, since: Instant::now(), _permit: permit })
    }

    fn decided(&self, judged: &Judged) {
        let Worker { visibility, random, clock, monitor, spans, .. } = &*self.shift.worker;
        report::log(judged);
        spans.note(judged, None);
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = drawn.seconds(judged, visibility, random, clock.now());
        drop(drawn);
        if let Some(id) = &judged.record.message_id {
            self.settle(id, judged.record.receipt_handle.as_ref(), seconds);
        }
        monitor.progressed();
        self.shift.room.give_back(1);
    }
}

impl<S, Q> BatchPace<'_, S, Q> {
    fn settle(&self, id: &MessageId, worked_on: Option<&ReceiptHandle>, seconds: Option<u32>) {
        let Shift { hand, settler, .. } = self.shift;
        let lost = self.heartbeat.has_lost(id) && hand.handle(id).as_ref() == worked_on;
        self.heartbeat.stop(id);
        // Before the settler hears of it: the last result makes it send what it has.
        hand.decided();
        match seconds {
            None => settler.delete(id.clone()),
            // With an outdated handle it could be made visible while the other consumer works on it.
            Some(_) if lost => drop(hand.give_up(id)),
            Some(seconds) => {
                settler.change(Change { id: id.clone(), seconds, heartbeat: Arc::clone(self.heartbeat) });
            }
        }
    }
}
