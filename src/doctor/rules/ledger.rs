//! The table of records: the right shape, and a memory longer than any message's life.

use super::{Rule, Trouble, trouble};
use crate::doctor::Deployment;

/// A week of margin for a redrive, in seconds: the redriven message's retention starts anew.
const REDRIVE_MARGIN: u64 = 604_800;

pub(super) const RULES: &[Rule] = &[
    Rule::error("ledger-key", ledger_key),
    Rule::error("ledger-attention-index", ledger_attention_index),
    Rule::error("ledger-expiry", ledger_expiry),
    Rule::error("ledger-outlives-messages", ledger_outlives_messages),
    Rule::warning("ledger-recoverable", ledger_recoverable),
    Rule::error("ledger-retained", ledger_retained),
];

fn ledger_key(d: &Deployment) -> Option<Trouble> {
    let ledger = d.ledger.known()?;
    trouble(
        ledger.key != ["pk S HASH"],
        format!("records are written under the key pk alone, the table has {:?}", ledger.key),
        "create a table with the key pk (S) and no sort key",
    )
}

fn ledger_attention_index(d: &Deployment) -> Option<Trouble> {
    let ledger = d.ledger.known()?;
    trouble(
        ledger.attention_key != ["attention S HASH", "state_changed_at N RANGE"],
        "held orders cannot be listed, so nobody looks at them",
        "add the index attention: attention (S), state_changed_at (N), all attributes",
    )
}

fn ledger_expiry(d: &Deployment) -> Option<Trouble> {
    let ledger = d.ledger.known()?;
    trouble(
        ledger.ttl_attribute.as_deref() != Some("expires_at"),
        "finished records are never removed, or by an attribute that means something else",
        "enable TTL on expires_at",
    )
}

fn ledger_outlives_messages(d: &Deployment) -> Option<Trouble> {
    let dead_letters = d.dead_letters.known().map_or(0, |queue| queue.retention);
    let needed = d.queue.known()?.retention.saturating_add(dead_letters).saturating_add(REDRIVE_MARGIN);
    let kept = d.function.known()?.number("RECORD_DAYS", 180).map(|days| days.saturating_mul(86_400));
    trouble(
        kept.is_none_or(|kept| kept < needed),
        format!("a record is forgotten before its message: messages can come back for {needed} s"),
        "sam deploy --parameter-overrides RecordDays=180",
    )
}

fn ledger_recoverable(d: &Deployment) -> Option<Trouble> {
    let ledger = d.ledger.known()?;
    trouble(
        !ledger.point_in_time_recovery,
        "a lost table cannot be brought back, and without it nobody knows what was charged",
        "enable point-in-time recovery",
    )
}

fn ledger_retained(d: &Deployment) -> Option<Trouble> {
    let ledger = d.ledger.known()?;
    trouble(
        ledger.retained == Some(false),
        "deleting or replacing the stack deletes the memory of every charge",
        "set DeletionPolicy: Retain and UpdateReplacePolicy: Retain on the table",
    )
}
