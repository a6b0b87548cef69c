//! `charge-once dlq redrive`: back to the queue, all by SQS itself or chosen ones by this tool.

use charge_once::{
    clients::Clients,
    redrive::{Edit, Filter, Moved, Mover, Pace, Plan},
};

use super::{WalkArgs, met_all, native, progress, report, was_not_stopped};
use crate::{CommandResult, Finding, aws::queue_url, screen::Screen, signals::Stop};

const EXAMPLES: &str = "\
Examples:
  charge-once dlq redrive --filter reason=GATEWAY:UNKNOWN --to QUEUE_URL               shows what would be sent
  charge-once dlq redrive --filter reason=GATEWAY:UNKNOWN --to QUEUE_URL --limit 5 --confirm
  charge-once dlq redrive --filter 'age>1h' --to QUEUE_URL --rate 20 --confirm
  charge-once dlq redrive --filter reason=CURRENCY_MISSING --edit '{\"currency\":\"EUR\"}' --to QUEUE_URL --confirm
  charge-once dlq redrive --native --to QUEUE_URL --rate 10 --confirm                  all of them, by SQS itself

Orders that are paid are left: `charge-once dlq discard --filter ledger=paid` drops them. Orders that wait for a
person are left unless --force. A message leaves the DLQ only after the queue has taken its copy; a redrive that was
interrupted is simply run again. On a FIFO queue, order within a group is that of the DLQ.

An edit is a JSON merge patch (RFC 7396) on bodies that are the order itself; envelopes are left. What is no order
even then is left, and so is an order that the ledger knows with another content, a paid one above all: raise
`attempt` in the edit to try a declined order with other details.";

/// Send dead letters back, after asking the ledger about each order
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    walk: WalkArgs,
    /// Which messages; `charge-once dlq peek --help` explains
    #[arg(long, value_name = "EXPR", default_value = "*", conflicts_with = "native")]
    filter: Filter,
    /// The queue's URL; without it each goes where SQS says it came from, else to `QUEUE_URL`
    #[arg(long, value_name = "URL", value_parser = queue_url)]
    to: Option<String>,
    /// Where those go of which SQS does not say where they came from
    #[arg(long, env = "QUEUE_URL", hide = true, value_name = "URL", value_parser = queue_url)]
    queue_url: Option<String>,
    /// At most so many messages a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    rate: Option<u32>,
    /// At most so many messages
    #[arg(long, value_name = "N", conflicts_with = "native")]
    limit: Option<usize>,
    /// Change the bodies on the way, such as {"currency":"EUR"}; null takes a member out
    #[arg(long, value_name = "JSON", conflicts_with = "native")]
    edit: Option<Edit>,
    /// Let SQS move the whole queue (`StartMessageMoveTask`); the ledger is not asked
    #[arg(long)]
    native: bool,
    /// Also orders that are paid; they are acknowledged, not charged again
    #[arg(long, conflicts_with = "native")]
    all: bool,
    /// Also orders that wait for a person; they come back
    #[arg(long, conflicts_with = "native")]
    force: bool,
    /// Do it; without this, only say what would be done
    #[arg(long)]
    confirm: bool,
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let dlq_url = &args.walk.dlq.dlq_url;
    if [&args.to, &args.queue_url].into_iter().flatten().any(|to| to == dlq_url) {
        return Err(
            "the queue to send to is the dead-letter queue itself: every copy would be met again".into()
        );
    }
    if args.native {
        let task = native::Task {
            dlq_url,
            to: args.to.as_deref().or(args.queue_url.as_deref()),
            rate: args.rate,
            confirm: args.confirm,
        };
        return native::run(&task, clients, json, screen).await;
    }
    let undertaker = args.walk.undertaker(clients);
    let depth = args.walk.depth(clients).await?;
    let plan = Plan {
        filter: args.filter.clone(),
        to: args.to.clone(),
        otherwise: args.queue_url.clone(),
        also_paid: args.all,
        also_held: args.force,
        limit: args.limit,
        edit: args.edit.clone(),
    };
    let bar = progress::bar(depth.visible);
    let mover = Mover { from: &undertaker, plan, confirm: args.confirm };
    let stop = Stop::default();
    let seen = |moved: &Moved| progress::step(&bar, moved.seen, &stop);
    let (moved, ended) = stop.or(Box::pin(mover.run(Pace::new(args.rate), seen))).await?;
    bar.finish_and_clear();
    let finding = report::moved(&moved, args.confirm, json, screen)?;
    ended?;
    // With a limit the rest is left on purpose.
    let all = was_not_stopped(&stop) && (args.limit.is_some() || met_all(moved.seen, &depth));
    Ok(if all { finding } else { Finding::Wrong })
}
