//! Each transition as one `UpdateItem`: what it writes and the condition it rests on.

use super::{
    builder::Expression,
    item::{number, text},
};
use crate::ledger::{
    VERSION,
    entry::{Attention, State},
    transition::{Begin, Evidence, Intent, Left, Refused, Resolution, Verdict},
};

/// The conditions that several transitions share.
const MINE: &str = "#owner = :owner AND fence = :fence AND version = :version";
const LIVE: &str = "#state IN (:claimed, :prepared, :sent)";
const HANDLE_IS: &str = "version = :version AND handle = :handle AND #state IN (:prepared, :held)";

impl From<&Intent> for Expression {
    fn from(intent: &Intent) -> Self {
        match intent {
            Intent::Begin(begin) => self::begin(begin),
            Intent::NewAttempt(begin) => new_attempt(begin),
            Intent::HoldMissing { begin, reason } => {
                let hold = Self::when("attribute_not_exists(pk)").set_state(State::Held);
                first_begin(owned(hold, begin), begin)
                    .set("held_reason", text(reason))
                    .set("attention", text(Attention::Held.as_str()))
            }
            Intent::StoreHandle { mine, handle, now } => {
                Self::when(format!("{MINE} AND #state = :claimed AND attribute_not_exists(handle)"))
                    .mine(mine)
                    .states(&[State::Claimed])
                    .set_state(State::Prepared)
                    .set("handle", text(handle))
                    .set("state_changed_at", number(now.as_millis()))
                    .set_once("first_sent_at", number(now.as_millis()))
            }
            Intent::ReplaceHandle { mine, old, new, now } => {
                Self::when(format!("{MINE} AND #state = :prepared AND handle = :old"))
                    .mine(mine)
                    .states(&[State::Prepared])
                    .bind("old", text(old))
                    .set("handle", text(new))
                    .increment("handle_generation")
                    .set("state_changed_at", number(now.as_millis()))
            }
            Intent::Resend { mine, now } => Self::when(format!("{MINE} AND #state IN (:claimed, :sent)"))
                .mine(mine)
                .states(&[State::Claimed, State::Sent])
                .set_state(State::Sent)
                .set("state_changed_at", number(now.as_millis()))
                .set_once("first_sent_at", number(now.as_millis())),
            Intent::Pay { evidence, charge_id, request_id, now, expires_at } => proven_by(evidence)
                .set_state(State::Paid)
                .set("charge_id", text(charge_id))
                .set_or_remove("provider_request_id", request_id.as_ref())
                .set("state_changed_at", number(now.as_millis()))
                .set("expires_at", number(*expires_at))
                .remove(&["lease_until", "error", "held_reason", "attention"]),
            Intent::Decline { refused, error, now, expires_at } => refused_by(refused)
                .set_state(State::Declined)
                .set("error", text(error))
                .set("state_changed_at", number(now.as_millis()))
                .set("expires_at", number(*expires_at))
                .remove(&["lease_until", "held_reason", "attention"]),
            Intent::Release { mine, error, left } => {
                let release = Self::when(format!("{MINE} AND {LIVE}"))
                    .mine(mine)
                    .live()
                    .set("lease_until", number(0))
                    .set("error", text(error));
                match left {
                    Left::Untouched => release,
                    Left::Doubt => release.set("attention", text(Attention::Unsettled.as_str())),
                    Left::NothingSent => release.set_state(State::Claimed).remove(&["first_sent_at"]),
                }
            }
            Intent::Renew { mine, until } => Self::when(format!("{MINE} AND {LIVE}"))
                .mine(mine)
                .live()
                .set("lease_until", number(until.as_millis())),
            Intent::Hold { mine, reason, now } => Self::when(format!("{MINE} AND {LIVE}"))
                .mine(mine)
                .live()
                .set_state(State::Held)
                .set("held_reason", text(reason))
                .set("attention", text(Attention::Held.as_str()))
                .set("state_changed_at", number(now.as_millis()))
                .remove(&["lease_until", "expires_at"]),
            Intent::Resolve(resolution) => resolve(resolution),
        }
    }
}

fn resolve(resolution: &Resolution) -> Expression {
    let Resolution { fence, token, by, verdict, now } = resolution;
    let of = |states: &str| {
        Expression::when(format!("version = :version AND fence = :fence AND {states}"))
            .version()
            .states(&[State::Held])
            .bind("fence", number(*fence))
            .set("owner", text(token))
            .increment("fence")
            .set("error", text(by))
            .set("state_changed_at", number(now.as_millis()))
            .remove(&["held_reason", "attention"])
    };
    match verdict {
        Verdict::Paid { charge_id, expires_at } => of("#state IN (:held, :declined)")
            .states(&[State::Declined])
            .set_state(State::Paid)
            .set("charge_id", text(charge_id))
            .set("expires_at", number(*expires_at))
            .remove(&["lease_until", "provider_request_id"]),
        Verdict::Declined { expires_at } => of("#state = :held")
            .set_state(State::Declined)
            .set("expires_at", number(*expires_at))
            .remove(&["lease_until"]),
        Verdict::Retry => of("#state = :held")
            .set_state(State::Claimed)
            .set("lease_until", number(0))
            .increment("handle_generation")
            .remove(&["handle", "first_sent_at", "expires_at"]),
    }
}

