//! The table at the end of a rehearsal, and the same as one JSON document.

use std::fmt;

use charge_once::local::{audit::Books, rehearsal::Rehearsed};
use comfy_table::{Cell, CellAlignment, Color, LineStyle, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::{Value, json};

use crate::screen::plural;

/// Longer lists of faulty orders are cut here.
const NAMES_SHOWN: usize = 10;

/// The whole result for a person.
pub(super) struct Rows<'a>(pub(super) &'a Rehearsed);

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rehearsed { audit, .. } = self.0;
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY);
        table.style_mut().row_separator = LineStyle::none();
        for (name, value, note) in rows(self.0) {
            table.add_row([
                Cell::new(name),
                Cell::new(value).set_alignment(CellAlignment::Right),
                Cell::new(note),
            ]);
        }
        for (name, faulty, note) in faults(self.0) {
            let color = if faulty.is_empty() { Color::Green } else { Color::Red };
            let count = Cell::new(faulty.len()).set_alignment(CellAlignment::Right).fg(color);
            table.add_row([Cell::new(name), count, Cell::new(note)]);
        }
        write!(f, "{table}")?;
        for (name, faulty, _) in faults(self.0).into_iter().filter(|(_, faulty, _)| !faulty.is_empty()) {
            let shown: Vec<&str> = faulty.iter().take(NAMES_SHOWN).map(String::as_str).collect();
            write!(f, "\n{name}: {}", shown.join(", "))?;
        }
        let place = if audit.is_sound() {
            "Every order is in exactly one place"
        } else {
            "Not every order is in exactly one place"
        };
        match self.0.books {
            Books::Both => write!(f, "\n{place}."),
            Books::Provider => {
                write!(f, "\n{place}, by the provider's charges: the function keeps no order in this ledger.")
            }
            Books::Ledger => write!(
                f,
                "\n{place}, by the ledger: nothing was charged at the simulated provider, which would show what was done twice."
            ),
            Books::Nobody => write!(
                f,
                "\nWhat became of the orders cannot be seen: nothing was charged at the simulated provider, and no order is in this ledger."
            ),
        }
    }
}

fn charged(books: Books) -> &'static str {
    match books {
        Books::Both => "once, and PAID in the ledger",
        Books::Provider => "once, as the provider counts",
        Books::Ledger => "PAID in the ledger",
        Books::Nobody => "not seen",
    }
}

fn rows(rehearsed: &Rehearsed) -> Vec<(&'static str, String, String)> {
    let Rehearsed { audit, .. } = rehearsed;
    let row = |name, value: &dyn ToString, note: &str| (name, value.to_string(), note.to_owned());
    let kills = format!("of {} batches, {} kills", rehearsed.invocations, rehearsed.kills);
    let mut rows = vec![
        row("orders", &audit.orders, &format!("in {} messages", rehearsed.messages)),
        row("deliveries", &rehearsed.deliveries, ""),
        row("without an answer", &rehearsed.failed, &kills),
        row("retried", &decided(rehearsed, "retry", None), "records"),
        row(
            "duplicates",
            &decided(rehearsed, "ack", Some("duplicate")),
            "records acknowledged without a charge",
        ),
        row("charged", &audit.charged, charged(rehearsed.books)),
        row("declined", &audit.declined, "DECLINED in the ledger, not charged"),
        row("held", &audit.held, "for a person to decide, in the DLQ"),
        row("unsettled", &audit.unsettled, "in the DLQ: receives ran out"),
        row(
            "poison",
            &audit.poison,
            &format!("without a usable order; the DLQ holds {}", plural(rehearsed.dead, "message")),
        ),
        row("seconds", &seconds(rehearsed), ""),
        row("peak memory", &memory(rehearsed), "of one process that charges"),
    ];
    if rehearsed.books == Books::Nobody {
        rows.push(row("unseen", &audit.unseen, "left the queue; what became of them cannot be seen"));
    }
    rows
}

fn faults(rehearsed: &Rehearsed) -> [(&'static str, &[String], &'static str); 3] {
    let audit = &rehearsed.audit;
    [
        ("out of order", &audit.out_of_order, "within a FIFO group"),
        ("lost", &audit.lost, "must be 0"),
        ("double", &audit.double, "must be 0"),
    ]
}

/// How many records the function decided so.
fn decided(rehearsed: &Rehearsed, decision: &str, reason: Option<&str>) -> u64 {
    let matching = rehearsed.decisions.iter().filter(|((found, why), _)| {
        found == decision && reason.is_none_or(|reason| why.eq_ignore_ascii_case(reason))
    });
    matching.map(|(_, count)| count).fold(0, |sum, count| sum.saturating_add(*count))
}

fn seconds(rehearsed: &Rehearsed) -> String {
    format!("{}.{}", rehearsed.took.as_secs(), rehearsed.took.subsec_millis() / 100)
}

fn memory(rehearsed: &Rehearsed) -> String {
    rehearsed
        .peak_memory
        .map_or_else(|| "unknown".into(), |bytes| format!("{} MiB", bytes.div_ceil(1_048_576)))
}

/// The whole result for a program.
pub(super) fn to_json(rehearsed: &Rehearsed) -> Value {
    let Rehearsed { audit, .. } = rehearsed;
    let decisions = rehearsed.decisions.iter().map(
        |((decision, reason), count)| json!({ "decision": decision, "reason": reason, "records": count }),
    );
    json!({
        "orders": audit.orders,
        "messages": rehearsed.messages,
        "deliveries": rehearsed.deliveries,
        "invocations": rehearsed.invocations,
        "without_answer": rehearsed.failed,
        "kills": rehearsed.kills,
        "decisions": decisions.collect::<Vec<_>>(),
        "charged": audit.charged,
        "declined": audit.declined,
        "held": audit.held,
        "unsettled": audit.unsettled,
        "unseen": audit.unseen,
        "judged_by": rehearsed.books.name(),
        "poison": audit.poison,
        "dead_letters": rehearsed.dead,
        "out_of_order": audit.out_of_order,
        "lost": audit.lost,
        "double": audit.double,
        "duration_ms": u64::try_from(rehearsed.took.as_millis()).unwrap_or(u64::MAX),
        "peak_memory_bytes": rehearsed.peak_memory,
    })
}
