//! The worker over the memory queues, under paused time.
#![expect(clippy::arithmetic_side_effects, reason = "tests")]

mod flaky;

use std::sync::Mutex;

use tokio::{
    sync::{Semaphore, oneshot},
    time::{Instant, sleep},
};

use self::flaky::FlakyQueue;
use super::*;
use crate::{
    backoff::Backoff,
    charge::{Delivery, Facts, Health, Outcome},
    clock::Timestamp,
    decision::{AckReason, Code, Decision, RetryReason},
    order::{Order, OrderRules},
    queue::{
        Outgoing, Receive,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy},
    },
    record::MessageGroupId,
};

const SECOND: Duration = Duration::from_secs(1);

/// A step that takes its time, or waits for a permit.
struct SlowStep {
    work: Duration,
    gate: Option<Semaphore>,
    decide: fn(&str) -> Decision,
    health: Health,
    /// Order and receive count of every delivery that was begun.
    begun: Mutex<Vec<(String, u32)>>,
}

fn charged(_order: &str) -> Decision {
    Decision::Ack(AckReason::Charged)
}

impl SlowStep {
    fn taking(work: Duration) -> Self {
        Self { work, gate: None, decide: charged, health: Health::Fine, begun: Mutex::default() }
    }

    fn begun(&self) -> Vec<(String, u32)> {
        self.begun.lock().unwrap().clone()
    }
}

impl Step for SlowStep {
    async fn run(&self, order: &Order, delivery: &Delivery) -> Outcome {
        let id = order.id().as_str().to_owned();
        self.begun.lock().unwrap().push((id.clone(), delivery.receive_count));
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        sleep(self.work).await;
        let facts = Facts { health: self.health, ..Facts::default() };
        Outcome { decision: (self.decide)(&id), facts }
    }
}

/// A clock that follows tokio's paused time.
fn clock() -> Clock {
    let start = Instant::now();
    Clock::from_fn(move || Timestamp::from_millis(1_700_000_000_000).plus(start.elapsed()))
}

struct Bench {
    queues: MemoryQueues,
    flaky: Arc<FlakyQueue>,
    clock: Clock,
    name: &'static str,
}

impl Bench {
    fn new(name: &'static str) -> Self {
        let clock = clock();
        let queues = MemoryQueues::new(clock.clone(), Random::seeded(1));
        let fifo = name.ends_with(".fifo");
        let settings = || if fifo { QueueSettings::fifo() } else { QueueSettings::standard() };
        let dead = if fifo { "dead.fifo" } else { "dead" };
        queues.create(dead, settings()).unwrap();
        let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn(dead), max_receive_count: 5 };
        queues.create(name, QueueSettings { redrive: Some(redrive), ..settings() }).unwrap();
        Self { flaky: Arc::new(FlakyQueue::over(queues.clone())), queues, clock, name }
    }

    fn send(&self, ids: impl IntoIterator<Item = usize>, group: Option<&str>) {
        for id in ids {
            let body = format!(r#"{{"order_id":"o-{id}","amount":1,"currency":"EUR"}}"#);
            let deduplication_id = group.map(|_| id.to_string());
            let message = Outgoing {
                body,
                group: group.and_then(MessageGroupId::new),
                deduplication_id,
                ..Outgoing::default()
            };
            self.queues.send_one(self.name, message).unwrap();
        }
    }

    fn worker(&self, step: SlowStep, rules: WorkerRules) -> Arc<Worker<SlowStep, FlakyQueue>> {
        Arc::new(Worker {
            step,
            queue: Arc::clone(&self.flaky),
            payloads: Payloads::none(),
            rules: WorkerRules { queue_url: format!("http://sqs.test/000000000000/{}", self.name), ..rules },
            batch: BatchRules {
                concurrency: 1,
                time_to_begin: 12 * SECOND,
                order: OrderRules { default_currency: None, max_amount_minor: 1_000_000 },
                move_poison_to: None,
            },
            visibility: VisibilityRules {
                backoff: Backoff { base: 5 * SECOND, cap: 900 * SECOND },
                max_receive_count: Some(5),
            },
            service: "test".to_owned(),
            monitor: Arc::new(Monitor::new(self.clock.clone())),
            clock: self.clock.clone(),
            random: Random::seeded(7),
            emit: |_line| {},
            spans: Spans::off(),
        })
    }

    /// Messages in the queue, whatever their state.
    fn left(&self) -> u64 {
        let depth = self.queues.depth(self.name).unwrap();
        u64::try_from(depth.visible + depth.in_flight + depth.delayed).unwrap()
    }

    async fn until_empty(&self) {
        while self.left() > 0 {
            sleep(SECOND / 10).await;
        }
    }
}

