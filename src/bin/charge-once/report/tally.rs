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
    pub(super) records: usize,
    /// Charges that moved money; where the provider was not asked for any, records that say so.
    pub(super) charged: usize,
    pub(super) duplicates: usize,
    pub(super) poison: usize,
    pub(super) retried: usize,
    pub(super) held: usize,
    /// Charges beyond the first for the same order and attempt.
    pub(super) double_charges: usize,
    /// What the counts are taken from.
    pub(super) books: Books,
}

impl Tally {
    pub(super) fn of(report: &Report) -> Self {
        let records = || report.deliveries.iter().flat_map(|delivery| &delivery.invocation.records);
        let decided = |decision: &str| records().filter(|record| record.text("decision") == decision).count();
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
            charged: match report.books {
                Books::Both | Books::Provider => report.charges.len(),
                Books::Ledger | Books::Nobody => records().filter(|record| is_done(record)).count(),
            },
            duplicates: records().filter(|record| is_duplicate(record)).count(),
            poison: decided("poison"),
            retried: decided("retry"),
            held: report.ledger.iter().filter(|row| row.get("state") == Some(&"HELD".into())).count(),
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
            "double_charges": self.double_charges,
            "judged_by": self.books.name(),
        })
    }
}

fn is_duplicate(record: &RecordLine) -> bool {
    record.text("decision") == "ack" && record.text("reason").eq_ignore_ascii_case("duplicate")
}

/// What a record says that was done just now, in the function's own words.
fn is_done(record: &RecordLine) -> bool {
    record.text("decision") == "ack" && ["CHARGED", "DONE"].contains(&record.text("reason").as_str())
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failed, charged, duplicates, poison, retried, held, double_charges, books, .. } = self;
        let done = match books {
            Books::Both | Books::Provider => "charged",
            Books::Ledger | Books::Nobody => "done",
        };
        write!(f, "{}, {}: ", plural(self.events, "event"), plural(self.records, "record"))?;
        write!(f, "{charged} {done}, {}, ", plural(*duplicates, "duplicate"))?;
        write!(f, "{poison} poison, {retried} retried, {held} held; ")?;
        if *failed > 0 {
            write!(f, "{} not answered; ", plural(*failed, "event"))?;
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
