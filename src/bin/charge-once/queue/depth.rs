//! `charge-once queue depth`: how many messages wait.

use std::io::Write;

use charge_once::queue::sqs::QueueFacts;
use serde_json::json;

use super::QueueArg;
use crate::{CommandResult, Finding, aws::AwsArgs, screen::Screen};

const EXAMPLE: &str = "\
Examples:
  charge-once queue depth orders
  charge-once queue depth orders-dlq --json";

/// Show how many messages wait, are being worked on, or are delayed; SQS calls its own counts approximate
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(flatten)]
    queue: QueueArg,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    aws: AwsArgs,
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let clients = args.aws.clients().await?;
    let url = args.queue.url(&clients).await?;
    let QueueFacts { visible: waiting, in_flight, delayed, .. } = clients.queue().facts(&url).await?;
    if args.json {
        let depth =
            json!({ "queue_url": url, "waiting": waiting, "in_flight": in_flight, "delayed": delayed });
        writeln!(screen, "{depth:#}")?;
    } else {
        writeln!(screen, "{waiting} waiting, {in_flight} in flight, {delayed} delayed")?;
    }
    Ok(Finding::Clean)
}
