//! `charge-once ledger`: what is known of an order, and what a person decides about it.

mod list;
mod resolve;
mod show;
mod sweep;
mod words;

use clap::Subcommand;

use crate::{CommandResult, aws::AwsArgs, screen::Screen};

/// Look into the ledger, decide about held orders, settle doubts
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: LedgerCommand,
    #[command(flatten)]
    aws: AwsArgs,
    /// One JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    Show(show::Args),
    List(list::Args),
    Resolve(resolve::Args),
    Sweep(sweep::Args),
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let Args { command, aws, json } = args;
    let clients = aws.clients().await?;
    match command {
        LedgerCommand::Show(args) => show::run(&args, &clients, json, screen).await,
        LedgerCommand::List(args) => list::run(&args, &clients, json, screen).await,
        LedgerCommand::Resolve(args) => resolve::run(&args, &clients, json, screen).await,
        LedgerCommand::Sweep(args) => sweep::run(&args, &clients, json, screen).await,
    }
}

fn order_id(text: &str) -> Result<charge_once::order::OrderId, &'static str> {
    charge_once::order::OrderId::parse(text).ok_or("an order id has 1 to 128 of A-Z a-z 0-9 . _ : -")
}
