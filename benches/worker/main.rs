//! Messages a second of the worker when every request to the queue takes 30 ms longer, next to plain loops.
//!
//! `make bench-worker`. The queue is the SQS endpoint of local mode and, as a second opinion, rustack; a proxy holds
//! back what clients send. A receive brings at most 10 messages, so a loop that waits for nothing but receives
//! reaches 10 messages in 30 ms, 333/s, and eight reach 2,667/s. So few messages as 1,000 reach less, whoever
//! receives them: the last deletes come 30 ms after the last receive, and the last round of receives is not full.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark"
)]

mod contenders;
mod plain_loop;
mod proxy;
mod site;

use std::{path::PathBuf, time::Duration};

use contenders::{Speed, boto3, plain, worker};
use site::{Kind, Site};
use tokio::time::Instant;

const DELAY: Duration = Duration::from_millis(30);
/// The most messages of one receive.
const BATCH: u32 = 10;
/// How often what is printed was measured; the best counts, because others use the machine too.
const RUNS: usize = 3;

/// What a number of loops allows for a number of messages.
#[derive(Clone, Copy)]
struct Task {
    loops: u32,
    count: u32,
}

impl Task {
    /// Messages a second of endless full receives.
    fn limit(self) -> u64 {
        per_second(BATCH * self.loops, DELAY)
    }

    /// Messages a second with the last delete in it, and a last round that may not be full.
    fn ideal(self) -> u64 {
        let rounds = self.count.div_ceil(BATCH * self.loops);
        per_second(self.count, DELAY * (rounds + 1))
    }
}

fn per_second(count: u32, took: Duration) -> u64 {
    u64::from(count) * 1_000_000 / u64::try_from(took.as_micros()).unwrap().max(1)
}

fn show(what: &str, task: Task, speed: Speed) {
    let of = |limit: u64| format!("{:>3} % of {limit}/s", speed.per_second * 100 / limit);
    let redelivered = speed.redelivered.map_or(String::new(), |count| format!("  {count} delivered twice"));
    println!(
        "  {what:<32} {:>6}/s  {}  {}{redelivered}",
        speed.per_second,
        of(task.limit()),
        of(task.ideal())
    );
}

/// How long a request really takes, the median of some.
async fn round_trip(kind: Kind<'_>) -> Duration {
    let site = Site::start(kind, 0, DELAY).await;
    let client = site.client();
    let mut took = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        let call = client.receive_message().queue_url(site.queue_url()).wait_time_seconds(0);
        Box::pin(call.send()).await.expect("the queue answers");
        took.push(begun.elapsed());
    }
    took.sort();
    took.get(took.len() / 2).copied().unwrap_or_default()
}

async fn best<F: Future<Output = Speed>>(run: impl Fn() -> F) -> Speed {
    let mut best = Speed::default();
    for _ in 0..RUNS {
        let speed = run().await;
        if speed.per_second > best.per_second {
            best = speed;
        }
    }
    best
}

async fn compare(kind: Kind<'_>, python: Option<&PathBuf>) {
    println!("  a receive takes {} µs", round_trip(kind).await.as_micros());
    for (loops, count) in [(1, 1000), (8, 1000), (8, 16_000)] {
        let task = Task { loops, count };
        println!(
            "{count} messages, {loops} loop(s): of endless receives, and of the ideal for so many messages"
        );
        show("charge-once worker", task, best(|| worker(kind, task, DELAY)).await);
        show("receive, process, delete (Rust)", task, best(|| plain(kind, task, DELAY)).await);
        if let Some(python) = python {
            show("receive, process, delete (boto3)", task, best(|| boto3(python, kind, task)).await);
        }
    }
    let task = Task { loops: 8, count: 16_000 };
    let plain = best(|| plain(kind, task, Duration::ZERO)).await.per_second;
    let worker = best(|| worker(kind, task, Duration::ZERO)).await.per_second;
    println!("The ceiling, without the delay: {plain}/s by 8 plain loops, {worker}/s by the worker.");
}

/// The word after `--name`.
fn option(name: &str) -> Option<PathBuf> {
    std::env::args().skip_while(|word| word != name).nth(1).map(PathBuf::from)
}

#[tokio::main]
async fn main() {
    let python = option("--python");
    println!("Every request is held back for 30 ms; the step is instant; the best of {RUNS} runs.");
    println!("\nThe SQS endpoint of local mode, in this process:");
    compare(Kind::Endpoint, python.as_ref()).await;
    if let Some(rustack) = option("--rustack") {
        println!("\nrustack, in another process:");
        compare(Kind::Rustack(&rustack), None).await;
    }
}
