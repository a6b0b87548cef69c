//! The tables of a report. Colour appears only on a terminal and not with `NO_COLOR`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use charge_once::{
    local::{
        answer::Reading, dynamodb::Row, log::RecordLine, runtime_api::InvocationOutcome,
        sample::is_bare_order,
    },
    money::Currency,
};
use comfy_table::{Cell, Color, Table};
use serde_json::Value;

use super::Delivery;
use crate::{screen::plural, table::table};

/// Longer lists are cut here and summed up.
const ROWS_SHOWN: usize = 12;

/// One event: its records, the function's answer, and how Lambda reads it.
pub(super) struct Delivered<'a>(pub(super) &'a Delivery);

impl fmt::Display for Delivered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delivery { name, event, invocation } = self.0;
        writeln!(f, "{name}")?;
        if !invocation.records.is_empty() {
            writeln!(f, "{}", self.records())?;
        }
        rest(f, invocation.records.get(ROWS_SHOWN..).unwrap_or_default())?;
        for (reason, words) in explained(&invocation.records) {
            writeln!(f, "reason  {reason}: {words}")?;
        }
        match &invocation.outcome {
            InvocationOutcome::Response(answer) => {
                writeln!(f, "answer  {}", shortened(&String::from_utf8_lossy(answer)))?;
            }
            InvocationOutcome::Error(error) => writeln!(f, "failed  {}", error.error_message)?,
            InvocationOutcome::Crashed => writeln!(f, "failed  the function's process ended")?,
            InvocationOutcome::TimedOut => writeln!(f, "failed  the function timed out")?,
        }
        if is_bare_order(event) {
            writeln!(
                f,
                "hint    an order is the body of a message: charge-once queue event --body '...' | charge-once local -"
            )?;
        }
        writeln!(f, "lambda  {}\n", verdict(invocation.reading(event)))
    }
}

impl Delivered<'_> {
    fn records(&self) -> Table {
        let Delivery { event, invocation, .. } = self.0;
        let handles = receipt_handles(event);
        let seconds: BTreeMap<&str, u32> = invocation
            .visibility
            .iter()
            .map(|change| (change.receipt_handle.as_str(), change.seconds))
            .collect();
        let mut table =
            table(["message", "order", "decision", "reason", "amount", "visible again", "charge"]);
        for record in invocation.records.iter().take(ROWS_SHOWN) {
            let message_id = record.text("message_id");
            let visible = handles.get(&message_id).and_then(|handle| seconds.get(handle.as_str()));
            table.add_row([
                Cell::new(message_id.get(..8).unwrap_or(&message_id)),
                Cell::new(record.text("order_id")),
                decision(record),
                Cell::new(record.text("reason")),
                Cell::new(amount(&record.text("amount_minor"), &record.text("currency"))),
                Cell::new(visible.map_or_else(String::new, |seconds| format!("in {seconds} s"))),
                Cell::new(record.text("charge_id")),
            ]);
        }
        table
    }
}

/// What the function adds in words to the reasons that are shown, each once.
fn explained(records: &[RecordLine]) -> BTreeSet<(String, String)> {
    let shown = records.iter().take(ROWS_SHOWN).map(|record| (record.text("reason"), record.text("error")));
    shown.filter(|(_, words)| !words.is_empty()).collect()
}

fn rest(f: &mut fmt::Formatter<'_>, records: &[RecordLine]) -> fmt::Result {
    let mut counts = BTreeMap::<String, usize>::new();
    for record in records {
        let count = counts.entry(record.text("decision")).or_default();
        *count = count.saturating_add(1);
    }
    if counts.is_empty() {
        return Ok(());
    }
    let counts: Vec<String> = counts.iter().map(|(decision, count)| format!("{count} {decision}")).collect();
    writeln!(f, "        and {} more: {}", records.len(), counts.join(", "))
}

/// The ledger after the last event.
pub(super) struct Ledger<'a>(pub(super) &'a [Row]);

