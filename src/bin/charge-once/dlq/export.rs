//! `charge-once dlq export`: dead letters as JSON Lines.

use std::io::Write;

use charge_once::{
    clients::Clients,
    redrive::{Filter, Line},
};

use super::WalkArgs;
use crate::{CommandResult, Finding, screen::Screen};

const EXAMPLES: &str = "\
Examples:
  charge-once dlq export > dead.jsonl
  charge-once dlq export --filter reason=MISMATCH | jq -r .order_id

It ends with 1 if it could not see the whole queue, as on a FIFO queue with more than ten letters of a group: discard
with --only-in what was exported, and export again.

The file holds the bodies, whatever is in them: keep it as safe as the queue.";

/// Write dead letters as JSON Lines; they stay in the queue, and SQS counts that as a receive
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    walk: WalkArgs,
    /// Which messages; `charge-once dlq peek --help` explains
    #[arg(long, value_name = "EXPR", default_value = "*")]
    filter: Filter,
}

pub(super) async fn run(args: &Args, clients: &Clients, screen: &mut Screen) -> CommandResult {
    let undertaker = args.walk.undertaker(clients);
    let depth = args.walk.depth(clients).await?;
    let letters = undertaker.look(usize::MAX).await?;
    for letter in letters.iter().filter(|letter| args.filter.takes(letter)) {
        writeln!(screen, "{}", serde_json::to_string(&Line::of(letter))?)?;
    }
    Ok(if super::met_all(letters.len(), &depth) { Finding::Clean } else { Finding::Wrong })
}
