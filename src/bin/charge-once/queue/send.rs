//! `charge-once queue send`: a load generator.

use crate::aws::AwsArgs;
use std::{io::Write, time::Duration};

use charge_once::{
    clock::Clock,
    generate::{Recipe, outgoing},
    queue::{EntryError, MAX_BATCH, Outgoing, Queue, QueueError, sqs::SqsQueue},
    record::QueueArn,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{percent, url_of};
use crate::{CommandResult, Finding, screen::Screen};

const EXAMPLE: &str = "\
Examples:
  charge-once queue send orders --count 1000
  charge-once queue send orders.fifo --count 20000 --duplicates 5% --poison 1% --seed 7";

/// How many calls are under way at once on a standard queue. A FIFO queue gets one, which keeps the order.
const CALLS: usize = 8;

/// Send generated orders to a queue
///
/// The same seed makes the same orders, so sending twice sends every order again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The queue's name or URL
    #[arg(env = "QUEUE_URL")]
    queue: String,
    /// How many messages
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,
    /// How likely a message repeats an earlier order
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    duplicates: u8,
    /// How likely a message holds no usable order
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    poison: u8,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    aws: AwsArgs,
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let clients = args.aws.clients().await?;
    let url = url_of(&clients, &args.queue).await?;
    let fifo = QueueArn::of_url(&url).is_some_and(|queue| queue.is_fifo());
    let recipe = Recipe {
        count: args.count,
        fifo,
        duplicates_percent: args.duplicates,
        poison_percent: args.poison,
        seed: args.seed,
    };
    let messages: Vec<Outgoing> = outgoing(&recipe, Clock::system().now()).collect();
    let refused = send(&clients.queue(), &url, &messages, if fifo { 1 } else { CALLS }).await?;
    let sent = messages.len().saturating_sub(refused.len());
    if args.json {
        let reason = refused.first().map(ToString::to_string);
        writeln!(
            screen,
            "{:#}",
            json!({ "queue_url": url, "sent": sent, "refused": refused.len(), "reason": reason })
        )?;
    } else if let Some(error) = refused.first() {
        writeln!(screen, "{sent} sent, {} refused, the first with {error}", refused.len())?;
    } else {
        writeln!(screen, "{sent} sent")?;
    }
    Ok(if refused.is_empty() { Finding::Clean } else { Finding::Wrong })
}

/// Sends ten messages a call; the entries that were refused.
async fn send(
    queue: &SqsQueue,
    url: &str,
    messages: &[Outgoing],
    calls: usize,
) -> Result<Vec<EntryError>, QueueError> {
    let bar = progress_bar(messages.len());
    let refused = stream::iter(messages.chunks(MAX_BATCH))
        .map(|chunk| async move { Box::pin(queue.send(url, chunk)).await })
        .buffered(calls)
        .try_fold(Vec::new(), |mut refused, results| {
            bar.inc(u64::try_from(results.len()).unwrap_or_default());
            refused.extend(results.into_iter().filter_map(Result::err));
            std::future::ready(Ok(refused))
        })
        .await;
    bar.finish_and_clear();
    refused
}

/// On standard error, and only on a terminal.
fn progress_bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(count).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
