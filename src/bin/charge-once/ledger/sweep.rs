//! `charge-once ledger sweep`: settles open records with the provider, without a message.

use std::{io::Write, time::Duration};

use charge_once::{
    charge::{Alarm, Facts, Outcome, Sweep},
    clients::Clients,
    clock::Clock,
    config::{Config, Environment, ProcessEnvironment},
    decision::{Decision, RetryReason},
    ledger::{Attention, Found, Listed, Overview, Selection},
    wiring::ConfiguredCharge,
};
use serde_json::{Value, json};

use crate::{
    CommandResult, Finding,
    aws::{TableArg, duration},
    screen::{Screen, note, plural},
    table::table,
};

const EXAMPLES: &str = "\
Examples:
  charge-once ledger sweep --table orders-ledger               shows what would be asked
  charge-once ledger sweep --older-than 1h --confirm
  charge-once ledger sweep --abandoned --confirm               also what a killed owner left; reads the whole table

Settings are the function's own variables: GATEWAY, GATEWAY_URL, GATEWAY_SECRET_ARN, GATEWAY_LOOKUP and so on.
The sweep never charges: what only a delivery can bring further is left to the next delivery.";

/// Settle orders in doubt with the provider, without a message
///
/// A two-phase order is settled by what the provider says of its handle; a one-shot order by look-up, and held for
/// a person if its key is too old and nothing is found.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only records whose state has not changed for so long
    #[arg(long, value_parser = duration, default_value = "15m", value_name = "DURATION")]
    older_than: Duration,
    /// Also records that no owner marked, because it was killed
    #[arg(long)]
    abandoned: bool,
    /// At most so many records
    #[arg(long, default_value_t = 1000)]
    limit: usize,
    /// Ask and write; without this, only list
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    table: TableArg,
}

/// How long one record may take.
const TIME_EACH: Duration = Duration::from_secs(60);

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let clock = Clock::system();
    let now = clock.now();
    let selection = match args.abandoned {
        true => Selection::Abandoned { now },
        false => Selection::Attention(Attention::Unsettled),
    };
    let ledger = clients.ledger(&args.table.table);
    let open = ledger.list(selection, now.minus(args.older_than), args.limit).await?;
    if !args.confirm {
        return propose(&open, args.older_than, json, screen);
    }
    let table_name = args.table.table.clone();
    let environment = |name: &str| match name {
        "LEDGER_TABLE" => Some(table_name.clone()),
        other => ProcessEnvironment.get(other),
    };
    let config = Config::from_env(&environment)?;
    let step = Box::pin(ConfiguredCharge::build(&config, clients)).await?;
    let swept = Box::pin(sweep(&step, &open, &clock)).await;
    report(&swept, json, screen)
}

struct Swept<'a> {
    order_id: &'a str,
    outcome: Outcome,
}

/// One after the other: the provider has other work, and nobody waits for this.
async fn sweep<'a>(step: &impl Sweep, open: &'a [Listed], clock: &Clock) -> Vec<Swept<'a>> {
    let mut swept = Vec::with_capacity(open.len());
    for Listed { order_id, entry } in open {
        let outcome = match entry {
            Found::Entry(entry) => step.sweep(order_id, entry, clock.now().plus(TIME_EACH)).await,
            Found::Unreadable => Outcome {
                decision: Decision::retry(RetryReason::RecordUnreadable),
                facts: Facts { alarm: Some(Alarm::RecordUnreadable), ..Facts::default() },
            },
            Found::Nothing => continue,
        };
        swept.push(Swept { order_id: order_id.as_str(), outcome });
    }
    swept
}

fn propose(open: &[Listed], older_than: Duration, json: bool, screen: &mut Screen) -> CommandResult {
    if json {
        writeln!(screen, "{:#}", Value::from_iter(open.iter().map(super::list::document)))?;
        return Ok(Finding::Clean);
    }
    for Listed { order_id, .. } in open {
        writeln!(screen, "{order_id}")?;
    }
    let (orders, minutes) = (plural(open.len(), "order"), older_than.as_secs() / 60);
    writeln!(
        screen,
        "{orders} in doubt for {minutes} min or longer (--older-than). Nothing was asked or written; add --confirm"
    )?;
    Ok(Finding::Clean)
}

/// An alarm, such as a charge that contradicts its record, makes the command fail, and so do settings with which nobody
/// can be asked.
fn report(swept: &[Swept<'_>], json: bool, screen: &mut Screen) -> CommandResult {
    if json {
        let documents = swept.iter().map(|one| {
            json!({
                "order_id": one.order_id,
                "decision": one.outcome.decision.name(),
                "reason": one.outcome.decision.reason(),
                "charge_id": one.outcome.facts.charge_id,
                "error": one.outcome.facts.error,
                "alarm": one.outcome.facts.alarm.map(|alarm| format!("{alarm:?}")),
            })
        });
        writeln!(screen, "{:#}", Value::from_iter(documents))?;
    } else if swept.is_empty() {
        writeln!(screen, "none")?;
    } else {
        let mut rows = table(["order", "now", "reason", "charge"]);
        for one in swept {
            let now = match one.outcome.decision.name() {
                "ack" => "settled",
                "poison" => "not charged or held",
                _ => "still in doubt",
            };
            let charge = one.outcome.facts.charge_id.clone().unwrap_or_default();
            rows.add_row([one.order_id, now, &one.outcome.decision.reason(), &charge]);
        }
        let settled = swept.iter().filter(|one| !is_open(&one.outcome)).count();
        writeln!(screen, "{rows}\n{} looked at, {settled} settled", plural(swept.len(), "order"))?;
    }
    let unasked = swept.iter().filter(|one| is_unasked(&one.outcome)).collect::<Vec<_>>();
    if let Some(error) = unasked.iter().find_map(|one| one.outcome.facts.error.as_ref()) {
        note(&format!(
            "{} could not be asked about, the first because of: {error}",
            plural(unasked.len(), "order")
        ));
    }
    let alarmed = swept.iter().any(|one| one.outcome.facts.alarm.is_some());
    Ok(if alarmed || !unasked.is_empty() { Finding::Wrong } else { Finding::Clean })
}

fn is_open(outcome: &Outcome) -> bool {
    matches!(outcome.decision, Decision::Retry { .. })
}

/// The provider cannot be reached or refuses us, or the settings are of another provider, account or mode.
fn is_unasked(outcome: &Outcome) -> bool {
    let reasons = ["GATEWAY:NOT_SENT", "GATEWAY:AUTH_CONFIG", "GATEWAY:OTHER_PROVIDER"];
    reasons.contains(&outcome.decision.reason().as_str())
}
