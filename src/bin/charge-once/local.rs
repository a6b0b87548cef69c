//! `charge-once local`: the deployed binary on this machine, fed with event files or from a queue.

mod rehearse;
mod serve;

use std::{
    collections::BTreeMap,
    error::Error,
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use charge_once::{
    clock::Clock,
    config::SETTINGS,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        function::Function,
        rehearsal::{self, Consumer, Rehearsal},
        sample::{self, Sample, freshened},
        stack::{Stack, StackConfig},
    },
};
use clap::ValueEnum;

use crate::{
    CommandResult, Finding,
    report::{Delivery, Report},
    screen::{Screen, note},
    signals::Signals,
};

const EXAMPLES: &str = "\
Examples:
  charge-once local                                 all sample events
  charge-once local event.json --twice              a redelivery charges nothing
  charge-once local --faults reset-after-charge=50%,decline=10%
  charge-once local --serve                         aws lambda invoke, cargo lambda invoke
  charge-once local --queue 2000 --faults mixed --duplicates 5% --poison 1% --kill-every 2s

Exit codes:
  0  every event was answered and no order was charged twice; with --queue, none was lost either
  1  an event failed, an order was charged twice or lost, or local mode could not start
  2  the command line could not be read";

/// Run the deployed binary here, with nothing but this machine: no AWS, no Docker, no account
///
/// An embedded DynamoDB, an SQS endpoint, a payment provider and the Lambda Runtime API listen on loopback; the
/// real `bootstrap` runs as a child process. The messages of each event count as sent just now.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// SQS events as Lambda hands them out, - for standard input; without any, the sample events of the project
    #[arg(value_name = "EVENT.json")]
    events: Vec<PathBuf>,
    /// Send everything again afterwards, as a queue may
    #[arg(long)]
    twice: bool,
    /// What goes wrong at the provider, such as `mixed` or `decline=5%,500=2%,seed=7`
    #[arg(long, value_name = "SPEC", value_parser = Script::parse)]
    faults: Option<Script>,
    /// Keep the ledger in this folder instead of in memory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write what the function writes, log lines and metrics, into this file
    ///
    /// With --queue, what AWS counts of the queue and its mapping stands there too, once a second; not with
    /// --worker, which has no mapping.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Keep the function up and answer the Lambda Invoke API until Ctrl-C
    #[arg(long, conflicts_with_all = [
        "events", "twice", "json", "queue", "fifo", "worker", "kill_every", "duplicates", "poison", "seed", "batches",
    ])]
    serve: bool,
    /// The loopback port of --serve, 0 for a free one; 9000 is where cargo-lambda looks
    #[arg(long, default_value_t = 9000, requires = "serve")]
    port: u16,
    /// One JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Which of the provider's contracts the function speaks; http unless told, stripe with --queue
    #[arg(long, value_enum)]
    gateway: Option<Gateway>,
    /// A setting of the function, such as `MAX_RECEIVE_COUNT=5`; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// The function's binary; beside this executable unless told
    #[arg(long, value_name = "PATH", env = "CHARGE_ONCE_BOOTSTRAP")]
    bootstrap: Option<PathBuf>,
    #[command(flatten)]
    rehearse: rehearse::RehearsalArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Gateway {
    /// One call that charges
    Http,
    /// Stripe's PaymentIntents
    Stripe,
}

impl From<Gateway> for Provider {
    fn from(gateway: Gateway) -> Self {
        match gateway {
            Gateway::Http => Self::Http,
            Gateway::Stripe => Self::Stripe,
        }
    }
}

/// The function's timeout, as `template.yaml` sets it.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let (mut signals, serves) = (Signals::new()?, args.serve);
    tokio::select! {
        result = Box::pin(show(args, screen)) => result,
        // All that was started ends with the stack. A signal to this process alone would leave it behind.
        () = signals.next() => if serves { Ok(Finding::Clean) } else { Err(Stopped.into()) },
    }
}

/// A signal came before the end.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the end; the function was stopped, too")]
struct Stopped;