/// Creates the record, or takes over what a dead owner left: one expression for both, so that one call decides.
fn begin(begin: &Begin) -> Expression {
    let create = if begin.may_create { "attribute_not_exists(pk) OR " } else { "" };
    // Only what a provider of this kind left, and only where what a decision rests on is there: the write would mend it.
    // `:zero` is bound by the increment of the fence.
    let (left, states) = match begin.one_shot {
        true => (
            "(#state = :claimed OR #state = :sent AND first_sent_at >= :zero)",
            [State::Claimed, State::Sent],
        ),
        false => ("#state IN (:claimed, :prepared)", [State::Claimed, State::Prepared]),
    };
    let condition = format!(
        "{create}(version = :new_version AND {left} AND fingerprint = :new_fingerprint \
         AND attempt = :new_attempt AND provider = :new_provider AND lease_until < :stale \
         AND fence >= :zero AND state_changed_at >= :zero)"
    );
    let expression = first_begin(owned(Expression::when(condition), begin), begin)
        .states(&states)
        .bind("stale", number(begin.stale_before().as_millis()))
        .set("lease_until", number(begin.lease_until.as_millis()))
        .remove(&["expires_at"]);
    match begin.one_shot {
        true => expression.set_state(State::Sent).set_once("first_sent_at", number(begin.now.as_millis())),
        false => expression.set_once("state", text(State::Claimed.as_str())),
    }
}

fn new_attempt(begin: &Begin) -> Expression {
    let guard = match (begin.may_create, begin.epoch) {
        // No item is without its key: too old a message never begins anew.
        (false, _) => " AND attribute_not_exists(pk)",
        (true, Some(_)) => " AND state_changed_at >= :epoch",
        (true, None) => "",
    };
    let condition = format!("version = :new_version AND #state = :declined AND attempt = :before{guard}");
    let expression = owned(Expression::when(condition), begin)
        .states(&[State::Declined])
        .bind("before", number(i64::from(begin.attempt).saturating_sub(1)))
        .set("handle_generation", number(0))
        .set("state_changed_at", number(begin.now.as_millis()))
        .set("lease_until", number(begin.lease_until.as_millis()))
        .remove(&[
            "handle",
            "error",
            "charge_id",
            "provider_request_id",
            "held_reason",
            "attention",
            "expires_at",
        ]);
    let expression = match (begin.may_create, begin.epoch) {
        (true, Some(epoch)) => expression.bind("epoch", number(epoch.as_millis())),
        (true, None) | (false, _) => expression,
    };
    match begin.one_shot {
        true => expression.set_state(State::Sent).set("first_sent_at", number(begin.now.as_millis())),
        false => expression.set_state(State::Claimed).remove(&["first_sent_at"]),
    }
}

/// What every begin writes: the order, the delivery and the owner.
fn owned(expression: Expression, begin: &Begin) -> Expression {
    expression
        .set("version", number(VERSION))
        .set("attempt", number(begin.attempt))
        .set("fingerprint", text(&begin.fingerprint))
        .set("provider", text(&begin.provider))
        .set("amount_minor", number(begin.amount_minor))
        .set("currency", text(&begin.currency))
        .set_or_remove("message_id", begin.message_id.as_ref())
        .set("receive_count", number(begin.receive_count))
        .set("owner", text(&begin.token))
        .increment("fence")
}

/// What only the first begin of an order writes; a takeover finds it there.
fn first_begin(expression: Expression, begin: &Begin) -> Expression {
    expression
        .set_once("handle_generation", number(0))
        .set_once("first_seen_at", number(begin.now.as_millis()))
        .set_once("state_changed_at", number(begin.now.as_millis()))
}

fn proven_by(evidence: &Evidence) -> Expression {
    match evidence {
        Evidence::Handle(handle) => {
            Expression::when(HANDLE_IS).states(&[State::Prepared]).bind("handle", text(handle))
        }
        Evidence::Attempt(attempt) => {
            Expression::when("version = :version AND attempt = :attempt AND #state IN (:sent, :held)")
                .states(&[State::Sent])
                .bind("attempt", number(*attempt))
        }
    }
    .version()
    .states(&[State::Held])
}

fn refused_by(refused: &Refused) -> Expression {
    match refused {
        Refused::BeforeHandle(mine) => {
            Expression::when(format!("{MINE} AND #state = :claimed")).mine(mine).states(&[State::Claimed])
        }
        Refused::OneShot(mine) => {
            Expression::when(format!("{MINE} AND #state = :sent")).mine(mine).states(&[State::Sent])
        }
        Refused::Sealed(handle) => Expression::when(HANDLE_IS)
            .version()
            .states(&[State::Prepared, State::Held])
            .bind("handle", text(handle)),
    }
}
