//! `charge-once worker`: the long-poll consumer.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use charge_once::{
    clients::Clients,
    clock::{Clock, parse_duration},
    config::{Config, ProcessEnvironment},
    queue::sqs::SqsQueue,
    telemetry::{self, ErrorChain},
    wiring::{self, ConfiguredCharge, StartError},
    worker::{Worker, WorkerRules, serve},
};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{CommandResult, Finding, signals::Signals};

const EXAMPLES: &str = "\
Examples:
  charge-once worker --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/orders
  charge-once worker --loops 8 --concurrency 80 --listen 127.0.0.1:9090
  charge-once worker --once                        one receive, for a schedule or a trial

The other settings are the function's environment variables: LEDGER_TABLE, GATEWAY, ... (docs/configuration.md).

Signals:
  SIGTERM, SIGINT  receive nothing more, finish what was begun, hand back the rest, exit 0
  a second one     exit at once with 130; what was being worked on comes again";

/// Charge the orders of a queue from a long-running process instead of from Lambda
///
/// Each loop waits for messages with a long poll; what arrives is worked on beside the loops, kept hidden by a
/// heartbeat, and deleted in batches that nobody waits for.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The queue; else the variable `QUEUE_URL`
    #[arg(long, value_name = "URL", value_parser = crate::aws::queue_url)]
    queue_url: Option<String>,
    /// How many receives wait side by side
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=200))]
    loops: u16,
    /// How many orders are worked on at once, by all loops together [default: CONCURRENCY for each loop]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: Option<u32>,
    /// For how long a message is hidden at a time; also how long it waits for its next consumer after a crash
    #[arg(long, default_value = "60s", value_parser = visibility)]
    visibility: Duration,
    /// Receive once, work on what came, and exit
    #[arg(long)]
    once: bool,
    /// Serve /healthz and /metrics here, such as 127.0.0.1:9090
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
}

/// How often finished spans are sent, and how long that may take.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long the last spans may take, when there is nothing else to do.
const LAST_FLUSH: Duration = Duration::from_secs(5);
/// How long a receive waits for a first message: the longest that SQS allows.
const LONG_POLL: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args) -> CommandResult {
    let mut config = Config::from_env(&ProcessEnvironment)?;
    config.rules.renews_lease = true;
    let subscriber = telemetry::subscriber(config.log_level, Clock::system(), std::io::stdout());
    tracing::subscriber::set_global_default(subscriber)?;
    let worker = Arc::new(build(&args, config).await?);
    let mut signals = Signals::new()?;
    if args.once {
        let (stop, stopping) = stop();
        let polled = until_done(worker.poll_once(stopping), stop, &mut signals).await?;
        worker.spans.flush(LAST_FLUSH).await;
        tracing::info!(received = polled.received, charged = polled.counts.charged, "one receive done");
        return Ok(Finding::Clean);
    }
    work(worker, args.listen, signals).await?;
    Ok(Finding::Clean)
}

async fn build(args: &Args, config: Config) -> Result<Worker<ConfiguredCharge, SqsQueue>, StartError> {
    let queue_url = args.queue_url.clone().or_else(|| config.queue_url.clone());
    let queue_url = queue_url.ok_or("no queue: give --queue-url or set QUEUE_URL")?;
    let loops = usize::from(args.loops);
    let per_loop = config.concurrency.saturating_mul(loops);
    let concurrency = args.concurrency.and_then(|count| usize::try_from(count).ok()).unwrap_or(per_loop);
    let clients = Clients::load(&ProcessEnvironment).await?;
    crate::aws::ready(&clients).await?;
    has_table(&clients, &config.ledger_table).await?;
    let step = ConfiguredCharge::build(&config, &clients).await?;
    if queue_url.ends_with(".fifo") && config.move_poison_to.is_none() {
        tracing::warn!(
            "a FIFO queue without POISON_MODE=dlq and DLQ_URL: a message that can never succeed comes back at once, and \
             each time uses up a receive of those behind it in its group, which may reach the dead-letter queue unworked"
        );
    }
    tracing::info!(queue_url, loops, concurrency, "the worker starts");
    let rules = WorkerRules { queue_url, loops, concurrency, visibility: args.visibility, wait: LONG_POLL };
    wiring::worker(config, &clients, step, rules, Clock::system())
}

/// A misspelt table would use up the receives of every message. Whatever else the ledger answers may pass.
async fn has_table(clients: &Clients, table: &str) -> Result<(), StartError> {
    match clients.ledger(table).warm().await {
        Err(error) if error.code == "ResourceNotFoundException" => {
            Err(format!("LEDGER_TABLE: there is no table {table} in this account and Region").into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Works until the first signal, and serves health and metrics until the work has ended.
async fn work(
    worker: Arc<Worker<ConfiguredCharge, SqsQueue>>,
    listen: Option<SocketAddr>,
    mut signals: Signals,
) -> Result<(), StartError> {
    let mut serving = JoinSet::new();
    let (stop_serving, mut stopped) = watch::channel(false);
    if let Some(address) = listen {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("--listen {address}: {}", ErrorChain(&error)))?;
        tracing::info!(address = %listener.local_addr()?, "health and metrics are served");
        serving.spawn(serve(listener, Arc::clone(&worker.monitor), async move {
            // An error means that the work has ended, too.
            drop(stopped.wait_for(|stop| *stop).await);
        }));
    }
    let (spans, mut stopped) = (worker.spans.clone(), stop_serving.subscribe());
    serving.spawn(async move {
        let worked = async {
            // An error means that the work has ended, too.
            drop(stopped.wait_for(|stop| *stop).await);
        };
        spans.flush_until(worked, FLUSH_EVERY).await;
    });
    let (stop, stopping) = stop();
    let result = until_done(worker.run(stopping), stop, &mut signals).await;
    stop_serving.send_replace(true);
    serving.join_all().await;
    Ok(result?)
}

/// What is dropped to ask for the end, and what completes then.
fn stop() -> (oneshot::Sender<()>, impl Future<Output = ()>) {
    let (stop, stopping) = oneshot::channel();
    let stopping = async {
        // It is dropped, never sent.
        drop(stopping.await);
    };
    (stop, stopping)
}

/// The first signal asks the work to stop; a second one ends the process.
async fn until_done<T>(work: impl Future<Output = T>, stop: oneshot::Sender<()>, signals: &mut Signals) -> T {
    let last_words = || tracing::warn!("a second signal: what is being worked on is dropped and comes again");
    signals.watch(work, || drop(stop), last_words).await
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:9090")
}

fn visibility(text: &str) -> Result<Duration, &'static str> {
    let range = Duration::from_secs(2)..=Duration::from_secs(43_200);
    let duration =
        parse_duration(text).filter(|duration| range.contains(duration) && duration.subsec_nanos() == 0);
    duration.ok_or("write whole seconds such as 60s or 5m, from 2s to 12h")
}