async fn show(args: Args, screen: &mut Screen) -> CommandResult {
    if let Some(rehearsal) = args.rehearse.rehearsal() {
        let config = config_of(&args, &rehearsal)?;
        let consumer = args.rehearse.consumer()?;
        let stack = match &consumer {
            Consumer::Function => Stack::start(config).await?,
            Consumer::Worker(_) => Stack::without_function(config).await?,
        };
        return rehearse::rehearse(&stack, &rehearsal, &consumer, args.json, screen).await;
    }
    if args.events.is_empty() && !args.serve && is_fed() {
        note(
            "standard input is not read: charge-once local - takes an event from it. These are the sample events:",
        );
    }
    let events = if args.events.is_empty() { sample::all() } else { sample::read(&args.events)? };
    let stack = Stack::start(config(&args)?).await?;
    if args.serve {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        return serve::serve(Arc::new(stack), address, screen).await;
    }
    // With faults an event may take many seconds: each is shown as soon as it is answered.
    let show = |delivery: &Delivery| if args.json { Ok(()) } else { write!(screen, "{delivery}") };
    let report = deliver(&stack, &events, if args.twice { 2 } else { 1 }, show).await?;
    if args.json {
        writeln!(screen, "{:#}", report.to_json())?;
    } else {
        write!(screen, "{report}")?;
    }
    Ok(if report.is_clean() { Finding::Clean } else { Finding::Wrong })
}

/// Whether something is piped or redirected into this process that could be an event.
fn is_fed() -> bool {
    let input = std::fs::metadata("/dev/stdin");
    input.is_ok_and(|input| input.file_type().is_fifo() || (input.is_file() && input.len() > 0))
}

fn config(args: &Args) -> Result<StackConfig, Box<dyn Error + Send + Sync>> {
    let bootstrap = args.bootstrap.clone().map_or_else(Function::beside_this_executable, Ok)?;
    // A bare name would be looked for in PATH.
    let bootstrap = std::path::absolute(bootstrap)?;
    check_settings(args, &bootstrap)?;
    Ok(StackConfig {
        bootstrap,
        provider: args.gateway.unwrap_or(Gateway::Http).into(),
        script: args.faults.clone().unwrap_or_default(),
        data: args.data.clone(),
        log: args.log.clone(),
        settings: args.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
        timeout: FUNCTION_TIMEOUT,
        clock: Clock::system(),
    })
}

/// Two phases unless told otherwise: one-shot charges are at most once only as long as the provider keeps its
/// idempotency keys, and the mixed faults make it forget them.
fn config_of(args: &Args, rehearsal: &Rehearsal) -> Result<StackConfig, Box<dyn Error + Send + Sync>> {
    let config = config(args)?;
    let mut settings = rehearsal.settings();
    settings.extend(config.settings);
    let provider = args.gateway.unwrap_or(Gateway::Stripe).into();
    Ok(StackConfig { settings, provider, timeout: rehearsal::FUNCTION_TIMEOUT, ..config })
}

async fn deliver(
    stack: &Stack,
    events: &[Sample],
    rounds: u32,
    mut show: impl FnMut(&Delivery) -> io::Result<()>,
) -> Result<Report, Box<dyn Error + Send + Sync>> {
    let clock = Clock::system();
    let mut deliveries = Vec::new();
    for round in 1..=rounds {
        for Sample { name, event } in events {
            let name = if round == 1 { name.clone() } else { format!("{name}, again") };
            let event = freshened(event, clock.now());
            let invocation = stack.invoke(event.clone()).await?;
            let delivery = Delivery { name, event, invocation };
            show(&delivery)?;
            deliveries.push(delivery);
        }
    }
    let books = stack.books()?;
    Ok(Report { deliveries, charges: stack.charges(), ledger: stack.ledger()?, books })
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A misspelt setting would be ignored by the function, and the run would show something else than was meant. A
/// function of somebody's own may have settings that nobody here knows.
fn check_settings(args: &Args, bootstrap: &Path) -> Result<(), UnknownSetting> {
    let known = |name: &str| {
        ["AWS_", "OTEL_", "SSL_"].iter().any(|prefix| name.starts_with(prefix))
            || SETTINGS.iter().any(|setting| setting.name == name)
    };
    match args.settings.iter().find(|(name, _)| !known(name)) {
        Some((name, _)) if Function::is_own(bootstrap) => Err(UnknownSetting(name.clone())),
        Some(_) | None => Ok(()),
    }
}

/// `--set` names what the function does not read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the function has no setting {0}; docs/configuration.md lists them. Name a function of your own with --bootstrap"
)]
struct UnknownSetting(String);
