//! The last line of a report: how many of what.

use std::{collections::BTreeMap, fmt};

use charge_once::local::{log::RecordLine, runtime_api::InvocationOutcome};
use serde_json::{Value, json};

use super::Report;

/// Counts over a whole run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) events: usize,
    /// Events that the function did not answer.
    pub(super) failed: usize,
    pub(super) records: usize,
    /// Charges that moved money.
    pub(super) charged: usize,
    pub(super) duplicates: usize,
    pub(super) poison: usize,
    pub(super) retried: usize,
    pub(super) held: usize,
    /// Charges beyond the first for the same order and attempt.
    pub(super) double_charges: usize,
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
            charged: report.charges.len(),
            duplicates: records().filter(|record| is_duplicate(record)).count(),
            poison: decided("poison"),
            retried: decided("retry"),
            held: report.ledger.iter().filter(|row| row.get("state") == Some(&"HELD".into())).count(),
            double_charges: report.charges.len().saturating_sub(per_order.len()),
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
        })
    }
}

fn is_duplicate(record: &RecordLine) -> bool {
    record.text("decision") == "ack" && record.text("reason").eq_ignore_ascii_case("duplicate")
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, failed, records, charged, duplicates, poison, retried, held, double_charges } =
            self;
        write!(f, "{events} events, {records} records: {charged} charged, {duplicates} duplicates, ")?;
        write!(f, "{poison} poison, {retried} retried, {held} held; ")?;
        if *failed > 0 {
            write!(f, "{failed} events not answered; ")?;
        }
        write!(f, "double charges {double_charges}")
    }
}
