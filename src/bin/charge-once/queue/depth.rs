//! `charge-once queue depth`: how many messages wait.

use crate::aws::AwsArgs;
use std::io::Write;

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::json;

use super::url_of;
use crate::{CommandResult, Finding, screen::Screen};

const EXAMPLE: &str = "\
Examples:
  charge-once queue depth orders
  charge-once queue depth orders-dlq --json";

/// Show how many messages wait, are being worked on, or are delayed; SQS calls its own counts approximate
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The queue's name or URL
    #[arg(env = "QUEUE_URL")]
    queue: String,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    aws: AwsArgs,
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let clients = args.aws.clients().await?;
    let url = url_of(&clients, &args.queue).await?;
    let call = clients.sqs().get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::All);
    let attributes = Box::pin(call.send()).await?.attributes.unwrap_or_default();
    let count = |name| attributes.get(&name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let waiting = count(QueueAttributeName::ApproximateNumberOfMessages);
    let in_flight = count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible);
    let delayed = count(QueueAttributeName::ApproximateNumberOfMessagesDelayed);
    if args.json {
        let depth =
            json!({ "queue_url": url, "waiting": waiting, "in_flight": in_flight, "delayed": delayed });
        writeln!(screen, "{depth:#}")?;
    } else {
        writeln!(screen, "{waiting} waiting, {in_flight} in flight, {delayed} delayed")?;
    }
    Ok(Finding::Clean)
}
