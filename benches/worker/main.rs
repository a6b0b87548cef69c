//! Messages a second of the worker when every request to the queue takes 30 ms longer, next to plain loops.
//!
//! `make bench-worker`. The queue is the SQS endpoint of local mode; a proxy holds back what clients send. A receive
//! brings at most 10 messages, so one loop can reach 10 messages in 30 ms at most, 333/s, and eight 2,667/s.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark"
)]

mod plain_loop;
mod proxy;

use std::{path::PathBuf, process::Command, sync::Arc, time::Duration};

use aws_sdk_sqs::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
};
use charge_once::{
    backoff::{Backoff, Random},
    batch::BatchRules,
    charge::{Delivery, Outcome, Step},
    clock::Clock,
    decision::{AckReason, Decision},
    local::sqs_endpoint::SqsEndpoint,
    order::{Order, OrderRules},
    queue::{
        Outgoing,
        memory::{MemoryQueues, QueueSettings},
        sqs::SqsQueue,
    },
    visibility::VisibilityRules,
    worker::{Monitor, Worker, WorkerRules},
};
use proxy::Proxy;
use tokio::time::Instant;

const DELAY: Duration = Duration::from_millis(30);
/// Messages a second that one loop can receive at most: 10 in 30 ms.
const LIMIT_PER_LOOP: u64 = 333;
const QUEUE: &str = "orders";

/// Acknowledges every order at once.
struct Instantly;

impl Step for Instantly {
    async fn run(&self, _order: &Order, _delivery: &Delivery) -> Outcome {
        Outcome::of(Decision::Ack(AckReason::Charged))
    }
}

/// The queue, and where it is reached with the delay.
struct Site {
    queues: MemoryQueues,
    endpoint: SqsEndpoint,
    proxy: Proxy,
}

impl Site {
    async fn start(delay: Duration) -> Self {
        let queues = MemoryQueues::new(Clock::system(), Random::seeded(1));
        queues.create(QUEUE, QueueSettings::standard()).expect("the name is free");
        let endpoint = SqsEndpoint::start(queues.clone()).await.expect("a free port");
        let proxy =
            Proxy::start(endpoint.url().trim_start_matches("http://"), delay).await.expect("a free port");
        Self { queues, endpoint, proxy }
    }

    fn fill(&self, count: u32) {
        for number in 0..count {
            let body = format!(r#"{{"order_id":"o-{number}","amount":100,"currency":"EUR"}}"#);
            self.queues.send_one(QUEUE, Outgoing { body, ..Outgoing::default() }).expect("a valid message");
        }
    }

    fn client(&self) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .endpoint_url(self.proxy.url());
        Client::from_conf(config.build())
    }

    fn queue_url(&self) -> String {
        self.endpoint.queue_url(QUEUE)
    }

    /// Waits until everything is done and deleted. Counting the queue's messages costs too much to do it all along.
    async fn until_empty(&self, monitor: &Monitor, count: u32) {
        while monitor.counts().charged < u64::from(count) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        loop {
            let depth = self.queues.depth(QUEUE).expect("the queue exists");
            if depth.visible + depth.in_flight == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn worker(&self, loops: usize) -> Arc<Worker<Instantly, SqsQueue>> {
        Arc::new(Worker {
            step: Instantly,
            queue: Arc::new(SqsQueue::new(self.client()).receiving_over(self.client())),
            rules: WorkerRules {
                queue_url: self.queue_url(),
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
}

/// Messages a second, and of the worker how many deliveries were not the first.
struct Speed {
    per_second: u64,
    redelivered: Option<u64>,
}

fn speed(count: u32, took: Duration) -> u64 {
    u64::from(count) * 1_000_000 / u64::try_from(took.as_micros()).unwrap().max(1)
}

async fn worker(count: u32, loops: usize, delay: Duration) -> Speed {
    let site = Site::start(delay).await;
    site.fill(count);
    let worker = site.worker(loops);
    let began = Instant::now();
    let took = async {
        site.until_empty(&worker.monitor, count).await;
        began.elapsed()
    };
    let mut measured = Duration::ZERO;
    Arc::clone(&worker).run(async { measured = took.await }).await.expect("no loop ends by itself");
    Speed { per_second: speed(count, measured), redelivered: Some(worker.monitor.counts().redeliveries) }
}

async fn plain(count: u32, loops: usize) -> Speed {
    let site = Site::start(DELAY).await;
    site.fill(count);
    let began = Instant::now();
    plain_loop::run(loops, &site.client(), &site.queue_url()).await;
    Speed { per_second: speed(count, began.elapsed()), redelivered: None }
}

/// The same loop in Python with boto3, which measures itself so that its start does not count.
async fn boto3(python: PathBuf, count: u32, loops: usize) -> Speed {
    let site = Site::start(DELAY).await;
    site.fill(count);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/worker/boto3_loop.py");
    let (proxy, queue, loops) = (site.proxy.url().to_owned(), site.queue_url(), loops.to_string());
    let run = move || Command::new(python).args([script, &proxy, &queue, &loops]).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap().expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let micros: u64 = text.trim().parse().unwrap_or_else(|_| {
        println!("{}", String::from_utf8_lossy(&output.stderr));
        u64::MAX
    });
    Speed { per_second: speed(count, Duration::from_micros(micros)), redelivered: None }
}

fn show(what: &str, loops: usize, count: u32, speed: &Speed) {
    let limit = LIMIT_PER_LOOP * u64::try_from(loops).unwrap() + if loops == 8 { 3 } else { 0 };
    let percent = speed.per_second * 100 / limit;
    let redelivered = speed.redelivered.map_or(String::new(), |count| format!("  {count} delivered twice"));
    println!(
        "{what:<34} {loops} loop(s) {count:>6} messages {:>6}/s  {percent:>3} % of {limit}/s{redelivered}",
        speed.per_second
    );
}

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let python = std::env::args().skip_while(|word| word != "--python").nth(1).map(PathBuf::from);
    println!("Every request is held back for 30 ms; the step is instant.");
    for (loops, count) in [(1, 1000), (8, 1000), (8, 16_000)] {
        show("charge-once worker", loops, count, &worker(count, loops, DELAY).await);
        show("receive, process, delete (Rust)", loops, count, &plain(count, loops).await);
        if let Some(python) = &python {
            show(
                "receive, process, delete (boto3)",
                loops,
                count,
                &boto3(python.clone(), count, loops).await,
            );
        }
    }
    let ceiling = worker(16_000, 8, Duration::ZERO).await.per_second;
    println!("The endpoint, the proxy and the worker together, without the delay: {ceiling}/s.");
}
