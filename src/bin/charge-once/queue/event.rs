//! `charge-once queue event`: generated orders as a Lambda event.

use std::io::Write;

use charge_once::{
    clock::Clock,
    generate::{Recipe, event, event_of},
};

use super::percent;
use crate::{CommandResult, Finding, screen::Screen};

const EXAMPLE: &str = "\
Examples:
  charge-once queue event --count 50 --duplicates 10% --poison 5% > batch.json
  charge-once queue event --body '{\"order_id\":\"o-1\",\"amount\":49.90,\"currency\":\"EUR\"}' > one.json";

/// Write an SQS event with generated orders, or with one order of yours
///
/// Digests, timestamps and FIFO attributes are right; the same seed makes the same orders.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// How many records
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// From a FIFO queue, one message group a customer
    #[arg(long)]
    fifo: bool,
    /// How likely a record repeats an earlier order under a new message id
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    duplicates: u8,
    /// How likely a record holds no usable order
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    poison: u8,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One record with exactly this body instead of generated orders
    #[arg(long, conflicts_with_all = ["count", "duplicates", "poison"])]
    body: Option<String>,
}

pub(crate) fn run(args: &Args, screen: &mut Screen) -> CommandResult {
    let now = Clock::system().now();
    let event = match &args.body {
        Some(body) => event_of(body, args.fifo, args.seed, now),
        None => {
            let recipe = Recipe {
                count: args.count,
                fifo: args.fifo,
                duplicates_percent: args.duplicates,
                poison_percent: args.poison,
                seed: args.seed,
            };
            event(&recipe, now)
        }
    };
    writeln!(screen, "{event:#}")?;
    Ok(Finding::Clean)
}
