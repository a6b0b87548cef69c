//! What is measured, a file a question.

pub(crate) mod cost;
pub(crate) mod growth;
pub(crate) mod instructions;
pub(crate) mod path;
pub(crate) mod split;
pub(crate) mod start;

use crate::report::table::Table;

/// A chapter of `docs/performance.md`.
#[derive(Debug)]
pub(crate) struct Chapter {
    pub(crate) title: &'static str,
    /// How it was measured.
    pub(crate) how: String,
    pub(crate) table: Table,
    /// Each plot's name below `docs/`, what it shows for those who cannot see it, and the picture.
    pub(crate) plots: Vec<(&'static str, &'static str, String)>,
    /// What the figures say.
    pub(crate) reading: String,
    /// What the README shows of it: a question and its answer.
    pub(crate) headlines: Vec<(&'static str, String)>,
}

/// `charge-once 1, an empty function 2`: the same figure of all that were measured.
pub(crate) fn side_by_side<'a>(figures: impl Iterator<Item = (&'a str, String)>) -> String {
    figures.map(|(name, figure)| format!("{name} {figure}")).collect::<Vec<_>>().join(", ")
}

impl Chapter {
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n{}", self.title, self.how, self.table.markdown());
        for (file, alternative, _svg) in &self.plots {
            text.push_str(&format!("\n![{alternative}]({file})\n"));
        }
        if !self.reading.is_empty() {
            text.push_str(&format!("\n{}\n", self.reading));
        }
        text
    }
}
