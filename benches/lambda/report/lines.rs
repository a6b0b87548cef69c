//! Curves over a logarithmic grid: what is proportional is a straight line there, one decade up for each to the right.

use super::svg::{Anchor, Svg};

/// A plot of curves.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    pub(crate) title: &'a str,
    /// What lies on each axis, with its unit.
    pub(crate) axes: (&'a str, &'a str),
    /// Each curve with its name; all values above zero.
    pub(crate) curves: Vec<(&'a str, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 50.0;

impl Lines<'_> {
    pub(crate) fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|(_name, points)| points);
        let (x_low, x_high) = decades(points().map(|(x, _)| *x));
        let (y_low, y_high) = decades(points().map(|(_, y)| *y));
        let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (value.log10() - x_low) / (x_high - x_low);
        let y = |value: f64| {
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value.log10() - y_low) / (y_high - y_low)
        };
        let mut svg = Svg::new(WIDTH, HEIGHT, self.title);
        let names: Vec<&str> = self.curves.iter().map(|(name, _)| *name).collect();
        svg.legend(44.0, &names);
        let mut decade = x_low;
        while decade <= x_high {
            let at = x(10_f64.powf(decade));
            svg.line("grid", (at, TOP), (at, HEIGHT - BOTTOM));
            svg.text(at, HEIGHT - BOTTOM + 17.0, "small", Anchor::Middle, &power(decade));
            decade += 1.0;
        }
        let mut decade = y_low;
        while decade <= y_high {
            let at = y(10_f64.powf(decade));
            svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
            svg.text(LEFT - 8.0, at + 4.0, "small", Anchor::End, &power(decade));
            decade += 1.0;
        }
        svg.text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0, "small", Anchor::Middle, self.axes.0);
        svg.text(0.0, TOP - 14.0, "small", Anchor::Start, self.axes.1);
        for (series, (_name, points)) in self.curves.iter().enumerate() {
            let points: Vec<_> = points.iter().map(|(right, up)| (x(*right), y(*up))).collect();
            svg.curve(series, &points);
        }
        svg.finish()
    }
}

/// The powers of ten around the values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::MAX, f64::min).log10().floor();
    let high = values.fold(f64::MIN_POSITIVE, f64::max).log10().ceil();
    (low, high.max(low + 1.0))
}

fn power(decade: f64) -> String {
    let value = 10_f64.powf(decade);
    let text = if value < 1.0 { format!("{value}") } else { format!("{value:.0}") };
    match text.strip_suffix("000") {
        Some(thousands) if !thousands.is_empty() => format!("{thousands},000"),
        _ => text,
    }
}
