//! `charge-once dlq`: why messages died, and the ways out of the dead-letter queue.

mod discard;
mod export;
mod import;
mod look;
mod native;
mod progress;
mod redrive;
mod report;

use std::time::Duration;

use charge_once::{
    clients::Clients,
    clock::Clock,
    ledger::dynamodb::DynamoDbLedger,
    money::Currency,
    order::OrderRules,
    queue::sqs::{QueueFacts, SqsQueue},
    redrive::Undertaker,
};
use clap::Subcommand;

use crate::{
    CommandError, CommandResult,
    aws::{AwsArgs, TableArg, duration, queue_url},
    screen::{Screen, note},
    signals::Stop,
};

/// See why messages died; send them back, keep them or drop them
///
/// The ledger is asked about every order first. Every change is a dry run until --confirm.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: DlqCommand,
    #[command(flatten)]
    aws: AwsArgs,
    /// JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum DlqCommand {
    Stats(look::StatsArgs),
    Peek(look::PeekArgs),
    Redrive(redrive::Args),
    Cancel(native::CancelArgs),
    Discard(discard::Args),
    Export(export::Args),
    Import(import::Args),
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let Args { command, aws, json } = args;
    let clients = aws.clients().await?;
    match command {
        DlqCommand::Stats(args) => look::stats(&args, &clients, json, screen).await,
        DlqCommand::Peek(args) => look::peek(&args, &clients, json, screen).await,
        DlqCommand::Redrive(args) => redrive::run(&args, &clients, json, screen).await,
        DlqCommand::Cancel(args) => native::cancel(&args, &clients, json, screen).await,
        DlqCommand::Discard(args) => discard::run(&args, &clients, json, screen).await,
        DlqCommand::Export(args) => export::run(&args, &clients, screen).await,
        DlqCommand::Import(args) => import::run(&args, &clients, json, screen).await,
    }
}

/// Which dead-letter queue
#[derive(Clone, Debug, clap::Args)]
struct DlqArg {
    /// The dead-letter queue's URL
    #[arg(long, env = "DLQ_URL", value_name = "URL", value_parser = queue_url)]
    dlq_url: String,
}

/// How orders are read, as the function reads them
#[derive(Clone, Debug, clap::Args)]
struct OrderArgs {
    /// The currency of orders that name none, as the function's `DEFAULT_CURRENCY`
    #[arg(long, env = "DEFAULT_CURRENCY", value_name = "CODE", value_parser = currency)]
    default_currency: Option<Currency>,
}

/// How a dead-letter queue is walked through
#[derive(Clone, Debug, clap::Args)]
struct WalkArgs {
    #[command(flatten)]
    dlq: DlqArg,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    orders: OrderArgs,
    /// How long a message is hidden from others while this command looks at the queue
    #[arg(long, value_parser = hide, default_value = "5m", value_name = "DURATION")]
    hide: Duration,
    /// Also a queue that has a dead-letter queue of its own, where each look uses up a receive of orders at work
    #[arg(long)]
    any_queue: bool,
}

/// The queue is one that is worked on.
#[derive(Debug, thiserror::Error)]
#[error(
    "{url} has a dead-letter queue of its own, so it is one that is worked on, and looking would use up a receive of \
     each order; name its dead-letter queue, or say --any-queue"
)]
struct WorkedOn {
    url: String,
}

impl OrderArgs {
    /// An amount above the function's limit is still an order whose record should be found.
    fn rules(&self) -> OrderRules {
        OrderRules { default_currency: self.default_currency, max_amount_minor: i64::MAX }
    }
}

impl WalkArgs {
    fn undertaker(&self, clients: &Clients) -> Undertaker<SqsQueue, DynamoDbLedger> {
        Undertaker {
            queue: clients.queue(),
            ledger: clients.ledger(&self.table.table),
            url: self.dlq.dlq_url.clone(),
            rules: self.orders.rules(),
            clock: Clock::system(),
            hide: self.hide,
            // Long enough for SQS to ask all its servers, short enough for the client's timeout.
            wait: Duration::from_secs(1),
        }
    }

    /// How full the queue is, before anything is received from it.
    async fn depth(&self, clients: &Clients) -> Result<QueueFacts, CommandError> {
        let url = self.dlq.dlq_url.clone();
        let depth = clients.queue().facts(&url).await?;
        if depth.has_dead_letter_queue && !self.any_queue {
            return Err(WorkedOn { url }.into());
        }
        Ok(depth)
    }
}

/// Says on standard error that a walk did not meet all that the queue held when it began; whether it met all.
///
/// A FIFO queue gives out nothing more of a group while one of its messages is hidden, as those are that were looked
/// at; and what another reader holds is met by nobody. Who takes a part for the whole deletes what nobody has seen.
fn met_all(seen: usize, before: &QueueFacts) -> bool {
    let all = before.visible.saturating_add(before.in_flight);
    let seen = progress::count(seen);
    if seen < all {
        note(&format!(
            "incomplete: {seen} of about {all} messages were seen; the rest is hidden by another reader, or waits \
             behind others of its FIFO group. Run this again once these are dealt with, or later"
        ));
    }
    seen >= all
}

/// Says on standard error that a signal ended the work before its end; whether none did.
fn was_not_stopped(stop: &Stop) -> bool {
    if stop.is_asked() {
        note("stopped by a signal, between two batches: the rest is as it was. Run this again for it");
    }
    !stop.is_asked()
}

fn hide(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    let allowed = Duration::from_secs(10)..=Duration::from_secs(12 * 3600);
    if allowed.contains(&duration) { Ok(duration) } else { Err("must be 10s to 12h".to_owned()) }
}

fn currency(text: &str) -> Result<Currency, &'static str> {
    Currency::parse(text).ok_or("write an ISO 4217 code with minor units, such as EUR")
}