fn rules(loops: usize, concurrency: usize, visibility: Duration) -> WorkerRules {
    WorkerRules { queue_url: String::new(), loops, concurrency, visibility, wait: 20 * SECOND }
}

#[tokio::test(start_paused = true)]
async fn work_longer_than_the_visibility_timeout_is_delivered_once() {
    let bench = Bench::new("orders");
    bench.send(0..20, None);
    let worker = bench.worker(SlowStep::taking(3 * SECOND), rules(30, 300, 2 * SECOND));
    Arc::clone(&worker).run(bench.until_empty()).await.unwrap();
    let begun = worker.step.begun();
    assert_eq!(begun.len(), 20);
    assert!(begun.iter().all(|(_, receive_count)| *receive_count == 1));
    assert_eq!((worker.monitor.counts().charged, worker.monitor.counts().redeliveries), (20, 0));
    let extensions = bench.flaky.extensions();
    assert!(extensions.len() >= 20 && extensions.iter().all(|seconds| *seconds == 2), "{extensions:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_for_their_group_are_kept_and_stay_in_order() {
    let bench = Bench::new("orders.fifo");
    bench.send(0..10, Some("a"));
    bench.send(10..12, Some("b"));
    let worker = bench.worker(SlowStep::taking(3 * SECOND), rules(2, 20, 2 * SECOND));
    let began = Instant::now();
    Arc::clone(&worker).run(bench.until_empty()).await.unwrap();
    let begun = worker.step.begun();
    assert!(begun.iter().all(|(_, receive_count)| *receive_count == 1), "{begun:?}");
    let of = |ids: std::ops::Range<usize>| {
        let ids: Vec<String> = ids.map(|id| format!("o-{id}")).collect();
        let seen: Vec<String> =
            begun.iter().map(|(id, _)| id.clone()).filter(|id| ids.contains(id)).collect();
        assert_eq!(seen, ids);
    };
    of(0..10);
    of(10..12);
    let took = began.elapsed();
    assert!(took < 31 * SECOND, "the groups ran side by side: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_hands_back_what_was_not_begun_and_finishes_the_rest() {
    let bench = Bench::new("orders");
    let step = SlowStep { gate: Some(Semaphore::new(5)), ..SlowStep::taking(Duration::ZERO) };
    let worker = bench.worker(step, rules(2, 5, 30 * SECOND));
    // Five quick ones teach the worker that it may receive a round ahead.
    bench.send(0..5, None);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = JoinSet::new();
    running.spawn(Arc::clone(&worker).run(async { stopped.await.unwrap_or(()) }));
    bench.until_empty().await;
    bench.send(5..15, None);
    while bench.queues.depth(bench.name).unwrap().in_flight < 10 {
        sleep(SECOND / 100).await;
    }
    assert_eq!(worker.step.begun().len(), 10, "five are done, five are at work, five wait");

    stop.send(()).unwrap();
    let stopping = Instant::now();
    let mut handed_back = 0;
    while handed_back < 5 {
        let receive = Receive { max_messages: 10, wait: 20 * SECOND, visibility: Some(60 * SECOND) };
        handed_back += bench.queues.receive_from(bench.name, receive).await.unwrap().len();
    }
    assert!(stopping.elapsed() <= SECOND / 10, "handed back after {:?}", stopping.elapsed());
    assert!(running.try_join_next().is_none(), "five are still at work");

    worker.step.gate.as_ref().unwrap().add_permits(5);
    assert_eq!(running.join_all().await, [Ok(())]);
    assert_eq!(worker.step.begun().len(), 10, "nothing was begun after the signal");
    assert_eq!(bench.left(), 5, "what was begun is deleted, what was handed back is the other consumer's");
}

#[tokio::test(start_paused = true)]
async fn a_single_receive_stops_like_many() {
    let bench = Bench::new("orders.fifo");
    let worker = bench.worker(SlowStep::taking(3 * SECOND), rules(1, 10, 30 * SECOND));
    let began = Instant::now();
    let polled = worker.poll_once(sleep(SECOND)).await.unwrap();
    assert_eq!((polled, began.elapsed()), (Polled::default(), SECOND), "nobody waits for a long poll");

    bench.send(0..2, Some("a"));
    let polled = worker.poll_once(sleep(SECOND)).await.unwrap();
    assert_eq!((polled.received, polled.counts.not_started), (2, 1));
    assert_eq!(worker.step.begun(), [("o-0".to_owned(), 1)]);
    assert_eq!(bench.left(), 1, "what was begun is deleted, the other is handed back");
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_receives_once_a_loop_in_twenty_seconds() {
    let bench = Bench::new("orders");
    let worker = bench.worker(SlowStep::taking(SECOND), rules(3, 30, 30 * SECOND));
    Arc::clone(&worker).run(sleep(201 * SECOND)).await.unwrap();
    assert_eq!(worker.monitor.receives(), 30);
    assert!(worker.monitor.is_healthy());
}

#[tokio::test(start_paused = true)]
async fn no_more_is_received_than_slow_work_has_places_for() {
    let bench = Bench::new("orders");
    bench.send(0..30, None);
    let worker = bench.worker(SlowStep::taking(20 * SECOND), rules(4, 3, 30 * SECOND));
    let queues = bench.queues.clone();
    let watch = async {
        while bench.left() > 0 {
            assert!(queues.depth("orders").unwrap().in_flight <= 3);
            sleep(SECOND).await;
        }
    };
    Arc::clone(&worker).run(watch).await.unwrap();
    assert_eq!(worker.monitor.counts().charged, 30);
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_no_other_can_join_waits_for_none() {
    let bench = Bench::new("orders");
    bench.send(0..3, None);
    let worker = bench.worker(SlowStep::taking(SECOND), rules(2, 20, 30 * SECOND));
    let began = Instant::now();
    let gone = async {
        while bench.left() > 0 {
            sleep(SECOND / 1000).await;
        }
    };
    Arc::clone(&worker).run(gone).await.unwrap();
    assert!(began.elapsed() < SECOND + SECOND / 200, "gone after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refused_delete_is_tried_again_and_the_work_is_not() {
    let bench = Bench::new("orders");
    bench.send(0..20, None);
    bench.flaky.refuse_deletes(12);
    let worker = bench.worker(SlowStep::taking(Duration::ZERO), rules(1, 10, 30 * SECOND));
    Arc::clone(&worker).run(bench.until_empty()).await.unwrap();
    assert_eq!(worker.step.begun().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_message_received_again_while_it_is_deleted_is_deleted_by_its_newest_handle() {
    let bench = Bench::new("orders");
    bench.send(0..1, None);
    // The delete fails for longer than the message is hidden.
    bench.flaky.refuse_deletes(4);
    let worker = bench.worker(SlowStep::taking(Duration::ZERO), rules(1, 10, SECOND));
    Arc::clone(&worker).run(bench.until_empty()).await.unwrap();
    assert_eq!(worker.step.begun().len(), 1);
    assert_eq!(bench.flaky.handles_deleted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_receives_back_off_and_do_not_delay_the_shutdown() {
    let bench = Bench::new("orders");
    bench.flaky.refuse_receives(u32::MAX);
    let worker = bench.worker(SlowStep::taking(Duration::ZERO), rules(1, 10, 30 * SECOND));
    let began = Instant::now();
    Arc::clone(&worker).run(sleep(600 * SECOND)).await.unwrap();
    let failures = bench.flaky.receives_refused();
    assert!((20..200).contains(&failures), "{failures} receives in ten minutes");
    assert_eq!(began.elapsed(), 600 * SECOND);
    assert!(!worker.monitor.is_healthy());
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_fails_for_good_keeps_the_message_from_being_begun() {
    // An expired handle as standard queues, as FIFO queues, and as neither model describes it.
    for code in ["ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"] {
        let bench = Bench::new("orders.fifo");
        bench.send(0..2, Some("a"));
        bench.flaky.lose_extensions(code);
        let worker = bench.worker(SlowStep::taking(3 * SECOND), rules(1, 10, 2 * SECOND));
        let polled = worker.poll_once(pending()).await.unwrap();
        assert_eq!(polled.received, 2);
        let begun = worker.step.begun();
        assert_eq!(begun, [("o-0".to_owned(), 1)], "{code}: the second may be with another consumer");
        assert_eq!(polled.counts.not_started, 1);
        assert_eq!(bench.flaky.extensions(), [2, 2], "{code}: one for each, and none after the refusal");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_poison_follow_the_same_rules_as_in_lambda() {
    let bench = Bench::new("orders");
    bench.send(0..1, None);
    let body = "no order".to_owned();
    bench.queues.send_one("orders", Outgoing { body, ..Outgoing::default() }).unwrap();
    let decide = |_: &str| Decision::retry(RetryReason::Store);
    let worker = bench.worker(SlowStep { decide, ..SlowStep::taking(SECOND) }, rules(2, 10, 30 * SECOND));
    let both_dead = async {
        while bench.queues.depth("dead").unwrap().visible < 2 {
            sleep(SECOND / 10).await;
        }
    };
    Arc::clone(&worker).run(both_dead).await.unwrap();
    let counts: Vec<u32> = worker.step.begun().iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5]);
    assert_eq!((worker.monitor.counts().poisoned, worker.monitor.counts().retried), (5, 5));
    assert!(clock_ran(&bench) < 100 * SECOND, "the last receive does not wait for its timeout");
}

fn clock_ran(bench: &Bench) -> Duration {
    bench.clock.now().since(Timestamp::from_millis(1_700_000_000_000))
}

/// Receives in ten minutes in which no order comes further.
async fn receives_of(decide: fn(&str) -> Decision) -> u64 {
    let bench = Bench::new("orders");
    bench.send(0..5000, None);
    let worker =
        bench.worker(SlowStep { decide, ..SlowStep::taking(Duration::ZERO) }, rules(4, 40, 30 * SECOND));
    Arc::clone(&worker).run(sleep(600 * SECOND)).await.unwrap();
    worker.monitor.receives()
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_answers_nothing_slows_the_receives_down() {
    let [unknown, conflict]: [fn(&str) -> Decision; 2] = [
        |_| Decision::retry(RetryReason::Gateway(Code::new("UNKNOWN"))),
        // About one order alone.
        |_| Decision::retry(RetryReason::Gateway(Code::new("CONFLICT"))),
    ];
    let (silent, busy) = (receives_of(unknown).await, receives_of(conflict).await);
    assert!(silent * 2 < busy, "{silent} of {busy}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_ledger_pauses_the_receives() {
    let bench = Bench::new("orders");
    bench.send(0..200, None);
    let decide = |_: &str| Decision::retry(RetryReason::Store);
    let step = SlowStep { decide, health: Health::Failing, ..SlowStep::taking(Duration::ZERO) };
    let worker = bench.worker(step, rules(4, 40, 30 * SECOND));
    Arc::clone(&worker).run(sleep(600 * SECOND)).await.unwrap();
    let receives = worker.monitor.receives();
    assert!(receives < 100, "{receives} receives in ten minutes");
}

/// A bug outside of a step: the messages of that batch stay in hand, and nobody would ever work on them.
#[tokio::test(start_paused = true)]
async fn a_task_that_panics_ends_the_worker() {
    for orders in [1, 10, 30] {
        let bench = Bench::new("orders");
        bench.send(0..orders, None);
        let worker = bench.worker(SlowStep::taking(Duration::ZERO), rules(1, 10, 30 * SECOND));
        let Ok(worker) = Arc::try_unwrap(worker) else { panic!("nobody else has it") };
        let worker = Arc::new(Worker { emit: |_line| panic!("no more standard output"), ..worker });
        assert_eq!(worker.run(pending()).await, Err(LoopEnded), "{orders}");
    }
}
