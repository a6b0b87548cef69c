//! Names each difference between the two functions. What gets no name here fails the test; the names are those of
//! `docs/comparison.md`.

use charge_once::gateway::simulated::Effect;
use serde_json::Value;

use super::{
    batch::Batch,
    run::{Ending, Round, Seen},
};

/// These are about the form of an answer: the same messages stay in the queue.
pub(super) const FORMS: [&str; 2] = ["every-record-failed", "no-records"];

/// A difference that was looked into, or the words of one that was not.
pub(super) type Kind = Result<&'static str, String>;

/// Everything in which the two differ.
pub(super) fn all(batch: &Batch, ours: &Seen, theirs: &Seen) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (number, (ours, theirs)) in ours.rounds.iter().zip(&theirs.rounds).enumerate() {
        for place in 0..batch.records(number).len() {
            let Some(at) = parting(ours, theirs, place) else { continue };
            let kind = of_message(batch, &ours[..=at], &theirs[..=at], place);
            let words = || {
                let told = ours[at].told(place);
                format!("event {number}, record {place}, delivery {at}: ours {told}, theirs {:?}", theirs[at])
            };
            kinds.push(kind.ok_or_else(words));
        }
        kinds.extend(ours.iter().zip(theirs).filter_map(|(ours, theirs)| of_ending(ours, theirs)));
    }
    kinds.extend(of_charges(batch, ours, theirs, &kinds));
    kinds.extend(lost(batch, theirs).map(Err));
    kinds
}

/// The first delivery after which the message was gone in one queue only.
fn parting(ours: &[Round], theirs: &[Round], place: usize) -> Option<usize> {
    let failed = |rounds: &[Round], at: usize| rounds.get(at)?.failed.get(&place).copied();
    (0..ours.len().min(theirs.len())).find(|at| failed(ours, *at) != failed(theirs, *at))
}

/// Why a message was treated otherwise. Both slices end with the delivery in which it was.
fn of_message(batch: &Batch, ours: &[Round], theirs: &[Round], place: usize) -> Option<&'static str> {
    let last = ours.last()?;
    let told = |text: &str| ours.iter().any(|round| round.told(place).contains(text));
    let is_acked = !last.failed.get(&place)?;
    // Then it was not begun, and meets in a later delivery what ours met in an earlier one.
    let after_another =
        theirs.iter().any(|round| round.failed.iter().any(|(other, failed)| *other < place && *failed));
    let is_overtaken =
        ours.iter().any(|round| round.lines.keys().any(|other| round.told(*other) == "MISMATCH"));
    let has_conflict = batch.script.rules.iter().any(|rule| rule.effect == Effect::Conflict {});
    let kinds = [
        (theirs.iter().any(|round| round.ending == Ending::TimedOut), "deadline"),
        (last.ending == Ending::Error("NotAnSqsEvent".to_owned()), "other-service"),
        (told("NOT_STARTED:BREAKER") || told("RATE_LIMITED"), "pause-after-429"),
        (told("HELD:NO_RECORD_TOO_OLD"), "older-than-the-records"),
        (told("HELD:KEY_MISMATCH"), "key-with-other-parameters"),
        (is_acked && batch.is_fifo() && after_another, "fifo-batch-ends"),
        (is_acked && has_conflict, "key-in-use"),
        (is_overtaken, "other-amount-overtakes"),
        (batch.is_case && batch.script.rules.is_empty(), "what-an-order-is"),
    ];
    kinds.into_iter().find(|(holds, _)| *holds).map(|(_, kind)| kind)
}

/// Whether the answer differs where the messages' fate does not.
fn of_ending(ours: &Round, theirs: &Round) -> Option<Kind> {
    let Ending::Error(name) = &theirs.ending else { return None };
    if ours.ending != Ending::List {
        return None;
    }
    Some(match (name.as_str(), ours.failed.values().all(|failed| *failed)) {
        _ if ours.failed.is_empty() => Ok("no-records"),
        ("BatchProcessingError", true) => Ok("every-record-failed"),
        // Then some message has a difference of its own.
        ("BatchProcessingError", false) => return None,
        _ => Err(format!("theirs ended with {name}")),
    })
}

/// Charges differ because messages do, or for a reason of their own.
fn of_charges(batch: &Batch, ours: &Seen, theirs: &Seen, kinds: &[Kind]) -> Option<Kind> {
    if ours.charges == theirs.charges {
        return None;
    }
    let is_told = |kind: &Kind| kind.as_ref().is_ok_and(|name| !FORMS.contains(name));
    if theirs.charges.values().any(|charges| charges.len() > 1) {
        Some(Ok("key-forgotten"))
    } else if kinds.iter().any(is_told) {
        None
    } else if batch.is_case && batch.script.rules.is_empty() {
        Some(Ok("what-an-order-is"))
    } else {
        Some(Err(format!("charges: ours {:?}, theirs {:?}", ours.charges, theirs.charges)))
    }
}

/// What they acknowledged without a charge; none so far, so it has no name.
fn lost(batch: &Batch, theirs: &Seen) -> Option<String> {
    theirs.acked().into_iter().find_map(|(event, place, _)| {
        let body = batch.records(event)[place]["body"].as_str()?;
        let order: Value = serde_json::from_str(body).ok()?;
        let order_id = order["order_id"].as_str()?;
        (!theirs.charges.contains_key(order_id)).then(|| format!("theirs lost {order_id}"))
    })
}

/// What must never be so on our side, whatever others do.
pub(super) fn broken_promises(seen: &Seen) -> Vec<String> {
    let mut broken = Vec::new();
    let twice = seen.charges.iter().filter(|(_, charges)| charges.len() > 1);
    broken.extend(twice.map(|(order_id, _)| format!("{order_id} is charged twice")));
    for round in seen.rounds.iter().flatten() {
        if let Ending::Unreadable(why) = &round.ending {
            broken.push(format!("Lambda cannot read the answer: {why}"));
        }
    }
    for (event, place, round) in seen.acked() {
        let order_id = round.lines.get(&place).map(|line| line.text("order_id")).unwrap_or_default();
        if !seen.charges.contains_key(&order_id) {
            broken.push(format!("event {event}, record {place} is gone and {order_id:?} is not charged"));
        }
    }
    broken
}
