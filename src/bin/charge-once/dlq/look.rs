//! `charge-once dlq stats` and `peek`: looking, which SQS counts as receiving.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    time::Duration,
};

use charge_once::{
    clients::Clients,
    redrive::{DeadLetter, Filter, Group, Line, Stats},
};
use comfy_table::Table;
use serde_json::{Value, json};

use super::{WalkArgs, met_all};
use crate::{
    CommandResult, Finding,
    screen::{Screen, note, plural},
    table::table,
};

const STATS_EXAMPLE: &str = "\
Example:
  charge-once dlq stats --dlq-url https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq --table orders-ledger";

const PEEK_EXAMPLES: &str = "\
Examples:
  charge-once dlq peek --filter reason=DECLINED --limit 5
  charge-once dlq peek --filter 'ledger=held,age>1d' --json

Filters: FIELD=VALUE, joined by commas. Fields: reason, order_id, group, ledger, age, receives. Operators: = != ~
(contains) > <. `ledger` is one of no-order, none, begun, unsettled, paid, declined, held, mismatch, unreadable.";

/// Count dead letters by reason, with their age and what the ledger says of their orders
///
/// Looks at every message of the queue once; SQS counts that as a receive. The messages stay.
#[derive(Debug, clap::Args)]
#[command(after_help = STATS_EXAMPLE)]
pub(super) struct StatsArgs {
    #[command(flatten)]
    walk: WalkArgs,
}

/// Show single dead letters
///
/// SQS counts looking as a receive. The messages stay.
#[derive(Debug, clap::Args)]
#[command(after_help = PEEK_EXAMPLES)]
pub(super) struct PeekArgs {
    #[command(flatten)]
    walk: WalkArgs,
    /// Which messages
    #[arg(long, value_name = "EXPR", default_value = "*")]
    filter: Filter,
    /// At most so many
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// With the bodies, whatever they hold
    #[arg(long)]
    show_body: bool,
}

pub(super) async fn stats(
    args: &StatsArgs,
    clients: &Clients,
    json: bool,
    screen: &mut Screen,
) -> CommandResult {
    let undertaker = args.walk.undertaker(clients);
    let depth = args.walk.depth(clients).await?;
    let letters = undertaker.look(usize::MAX).await?;
    let finding = if met_all(letters.len(), &depth) { Finding::Clean } else { Finding::Wrong };
    let stats = Stats::of(&letters);
    if json {
        let groups = stats.groups.iter().map(group);
        let document = json!({
            "total": stats.total,
            "complete": finding == Finding::Clean,
            "groups": Value::from_iter(groups),
        });
        writeln!(screen, "{document:#}")?;
        return Ok(finding);
    }
    if stats.total > 0 {
        writeln!(screen, "{}", groups(&stats))?;
    }
    writeln!(screen, "{}; looking counted as one receive of each", plural(stats.total, "message"))?;
    Ok(finding)
}

fn groups(stats: &Stats) -> Table {
    let mut rows = table(["reason", "messages", "oldest", "youngest", "receives", "ledger"]);
    for group in &stats.groups {
        let (lowest, highest) = group.receives;
        rows.add_row([
            group.reason.clone(),
            group.count.to_string(),
            age(group.oldest),
            age(group.youngest),
            if lowest == highest { lowest.to_string() } else { format!("{lowest}-{highest}") },
            ledger(&group.ledger),
        ]);
    }
    rows
}

pub(super) async fn peek(
    args: &PeekArgs,
    clients: &Clients,
    json: bool,
    screen: &mut Screen,
) -> CommandResult {
    let undertaker = args.walk.undertaker(clients);
    let depth = args.walk.depth(clients).await?;
    let letters = undertaker.look(usize::MAX).await?;
    // It shows samples: that there are more is said, and is no failure.
    met_all(letters.len(), &depth);
    let chosen: Vec<_> = letters.iter().filter(|letter| args.filter.takes(letter)).collect();
    if chosen.is_empty() && !letters.is_empty() {
        let reasons: BTreeSet<&str> = letters.iter().map(|letter| letter.reason.as_str()).collect();
        note(&format!("no message matches; the reasons here: {}", Vec::from_iter(reasons).join(", ")));
    }
    let shown = chosen.iter().take(args.limit);
    if json {
        for letter in shown {
            writeln!(screen, "{}", document(letter, args.show_body)?)?;
        }
        return Ok(Finding::Clean);
    }
    let mut rows = table(["message", "order", "reason", "ledger", "age", "receives"]);
    for letter in shown.clone() {
        rows.add_row([
            letter.message.id.to_string(),
            letter.order_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            letter.reason.clone(),
            letter.standing.name().to_owned(),
            age(letter.age),
            letter.receive_count.to_string(),
        ]);
    }
    writeln!(screen, "{rows}")?;
    if args.show_body {
        for letter in shown {
            writeln!(screen, "{}  {}", letter.message.id, letter.message.body.escape_debug())?;
        }
    }
    let all = plural(letters.len(), "message");
    writeln!(screen, "{} of {all}; looking counted as one receive", chosen.len())?;
    Ok(Finding::Clean)
}

fn document(letter: &DeadLetter, body: bool) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(Line::of(letter))?;
    if let Some(members) = document.as_object_mut().filter(|_| !body) {
        members.remove("body");
    }
    Ok(document)
}

fn group(group: &Group) -> Value {
    json!({
        "reason": group.reason,
        "messages": group.count,
        "oldest_seconds": group.oldest.as_secs(),
        "youngest_seconds": group.youngest.as_secs(),
        "receives": { "lowest": group.receives.0, "highest": group.receives.1 },
        "ledger": group.ledger,
    })
}

fn ledger(counts: &BTreeMap<&str, usize>) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// The two largest units: `3d 4h`, `12m 5s`.
fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [("d", 86_400_u64), ("h", 3_600), ("m", 60), ("s", 1)];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (name, size) in units {
        let count = left.checked_div(size).unwrap_or(0);
        left = left.saturating_sub(count.saturating_mul(size));
        if count > 0 && parts.len() < 2 {
            parts.push(format!("{count}{name}"));
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_show_their_two_largest_units() {
        let ages = [0, 59, 3_600, 90_061, 1_209_600].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["0s", "59s", "1h", "1d 1h", "14d"]);
    }
}
