//! `charge-once queue`: make queues, fill them, look at them; and events without any.

mod create;
mod depth;
mod event;
mod send;

use charge_once::clients::Clients;
use clap::Subcommand;

use crate::{CommandError, CommandResult, screen::Screen};

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

/// A share of generated messages, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<u8, &'static str> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    digits.parse().ok().filter(|percent| *percent <= 100).ok_or("write a whole number from 0% to 100%")
}

/// The URL of a queue that is given by its name or by its URL.
async fn url_of(clients: &Clients, queue: &str) -> Result<String, CommandError> {
    if queue.contains("://") {
        return Ok(queue.to_owned());
    }
    let answer = Box::pin(clients.sqs().get_queue_url().queue_name(queue).send()).await?;
    Ok(answer.queue_url.ok_or("the answer holds no queue URL")?)
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
