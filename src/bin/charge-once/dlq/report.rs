//! What a redrive, an import or a discard did, or would do.

use std::io::Write;

use charge_once::redrive::{Discarded, Moved};
use serde_json::json;

use crate::{
    CommandResult, Finding,
    screen::{Screen, plural},
};

/// Longer lists are cut here; `--json` has them whole.
const NAMES_SHOWN: usize = 10;

pub(super) fn moved(moved: &Moved, confirmed: bool, json: bool, screen: &mut Screen) -> CommandResult {
    if json {
        let document = json!({
            "dry_run": !confirmed,
            "seen": moved.seen,
            "sent": moved.sent,
            "unsettled": moved.unsettled,
            "hopeless": moved.hopeless,
            "paid_left": moved.paid,
            "refused": moved.refused,
            "no_source": moved.no_way,
            "failed": moved.failed,
            "sent_not_deleted": moved.not_deleted,
            "edited": moved.edited,
            "not_edited": moved.not_edited,
        });
        writeln!(screen, "{document:#}")?;
    } else {
        let sent = if confirmed { "sent" } else { "would be sent" };
        writeln!(screen, "{} of {} {sent}", moved.sent, plural(moved.seen, "message"))?;
        names(screen, &moved.edited, "of those, edited: what changed is in brackets")?;
        names(screen, &moved.unsettled, "of those, orders in doubt; the next delivery settles them")?;
        names(
            screen,
            &moved.hopeless,
            "of those, no delivery charges as they are: they die again unless repaired",
        )?;
        names(screen, &moved.paid, "paid, safe to drop: charge-once dlq discard --filter ledger=paid")?;
        names(screen, &moved.refused, "held, not sent: decide with charge-once ledger resolve")?;
        names(screen, &moved.no_way, "not sent, nothing tells where they came from: add --to QUEUE_URL")?;
        names(screen, &moved.not_edited, "not edited, not sent")?;
        names(screen, &moved.failed, "not taken by the queue; still in the DLQ")?;
        if moved.not_deleted > 0 {
            writeln!(screen, "{} sent but still in the DLQ; run this again", moved.not_deleted)?;
        }
        hint(screen, confirmed)?;
    }
    Ok(if moved.is_clean() { Finding::Clean } else { Finding::Wrong })
}

pub(super) fn discarded(done: &Discarded, confirmed: bool, json: bool, screen: &mut Screen) -> CommandResult {
    if json {
        let document = json!({
            "dry_run": !confirmed,
            "seen": done.seen,
            "deleted": done.deleted,
            "not_paid": done.not_paid,
            "in_doubt": done.in_doubt,
            "refused": done.refused,
            "not_deleted": done.not_deleted,
        });
        writeln!(screen, "{document:#}")?;
    } else {
        let deleted = if confirmed { "deleted" } else { "would be deleted" };
        writeln!(screen, "{} of {} {deleted}", done.deleted, plural(done.seen, "message"))?;
        for (gone, what) in [
            (&done.not_paid, "of those, not paid: nobody will charge them"),
            (&done.in_doubt, "of those, not known whether paid: nobody will find out by a delivery"),
        ] {
            // What is gone is named whole: there is no second look.
            match confirmed && !gone.is_empty() {
                true => writeln!(screen, "{} {what}\n  {}", gone.len(), gone.join(", "))?,
                false => names(screen, gone, what)?,
            }
        }
        names(screen, &done.refused, "held or in doubt, kept: --force deletes them all the same")?;
        if done.not_deleted > 0 {
            writeln!(screen, "{} still in the DLQ; run this again", done.not_deleted)?;
        }
        hint(screen, confirmed)?;
    }
    Ok(if done.not_deleted == 0 { Finding::Clean } else { Finding::Wrong })
}

fn names(screen: &mut Screen, names: &[String], what: &str) -> std::io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let shown = names.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    writeln!(screen, "{} {what}\n  {shown}{more}", names.len())
}

fn hint(screen: &mut Screen, confirmed: bool) -> std::io::Result<()> {
    if confirmed { Ok(()) } else { writeln!(screen, "Nothing was changed; add --confirm") }
}
