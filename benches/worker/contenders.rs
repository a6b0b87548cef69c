//! Who works on the queue: the worker, and the loop of most guides in Rust and in Python.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use charge_once::{
    backoff::{Backoff, Random},
    batch::BatchRules,
    charge::{Delivery, Outcome, Step},
    clock::Clock,
    decision::{AckReason, Decision},
    order::{Order, OrderRules},
    payload::Payloads,
    queue::sqs::SqsQueue,
    spans::Spans,
    visibility::VisibilityRules,
    worker::{Monitor, Worker, WorkerRules},
};
use tokio::time::Instant;

use super::{
    DELAY, Task, per_second, plain_loop,
    site::{Kind, Site},
};

/// Messages a second, and of the worker how many deliveries were not the first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Speed {
    pub(crate) per_second: u64,
    pub(crate) redelivered: Option<u64>,
}

/// Acknowledges every order at once.
struct Instantly;

impl Step for Instantly {
    async fn run(&self, _order: &Order, _delivery: &Delivery) -> Outcome {
        Outcome::of(Decision::Ack(AckReason::Charged))
    }
}

fn build(site: &Site, loops: u32) -> Arc<Worker<Instantly, SqsQueue>> {
    let loops = usize::try_from(loops).unwrap();
    Arc::new(Worker {
        step: Instantly,
        queue: Arc::new(SqsQueue::new(site.client()).receiving_over(site.client())),
        payloads: Payloads::none(),
        spans: Spans::off(),
        rules: WorkerRules {
            queue_url: site.queue_url().to_owned(),
            loops,
            concurrency: loops * 10,
            visibility: Duration::from_secs(60),
            wait: Duration::from_secs(20),
        },
        batch: BatchRules {
            concurrency: 10,
            time_to_begin: Duration::from_secs(12),
            order: OrderRules { default_currency: None, max_amount_minor: 1_000_000 },
            move_poison_to: None,
        },
        visibility: VisibilityRules {
            backoff: Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) },
            max_receive_count: None,
        },
        service: "bench".to_owned(),
        monitor: Arc::new(Monitor::new(Clock::system())),
        clock: Clock::system(),
        random: Random::System,
        emit: |_line| {},
    })
}

/// From its start until every message is deleted.
pub(crate) async fn worker(kind: Kind<'_>, task: Task, delay: Duration) -> Speed {
    let site = Site::start(kind, task.count, delay).await;
    let worker = build(&site, task.loops);
    let began = Instant::now();
    let mut measured = Duration::ZERO;
    let finished = async {
        while worker.monitor.counts().charged < u64::from(task.count) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        site.until_empty().await;
        measured = began.elapsed();
    };
    Arc::clone(&worker).run(finished).await.expect("no loop ends by itself");
    Speed {
        per_second: per_second(task.count, measured),
        redelivered: Some(worker.monitor.counts().redeliveries),
    }
}

/// Without a delay also without the proxy.
pub(crate) async fn plain(kind: Kind<'_>, task: Task, delay: Duration) -> Speed {
    let site = Site::start(kind, task.count, delay).await;
    let client = if delay.is_zero() { site.direct().clone() } else { site.client() };
    let began = Instant::now();
    plain_loop::run(task.loops, &client, site.queue_url()).await;
    Speed { per_second: per_second(task.count, began.elapsed()), redelivered: None }
}

/// The same loop in Python with boto3, which measures itself so that its start does not count.
pub(crate) async fn boto3(python: &Path, kind: Kind<'_>, task: Task) -> Speed {
    let site = Site::start(kind, task.count, DELAY).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/worker/boto3_loop.py");
    let mut command = Command::new(python);
    command.args([script, site.url(), site.queue_url(), &task.loops.to_string()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let micros: u64 = text.trim().parse().unwrap_or_else(|_| {
        println!("{}", String::from_utf8_lossy(&output.stderr));
        u64::MAX
    });
    Speed { per_second: per_second(task.count, Duration::from_micros(micros)), redelivered: None }
}
