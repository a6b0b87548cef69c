//! `charge-once ledger list`: the records that somebody should look at.

use std::{io::Write, time::Duration};

use charge_once::{
    clients::Clients,
    clock::Clock,
    ledger::{Attention, Found, Listed, Overview, Selection},
    telemetry::rfc3339,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::words;
use crate::{
    CommandResult, Finding,
    aws::{TableArg, duration},
    screen::{Screen, note},
    table::table,
};

const EXAMPLES: &str = "\
Examples:
  charge-once ledger list --table orders-ledger               what waits for a person
  charge-once ledger list --attention unsettled --older-than 15m
  charge-once ledger list --attention abandoned               also what a killed owner left; reads the whole table";

/// List the records that somebody should look at, the oldest doubt first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which records
    #[arg(long, value_enum, default_value_t = Which::Held)]
    attention: Which,
    /// Only those whose state has not changed for so long
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION")]
    older_than: Duration,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    table: TableArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// A person must decide
    Held,
    /// It is not known whether money moved; the next delivery or `sweep` finds out
    Unsettled,
    /// Begun, not finished, and nobody works on it
    Abandoned,
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let now = Clock::system().now();
    let selection = match args.attention {
        Which::Held => Selection::Attention(Attention::Held),
        Which::Unsettled => Selection::Attention(Attention::Unsettled),
        Which::Abandoned => Selection::Abandoned { now },
    };
    let ledger = clients.ledger(&args.table.table);
    // A record of this very millisecond belongs to the list.
    let before = now.minus(args.older_than).plus(Duration::from_millis(1));
    let mut listed = ledger.list(selection, before, args.limit.saturating_add(1)).await?;
    if listed.len() > args.limit {
        listed.truncate(args.limit);
        note(&format!("there are more than {}: --limit shows more", args.limit));
    }
    if json {
        writeln!(screen, "{:#}", Value::from_iter(listed.iter().map(document)))?;
    } else if listed.is_empty() {
        writeln!(screen, "none")?;
    } else {
        let mut rows = table(["order", "state", "reason", "amount", "since", "fence"]);
        for one in &listed {
            rows.add_row(row(one));
        }
        writeln!(screen, "{rows}")?;
    }
    Ok(Finding::Clean)
}

pub(super) fn document(listed: &Listed) -> Value {
    match &listed.entry {
        Found::Entry(entry) => words::record(&listed.order_id, entry),
        Found::Nothing | Found::Unreadable => {
            json!({ "order_id": listed.order_id.as_str(), "state": "unreadable" })
        }
    }
}

fn row(listed: &Listed) -> Vec<String> {
    let order_id = listed.order_id.to_string();
    let Found::Entry(entry) = &listed.entry else {
        return vec![order_id, "unreadable".to_owned()];
    };
    let reason = entry.held_reason.clone().or_else(|| entry.error.clone()).unwrap_or_default();
    vec![
        order_id,
        entry.state.as_str().to_owned(),
        reason,
        words::amount(entry),
        rfc3339(entry.state_changed_at),
        entry.fence.to_string(),
    ]
}
