//! `charge-once dlq import`: sends exported messages to a queue.

use std::path::{Path, PathBuf};

use charge_once::{
    clients::Clients,
    clock::Clock,
    queue::Message,
    redrive::{Filter, Import, Line, Moved, Pace, Plan},
};

use super::{OrderArgs, progress, report, was_not_stopped};
use crate::{
    CommandError, CommandResult, Finding,
    aws::{TableArg, queue_url},
    screen::Screen,
    signals::Stop,
};

const EXAMPLES: &str = "\
Examples:
  charge-once dlq import dead.jsonl --to QUEUE_URL                  shows what would be sent
  charge-once dlq import fixed.jsonl --to QUEUE_URL --rate 20 --confirm

To repair messages: export them, edit the bodies, import them, and discard the originals.";

/// Send exported, perhaps repaired, messages to a queue, after asking the ledger about each order
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What `dlq export` wrote; - for standard input
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    /// The queue's URL
    #[arg(long, env = "QUEUE_URL", value_name = "URL", value_parser = queue_url)]
    to: String,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    orders: OrderArgs,
    /// Which messages; `charge-once dlq peek --help` explains
    #[arg(long, value_name = "EXPR", default_value = "*")]
    filter: Filter,
    /// At most so many messages a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    rate: Option<u32>,
    /// Also orders that are paid
    #[arg(long)]
    all: bool,
    /// Also orders that wait for a person
    #[arg(long)]
    force: bool,
    /// Do it; without this, only say what would be done
    #[arg(long)]
    confirm: bool,
}

/// The messages of a file that `dlq export` wrote.
pub(super) fn exported(file: &Path) -> Result<Vec<Message>, CommandError> {
    let text = match file.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    Ok(Line::parse_all(&text)?)
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let messages = exported(&args.file)?;
    let bar = progress::bar(progress::count(messages.len()));
    let import = Import {
        queue: &clients.queue(),
        ledger: &clients.ledger(&args.table.table),
        rules: args.orders.rules(),
        clock: Clock::system(),
        plan: Plan {
            filter: args.filter.clone(),
            to: Some(args.to.clone()),
            otherwise: None,
            also_paid: args.all,
            also_held: args.force,
            limit: None,
            edit: None,
        },
        confirm: args.confirm,
    };
    let stop = Stop::default();
    let seen = |moved: &Moved| progress::step(&bar, moved.seen, &stop);
    let (moved, ended) = stop.or(Box::pin(import.run(messages, Pace::new(args.rate), seen))).await?;
    bar.finish_and_clear();
    let finding = report::moved(&moved, args.confirm, json, screen)?;
    ended?;
    Ok(if was_not_stopped(&stop) { finding } else { Finding::Wrong })
}