impl fmt::Display for Ledger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.0;
        writeln!(f, "The ledger, {}", plural(rows.len(), "row"))?;
        let mut table =
            table(["order", "state", "amount", "attempt", "fence", "receives", "proof or reason"]);
        // Whoever needs a person's eye comes first.
        let (settled, open): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| text(row, "state") == "PAID");
        for row in open.into_iter().chain(settled).take(ROWS_SHOWN) {
            let proof = ["held_reason", "error", "charge_id"].map(|name| text(row, name));
            table.add_row([
                Cell::new(text(row, "pk").trim_start_matches("order#")),
                state(row),
                Cell::new(amount(&text(row, "amount_minor"), &text(row, "currency"))),
                Cell::new(text(row, "attempt")),
                Cell::new(text(row, "fence")),
                Cell::new(text(row, "receive_count")),
                Cell::new(proof.into_iter().find(|text| !text.is_empty()).unwrap_or_default()),
            ]);
        }
        writeln!(f, "{table}")?;
        match rows.len().saturating_sub(ROWS_SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "        and {more} more; --json shows all"),
        }
    }
}

fn decision(record: &RecordLine) -> Cell {
    let decision = record.text("decision");
    let color = match decision.as_str() {
        "ack" => Color::Green,
        "retry" => Color::Yellow,
        _ => Color::Red,
    };
    Cell::new(decision).fg(color)
}

fn state(row: &Row) -> Cell {
    let state = text(row, "state");
    let color = match state.as_str() {
        "PAID" => Color::Green,
        "HELD" | "DECLINED" => Color::Red,
        _ => Color::Yellow,
    };
    Cell::new(state).fg(color)
}

fn text(row: &Row, name: &str) -> String {
    match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            other.to_string()
        }
    }
}

/// Minor units as people write them: `4990 EUR` is `49.90 EUR`.
fn amount(minor: &str, currency: &str) -> String {
    let Some(exponent) = Currency::parse(currency).map(|currency| usize::from(currency.exponent())) else {
        return format!("{minor} {currency}").trim().to_owned();
    };
    let digits = format!("{minor:0>width$}", width = exponent.saturating_add(1));
    match digits.split_at_checked(digits.len().saturating_sub(exponent)) {
        Some((units, fraction)) if !fraction.is_empty() => format!("{units}.{fraction} {currency}"),
        Some(_) | None => format!("{digits} {currency}"),
    }
}

fn receipt_handles(event: &[u8]) -> BTreeMap<String, String> {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let records = event.get("Records").and_then(Value::as_array).into_iter().flatten();
    let text = |record: &Value, name| record.get(name)?.as_str().map(str::to_owned);
    records.filter_map(|record| Some((text(record, "messageId")?, text(record, "receiptHandle")?))).collect()
}

fn shortened(answer: &str) -> String {
    const SHOWN: usize = 160;
    match answer.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", answer.get(..end).unwrap_or(answer), answer.len()),
        None => answer.to_owned(),
    }
}

fn verdict(reading: Option<Reading>) -> String {
    match reading {
        Some(Reading::Success) => "deletes all messages".into(),
        Some(Reading::Partial(ids)) if ids.len() == 1 => "keeps 1 message, deletes the others".into(),
        Some(Reading::Partial(ids)) => format!("keeps {}, deletes the others", plural(ids.len(), "message")),
        Some(Reading::Failure(why)) => format!("keeps all messages: {why}"),
        None => "keeps all messages: the invocation failed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        let cases = [
            (("4990", "EUR"), "49.90 EUR"),
            (("5", "EUR"), "0.05 EUR"),
            (("1500", "JPY"), "1500 JPY"),
            (("4250", "KWD"), "4.250 KWD"),
            (("", ""), ""),
        ];
        for ((minor, currency), expected) in cases {
            assert_eq!(amount(minor, currency), expected);
        }
    }

    #[test]
    fn long_answers_are_cut() {
        assert_eq!(shortened("{}"), "{}");
        assert!(shortened(&"é".repeat(400)).ends_with("… (800 bytes)"));
    }
}
