//! `charge-once ledger resolve`: a person's decision about a held order, written only onto the record they saw.

use std::{io::Write, time::Duration};

use charge_once::{
    backoff::Random,
    clients::Clients,
    clock::{Clock, Timestamp},
    decision::Code,
    ledger::{Entry, Found, Intent, LeaseError, Ledger, Resolution, Verdict},
    order::OrderId,
};
use serde_json::json;

use super::words;
use crate::{CommandResult, Finding, aws::TableArg, screen::Screen};

const EXAMPLES: &str = "\
Examples:
  charge-once ledger resolve o-1001 --paid ch_3Nf                    shows what would be written
  charge-once ledger resolve o-1001 --paid ch_3Nf --confirm --fence 3
  charge-once ledger resolve o-1002 --retry --confirm --fence 1

Look at the provider first. --declined and --retry say that nothing was charged *and* that nothing on its way can
charge any more: cancel the handle that `ledger show` names. The decision is refused if the record has another
fence than the one you saw.";

/// Decide about a held order: it was charged, it was not and shall not be, or it was not and shall be
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The order's `order_id`
    #[arg(value_name = "ORDER", value_parser = super::order_id)]
    order_id: OrderId,
    #[command(flatten)]
    verdict: VerdictArgs,
    /// Write it; without this, only show what would be written
    #[arg(long, requires = "fence")]
    confirm: bool,
    /// The fence of the record you looked at
    #[arg(long, value_name = "N")]
    fence: Option<u64>,
    /// Who decides; kept in the record with the time
    #[arg(long, env = "USER", value_name = "NAME", value_parser = code)]
    by: String,
    /// How long a finished record is kept, as the function's `RECORD_DAYS`
    #[arg(long, env = "RECORD_DAYS", default_value_t = 180, value_parser = clap::value_parser!(u32).range(1..=3650))]
    record_days: u32,
    #[command(flatten)]
    table: TableArg,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct VerdictArgs {
    /// It was charged: the provider's id of the charge
    #[arg(long, value_name = "CHARGE_ID", value_parser = code)]
    paid: Option<String>,
    /// It was not charged and shall not be
    #[arg(long)]
    declined: bool,
    /// It was not charged, and the next delivery shall charge it
    #[arg(long)]
    retry: bool,
}

/// Refuses what an unset shell variable leaves, and what could not be kept as it was typed: it cannot be undone.
fn code(text: &str) -> Result<String, &'static str> {
    let kept = !text.is_empty() && Code::new(text).as_str() == text;
    if kept { Ok(text.to_owned()) } else { Err("write 1 to 120 printable ASCII characters without spaces") }
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let ledger = clients.ledger(&args.table.table);
    let now = Clock::system().now();
    if !args.confirm {
        return propose(args, ledger.get(&args.order_id).await?, now, json, screen);
    }
    match ledger.resolve(&args.order_id, args.resolution(args.fence.unwrap_or_default(), now)).await {
        Ok(entry) if json => writeln!(screen, "{:#}", words::record(&args.order_id, &entry))?,
        Ok(entry) => write!(screen, "{}", words::story(&args.order_id, &entry, now))?,
        Err(LeaseError::Lost(found)) => return Err(refused(args, &found).into()),
        Err(error @ LeaseError::Store(_)) => return Err(error.into()),
    }
    Ok(Finding::Clean)
}

impl Args {
    fn resolution(&self, fence: u64, now: Timestamp) -> Resolution {
        Resolution {
            fence,
            token: Random::System.token(),
            by: Code::new(&format!("RESOLVED:{}", self.by)).as_str().to_owned(),
            verdict: self.verdict(now),
            now,
        }
    }

    fn verdict(&self, now: Timestamp) -> Verdict {
        let kept = Duration::from_secs(u64::from(self.record_days).saturating_mul(24 * 3600));
        let expires_at = now.plus(kept).as_secs();
        match (&self.verdict.paid, self.verdict.declined) {
            (Some(charge_id), _) => {
                Verdict::Paid { charge_id: Code::new(charge_id).as_str().to_owned(), expires_at }
            }
            (None, true) => Verdict::Declined { expires_at },
            (None, false) => Verdict::Retry,
        }
    }

    /// The record as the decision would leave it; `None` if it is not a person's to decide.
    fn decided(&self, entry: &Entry, now: Timestamp) -> Option<Entry> {
        Intent::Resolve(self.resolution(entry.fence, now)).apply(Some(entry))
    }
}

/// The dry run.
fn propose(args: &Args, found: Found, now: Timestamp, json: bool, screen: &mut Screen) -> CommandResult {
    let decided = match &found {
        Found::Entry(entry) => args.decided(entry, now).map(|after| (entry, after)),
        Found::Nothing | Found::Unreadable => None,
    };
    let Some((entry, after)) = decided else { return Err(refused(args, &found).into()) };
    if json {
        let [before, after] = [entry.as_ref(), &after].map(|entry| words::record(&args.order_id, entry));
        writeln!(screen, "{:#}", json!({ "dry_run": true, "before": before, "after": after }))?;
        return Ok(Finding::Clean);
    }
    let order_id = &args.order_id;
    writeln!(screen, "{order_id}, {}, is {}", words::amount(entry), words::state(entry, now))?;
    writeln!(screen, "and would be {}", words::state(&after, now))?;
    writeln!(screen, "Nothing was written. To write it: add --confirm --fence {}", entry.fence)?;
    Ok(Finding::Clean)
}

fn refused(args: &Args, found: &Found) -> String {
    let order_id = &args.order_id;
    match found {
        Found::Nothing => format!("{order_id} has no record; nothing was written"),
        Found::Unreadable => format!("a later version wrote the record of {order_id}; nothing was written"),
        Found::Entry(entry) if args.decided(entry, entry.state_changed_at).is_some() => format!(
            "the record of {order_id} has changed since you looked at it (fence {}); nothing was written. Look \
             again: charge-once ledger show {order_id}",
            entry.fence
        ),
        Found::Entry(entry) => format!(
            "{order_id} is {}, which is not a person's to decide; nothing was written. `charge-once ledger sweep` \
             asks the provider about open orders",
            entry.state.as_str()
        ),
    }
}
