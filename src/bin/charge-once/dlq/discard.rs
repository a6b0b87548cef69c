//! `charge-once dlq discard`: deletes chosen dead letters.

use std::path::PathBuf;

use charge_once::{
    clients::Clients,
    redrive::{Discard, Discarded, Filter},
};

use super::{WalkArgs, import::exported, met_all, progress, report, was_not_stopped};
use crate::{CommandResult, Finding, screen::Screen, signals::Stop};

const EXAMPLES: &str = "\
Examples:
  charge-once dlq discard --filter ledger=paid              shows what would be deleted
  charge-once dlq discard --filter ledger=paid --confirm
  charge-once dlq discard --filter reason=BODY_NOT_JSON --only-in malformed.jsonl --confirm
  charge-once dlq discard --filter reason=S3_TEST_EVENT --confirm";

/// Delete dead letters; orders that are held or in doubt are kept unless --force
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    walk: WalkArgs,
    /// Which messages; `charge-once dlq peek --help` explains
    #[arg(long, value_name = "EXPR")]
    filter: Filter,
    /// Of those only what stands in this file, which `dlq export` wrote: nothing goes that was not kept
    #[arg(long, value_name = "FILE.jsonl")]
    only_in: Option<PathBuf>,
    /// Also orders that wait for a person or are in doubt; export them first
    #[arg(long)]
    force: bool,
    /// Do it; without this, only say what would be done
    #[arg(long)]
    confirm: bool,
}

pub(super) async fn run(args: &Args, clients: &Clients, json: bool, screen: &mut Screen) -> CommandResult {
    let undertaker = args.walk.undertaker(clients);
    let depth = args.walk.depth(clients).await?;
    let bar = progress::bar(depth.visible);
    let (filter, force, confirm) = (args.filter.clone(), args.force, args.confirm);
    let only = args.only_in.as_deref().map(exported).transpose()?;
    let only = only.map(|messages| messages.into_iter().map(|message| message.id).collect());
    let discard = Discard { from: &undertaker, filter, only, force, confirm };
    let stop = Stop::default();
    let seen = |done: &Discarded| progress::step(&bar, done.seen, &stop);
    let (done, ended) = stop.or(Box::pin(discard.run(seen))).await?;
    bar.finish_and_clear();
    let finding = report::discarded(&done, confirm, json, screen)?;
    ended?;
    Ok(if was_not_stopped(&stop) && met_all(done.seen, &depth) { finding } else { Finding::Wrong })
}
