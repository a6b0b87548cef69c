//! Markdown tables whose columns line up.

/// A table; the first column is text, the others are figures.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn markdown(&self) -> String {
        let widths: Vec<usize> = self
            .head
            .iter()
            .enumerate()
            .map(|(column, head)| self.width(column).max(head.chars().count()))
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded: Vec<String> =
                cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
            format!("| {} |\n", padded.join(" | "))
        };
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut text = line(&mut self.head.iter().copied());
        text.push_str(&line(&mut dashes.iter().map(String::as_str)));
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    }
}
