//! The last line of a report: how many of what.

use std::{collections::BTreeMap, fmt};

use charge_once::local::{audit::Books, log::RecordLine, runtime_api::InvocationOutcome};
use serde_json::{Value, json};

use super::Report;
use crate::screen::plural;

/// Counts over a whole run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) events: usize,
    /// Events that the function did not answer.
    pub(super) failed: usize,
    /// Each of them is in one of the next six, by what the function says of it.
    pub(super) records: usize,
    pub(super) charged: usize,
    pub(super) duplicates: usize,
    pub(super) poison: usize,
    pub(super) retried: usize,
    pub(super) held: usize,
    pub(super) declined: usize,
    /// Charges that moved money, as the provider counts them: also those of which a record does not know yet.
    pub(super) provider_charges: usize,
    /// Charges beyond the first for the same order and attempt.
    pub(super) double_charges: usize,
    /// What the counts are taken from.
    pub(super) books: Books,
}

impl Tally {
    pub(super) fn of(report: &Report) -> Self {
        let records = || report.deliveries.iter().flat_map(|delivery| &delivery.invocation.records);
        let count = |kind| records().filter(|record| Kind::of(record) == kind).count();
        let mut per_order = BTreeMap::<_, usize>::new();
        for charge in &report.charges {
            let charges = per_order.entry((&charge.order_id, charge.attempt)).or_default();
            *charges = charges.saturating_add(1);
        }
        let answered = report
            .deliveries
            .iter()
            .filter(|delivery| matches!(delivery.invocation.outcome, InvocationOutcome::Response(_)));
        Self {
            events: report.deliveries.len(),
            failed: report.deliveries.len().saturating_sub(answered.count()),
            records: records().count(),
            // A function of somebody's own may say nothing of its records.
            charged: if records().next().is_none() { report.charges.len() } else { count(Kind::Charged) },
            duplicates: count(Kind::Duplicate),
            poison: count(Kind::Poison),
            retried: count(Kind::Retried),
            held: count(Kind::Held),
            declined: count(Kind::Declined),
            provider_charges: report.charges.len(),
            double_charges: report.charges.len().saturating_sub(per_order.len()),
            books: report.books,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "events": self.events,
            "failed": self.failed,
            "records": self.records,
            "charged": self.charged,
            "duplicates": self.duplicates,
            "poison": self.poison,
            "retried": self.retried,
            "held": self.held,
            "declined": self.declined,
            "provider_charges": self.provider_charges,
            "double_charges": self.double_charges,
            "judged_by": self.books.name(),
        })
    }
}

/// What a record counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Charged,
    Duplicate,
    Poison,
    Retried,
    Held,
    Declined,
}

impl Kind {
    /// By the function's own words. What was moved to the dead-letter queue counts as what it was.
    fn of(record: &RecordLine) -> Self {
        let reason = record.text("reason").to_ascii_uppercase();
        let moved = reason.strip_prefix("MOVED_TO_DLQ:");
        match (record.text("decision").as_str(), moved.unwrap_or(&reason)) {
            ("retry", _) => Self::Retried,
            (_, reason) if reason.starts_with("DECLINED") => Self::Declined,
            (_, reason) if reason.starts_with("HELD") => Self::Held,
            ("ack", "DUPLICATE") => Self::Duplicate,
            ("ack", _) if moved.is_none() => Self::Charged,
            _ => Self::Poison,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failed, charged, duplicates, poison, retried, held, declined, .. } = self;
        let Self { provider_charges, double_charges, books, .. } = self;
        let done = match books {
            Books::Both | Books::Provider => "charged",
            Books::Ledger | Books::Nobody => "done",
        };
        write!(f, "{}, {}: ", plural(self.events, "event"), plural(self.records, "record"))?;
        write!(f, "{charged} {done}, {}, ", plural(*duplicates, "duplicate"))?;
        write!(f, "{poison} poison, {retried} retried, {held} held")?;
        if *declined > 0 {
            write!(f, ", {declined} declined")?;
        }
        f.write_str("; ")?;
        if *failed > 0 {
            write!(f, "{} not answered; ", plural(*failed, "event"))?;
        }
        if provider_charges != charged && matches!(books, Books::Both | Books::Provider) {
            write!(f, "{} at the provider, ", plural(*provider_charges, "charge"))?;
        }
        match books {
            Books::Both => write!(f, "double charges {double_charges}"),
            Books::Provider => {
                write!(f, "double charges {double_charges}\nThe function keeps no order in this ledger.")
            }
            Books::Ledger => f.write_str(
                "nothing was charged at the simulated provider, which would show what was done twice",
            ),
            Books::Nobody => f.write_str(
                "what was done cannot be seen: nothing was charged at the simulated provider, and no order is in this ledger",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_counts_once() {
        let kinds = [
            ("ack", "CHARGED", Kind::Charged),
            ("ack", "DONE", Kind::Charged),
            ("ack", "duplicate", Kind::Duplicate),
            ("ack", "DECLINED:card_declined", Kind::Declined),
            ("ack", "MOVED_TO_DLQ:DECLINED:card_declined", Kind::Declined),
            ("ack", "MOVED_TO_DLQ:BODY_NOT_JSON", Kind::Poison),
            ("poison", "DECLINED:card_declined", Kind::Declined),
            ("poison", "HELD:RESTORED", Kind::Held),
            ("poison", "MISMATCH", Kind::Poison),
            ("retry", "BUSY", Kind::Retried),
        ];
        for (decision, reason, kind) in kinds {
            let line = format!(r#"{{"decision":"{decision}","reason":"{reason}"}}"#);
            assert_eq!(Kind::of(&RecordLine::parse(&line).unwrap()), kind, "{line}");
        }
    }
}
