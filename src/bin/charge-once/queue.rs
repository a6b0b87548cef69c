//! `charge-once queue`: make queues, fill them, look at them; and events without any.

mod create;
mod depth;
mod event;
mod send;

use aws_sdk_sqs::{error::SdkError, operation::get_queue_url::GetQueueUrlError};
use charge_once::clients::Clients;
use clap::Subcommand;

use crate::{CommandError, CommandResult, aws::queue_url, screen::Screen};

/// Make queues and fill them, or make events
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    Create(create::Args),
    Send(send::Args),
    Depth(depth::Args),
    Event(event::Args),
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    match args.command {
        QueueCommand::Create(args) => create::run(args, screen).await,
        QueueCommand::Send(args) => send::run(args, screen).await,
        QueueCommand::Depth(args) => depth::run(args, screen).await,
        QueueCommand::Event(args) => event::run(&args, screen),
    }
}

/// Which queue
#[derive(Clone, Debug, clap::Args)]
struct QueueArg {
    /// The queue's name or URL
    #[arg(value_name = "QUEUE")]
    queue: Option<String>,
    /// The queue's URL, as the other commands take it
    #[arg(long, env = "QUEUE_URL", value_name = "URL", required_unless_present = "queue")]
    queue_url: Option<String>,
}

impl QueueArg {
    /// The queue's URL. What is typed counts more than the variable.
    async fn url(&self, clients: &Clients) -> Result<String, CommandError> {
        let typed = self.queue.as_ref().or(self.queue_url.as_ref()).filter(|queue| !queue.is_empty());
        let name = match typed {
            Some(url) if url.contains("://") => return Ok(queue_url(url)?),
            Some(name) => name,
            None => return Err("no queue: give its name or --queue-url".into()),
        };
        let answer = Box::pin(clients.sqs().get_queue_url().queue_name(name).send()).await;
        let answer = answer.map_err(|source| NoQueue { name: name.clone(), source })?;
        Ok(answer.queue_url.ok_or("the answer holds no queue URL")?)
    }
}

/// A name of which no URL is known.
#[derive(Debug, thiserror::Error)]
#[error("the URL of the queue {name} was not found")]
struct NoQueue {
    name: String,
    source: SdkError<GetQueueUrlError>,
}

/// A share of generated messages, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<u8, &'static str> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    digits.parse().ok().filter(|percent| *percent <= 100).ok_or("write a whole number from 0% to 100%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_as_people_write_them() {
        assert_eq!((percent("5%"), percent("5"), percent("100%")), (Ok(5), Ok(5), Ok(100)));
        assert!(["", "%", "101%", "1.5%", "-1"].iter().all(|text| percent(text).is_err()));
    }
}
