//! `charge-once queue send`: a load generator.

use std::{io::Write, time::Duration};

use charge_once::{
    clock::Clock,
    generate::{Recipe, outgoing},
    queue::{EntryError, MAX_BATCH, Outgoing, Queue, QueueError, sqs::SqsQueue},
    record::QueueArn,
};
use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{QueueArg, percent};
use crate::{CommandResult, Finding, aws::AwsArgs, screen::Screen, signals::Stop};

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
    #[command(flatten)]
    queue: QueueArg,
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
    let url = args.queue.url(&clients).await?;
    let fifo = QueueArn::of_url(&url).is_some_and(|queue| queue.is_fifo());
    let recipe = Recipe {
        count: args.count,
        fifo,
        duplicates_percent: args.duplicates,
        poison_percent: args.poison,
        seed: args.seed,
    };
    let messages: Vec<Outgoing> = outgoing(&recipe, Clock::system().now()).collect();
    let stop = Stop::default();
    let (queue, calls) = (clients.queue(), if fifo { 1 } else { CALLS });
    let Sent { sent, refused, failed } = stop.or(send(&queue, &url, &messages, calls, &stop)).await?;
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
    match failed {
        Some(error) => Err(error.into()),
        None if stop.is_asked() => Err(Stopped { left: messages.len().saturating_sub(sent) }.into()),
        None => Ok(if refused.is_empty() { Finding::Clean } else { Finding::Wrong }),
    }
}

/// A signal came before the end.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal: {left} of the messages were not sent")]
struct Stopped {
    left: usize,
}

/// What the queue answered.
#[derive(Debug, Default)]
struct Sent {
    sent: usize,
    refused: Vec<EntryError>,
    /// A call failed as a whole: what was in it, and in the other calls under way, may have been sent, too.
    failed: Option<QueueError>,
}

/// Sends ten messages a call, until one fails or somebody asks for the end.
async fn send(queue: &SqsQueue, url: &str, messages: &[Outgoing], calls: usize, stop: &Stop) -> Sent {
    let bar = progress_bar(messages.len());
    let mut done = Sent::default();
    let mut answers = stream::iter(messages.chunks(MAX_BATCH))
        .take_while(|_| std::future::ready(!stop.is_asked()))
        .map(|chunk| async move { Box::pin(queue.send(url, chunk)).await })
        .buffered(calls);
    while let Some(answer) = answers.next().await {
        let results = match answer {
            Ok(results) => results,
            Err(error) => {
                done.failed = Some(error);
                break;
            }
        };
        bar.inc(u64::try_from(results.len()).unwrap_or_default());
        for result in results {
            match result {
                Ok(_new_id) => done.sent = done.sent.saturating_add(1),
                Err(error) => done.refused.push(error),
            }
        }
    }
    bar.finish_and_clear();
    done
}

/// On standard error, and only on a terminal.
fn progress_bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(count).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
