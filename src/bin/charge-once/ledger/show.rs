//! `charge-once ledger show`: one record in words.

use std::io::Write;

use charge_once::{
    clients::Clients,
    clock::Clock,
    ledger::{Found, Ledger},
    order::OrderId,
};
use serde_json::json;

use super::words;
use crate::{CommandResult, Finding, aws::TableArg, screen::Screen};

const EXAMPLE: &str = "\
Example:
  charge-once ledger show o-1001 --table orders-ledger";

/// Say what happened to an order, what is known of the money, and what the next delivery would do
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Args {
    /// The order's `order_id`
    #[arg(value_name = "ORDER", value_parser = super::order_id)]
    order_id: OrderId,
    #[command(flatten)]
    table: TableArg,
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let found = clients.ledger(&args.table.table).get(&args.order_id).await?;
    let now = Clock::system().now();
    match (found, json) {
        (Found::Entry(entry), true) => writeln!(screen, "{:#}", words::record(&args.order_id, &entry))?,
        (Found::Entry(entry), false) => write!(screen, "{}", words::story(&args.order_id, &entry, now))?,
        (Found::Nothing, true) => writeln!(screen, "{}", json!({ "order_id": args.order_id.as_str() }))?,
        (Found::Nothing, false) => writeln!(
            screen,
            "{}: no record. Nothing was begun, or its record is past RECORD_DAYS.\n\
             next delivery   charges it; an order older than RECORD_DAYS or LEDGER_EPOCH is held instead",
            args.order_id
        )?,
        (Found::Unreadable, _) => return Err("a later version wrote this record; use its tool".into()),
    }
    Ok(Finding::Clean)
}
