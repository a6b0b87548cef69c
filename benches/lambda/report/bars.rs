//! Horizontal bars, each made of one part or several.

use super::svg::{Anchor, Svg, step};

/// One bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// One value a series.
    pub(crate) parts: Vec<f64>,
    /// Where a mark crosses the bar.
    pub(crate) mark: Option<f64>,
    /// What stands behind the bar.
    pub(crate) text: String,
}

/// A plot of bars.
#[derive(Debug)]
pub(crate) struct Bars<'a> {
    pub(crate) title: &'a str,
    /// What the values are, with their unit.
    pub(crate) axis: &'a str,
    /// The names of the parts; none if there is only one.
    pub(crate) series: &'a [&'a str],
    pub(crate) bars: Vec<Bar>,
}

const WIDTH: f64 = 760.0;
const LABELS: f64 = 270.0;
const TEXTS: f64 = 90.0;
const ROW: f64 = 30.0;

impl Bars<'_> {
    pub(crate) fn svg(&self) -> String {
        let top = if self.series.is_empty() { 34.0 } else { 58.0 };
        let rows: f64 = self.bars.iter().map(|_bar| ROW).sum();
        let (bottom, room) = (top + rows, WIDTH - LABELS - TEXTS);
        let longest = |bar: &Bar| bar.parts.iter().sum::<f64>().max(bar.mark.unwrap_or(0.0));
        let most = self.bars.iter().map(longest).fold(f64::MIN_POSITIVE, f64::max);
        let x = |value: f64| LABELS + room * value / most;
        let mut svg = Svg::new(WIDTH, bottom + 46.0, self.title);
        if !self.series.is_empty() {
            svg.legend(44.0, self.series);
        }
        let step = step(most);
        let mut tick = 0.0;
        while tick <= most {
            svg.line("grid", (x(tick), top), (x(tick), bottom));
            svg.text(x(tick), bottom + 17.0, "small", Anchor::Middle, &round(tick));
            tick += step;
        }
        svg.text(LABELS + room / 2.0, bottom + 37.0, "small", Anchor::Middle, self.axis);
        let mut y = top + 5.0;
        for bar in &self.bars {
            svg.text(LABELS - 10.0, y + 14.0, "", Anchor::End, &bar.label);
            let mut from = 0.0;
            for (series, part) in bar.parts.iter().enumerate() {
                svg.bar(series, x(from), y, x(from + part) - x(from), ROW - 10.0);
                from += part;
            }
            if let Some(mark) = bar.mark {
                svg.line("mark", (x(mark), y - 3.0), (x(mark), y + ROW - 7.0));
            }
            svg.text(x(longest(bar)) + 8.0, y + 14.0, "", Anchor::Start, &bar.text);
            y += ROW;
        }
        svg.line("axis", (LABELS, top), (LABELS, bottom));
        svg.finish()
    }
}

fn round(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
