//! `charge-once queue create`: a queue with its dead-letter queue, set as the deployed ones are.

use std::{collections::HashMap, io::Write};

use aws_sdk_sqs::{
    Client, error::SdkError, operation::create_queue::CreateQueueError, types::QueueAttributeName,
};
use serde_json::json;

use crate::{CommandError, CommandResult, Finding, aws::AwsArgs, screen::Screen};

const EXAMPLE: &str = "\
Examples:
  charge-once queue create orders
  charge-once queue create orders --fifo --max-receives 8";

/// 14 days, the longest: on a standard queue they count from when a message was first sent.
const DLQ_RETENTION: &str = "1209600";
/// Shorter than the dead-letter queue's, so that nothing expires just after it got there.
const RETENTION: &str = "345600";

/// Create a queue with a dead-letter queue; does nothing if both exist with these settings
///
/// The dead-letter queue is NAME-dlq and keeps messages for 14 days; a message goes there on the receive after the
/// last allowed one.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The queue's name; `.fifo` is added for a FIFO queue
    name: String,
    /// Keep order inside message groups
    #[arg(long)]
    fifo: bool,
    /// How often a message may be received
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    max_receives: u16,
    /// The visibility timeout in seconds; for Lambda at least six times the function's timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u16).range(0..=43_200))]
    visibility: u16,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    aws: AwsArgs,
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let client = args.aws.clients().await?.sqs();
    let stem = args.name.strip_suffix(".fifo").unwrap_or(&args.name);
    let suffix = if args.fifo || stem.len() < args.name.len() { ".fifo" } else { "" };
    let fifo = || (!suffix.is_empty()).then(|| (QueueAttributeName::FifoQueue, "true".to_owned()));
    let attributes = |pairs: Vec<(QueueAttributeName, String)>| pairs.into_iter().chain(fifo()).collect();

    let dlq = attributes(vec![(QueueAttributeName::MessageRetentionPeriod, DLQ_RETENTION.to_owned())]);
    let dlq_url = create(&client, &format!("{stem}-dlq{suffix}"), dlq).await?;
    let policy = json!({
        "deadLetterTargetArn": arn(&client, &dlq_url).await?,
        "maxReceiveCount": args.max_receives,
    });
    let main = attributes(vec![
        (QueueAttributeName::MessageRetentionPeriod, RETENTION.to_owned()),
        (QueueAttributeName::VisibilityTimeout, args.visibility.to_string()),
        (QueueAttributeName::RedrivePolicy, policy.to_string()),
    ]);
    let url = create(&client, &format!("{stem}{suffix}"), main).await?;
    if args.json {
        writeln!(
            screen,
            "{:#}",
            json!({
                "queue_url": url,
                "dlq_url": dlq_url,
                "max_receive_count": args.max_receives,
                "poison_mode": if suffix.is_empty() { "redrive" } else { "dlq" },
            })
        )?;
    } else {
        writeln!(screen, "QUEUE_URL={url}\nDLQ_URL={dlq_url}\nMAX_RECEIVE_COUNT={}", args.max_receives)?;
        if !suffix.is_empty() {
            // Or what can never succeed would take those behind it in its group along to the dead-letter queue.
            writeln!(screen, "POISON_MODE=dlq")?;
        }
    }
    Ok(Finding::Clean)
}

async fn create(
    client: &Client,
    name: &str,
    attributes: HashMap<QueueAttributeName, String>,
) -> Result<String, CommandError> {
    let call = client.create_queue().queue_name(name).set_attributes(Some(attributes));
    let answer =
        Box::pin(call.send()).await.map_err(|source| NotCreated { name: name.to_owned(), source })?;
    Ok(answer.queue_url.ok_or("the answer holds no queue URL")?)
}

/// A queue that cannot be made, above all because it exists with other settings.
#[derive(Debug, thiserror::Error)]
#[error("the queue {name} was not created; one that exists with other settings stays as it is")]
struct NotCreated {
    name: String,
    source: SdkError<CreateQueueError>,
}

async fn arn(client: &Client, url: &str) -> Result<String, CommandError> {
    let call = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    let attributes = Box::pin(call.send()).await?.attributes.unwrap_or_default();
    Ok(attributes.get(&QueueAttributeName::QueueArn).cloned().ok_or("the answer holds no ARN")?)
}
