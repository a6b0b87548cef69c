//! Tables on the screen and in `docs/performance.md`, from the same rows.

use std::time::Duration;

/// A table under a heading, with a sentence on how it was made.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn markdown(&self) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells =
                    self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                let head = self.head.get(column).map_or(0, |cell| cell.chars().count());
                cells.chain([head, 3]).max().unwrap_or(3)
            })
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded: Vec<String> =
                cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
            format!("| {} |\n", padded.join(" | "))
        };
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.note);
        text.push_str(&line(&mut self.head.iter().copied()));
        text.push_str(&line(&mut dashes.iter().map(String::as_str)));
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

/// The middle of several measurements.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds with one decimal.
pub(crate) fn ms(time: Duration) -> String {
    let tenths = time.as_micros().saturating_add(50) / 100;
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

/// `a / b` with two decimals, without floats.
pub(crate) fn ratio(a: Duration, b: Duration) -> String {
    let hundredths = a.as_nanos().saturating_mul(100).checked_div(b.as_nanos()).unwrap_or(0);
    format!("{}.{:02} x", hundredths / 100, hundredths % 100)
}
