//! The frame that all plots share: fonts, colours for light and dark, and the shapes they are made of.

use std::fmt::Write;

/// Colours by class, readable on white and on a dark page.
const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#24292f}\
.title{font-size:15px;font-weight:600}.small{font-size:12px;fill:#57606a}\
.grid{stroke:#d0d7de;stroke-width:1}.axis{stroke:#57606a;stroke-width:1}\
.f0{fill:#0969da}.f1{fill:#bf5700}.f2{fill:#1a7f37}.f3{fill:#8250df}\
.l0{stroke:#0969da}.l1{stroke:#bf5700}.l2{stroke:#1a7f37}.l3{stroke:#8250df}\
.line{fill:none;stroke-width:2}.mark{stroke:#24292f;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}.axis{stroke:#9198a1}\
.f0{fill:#4493f8}.f1{fill:#f0883e}.f2{fill:#3fb950}.f3{fill:#ab7df8}\
.l0{stroke:#4493f8}.l1{stroke:#f0883e}.l2{stroke:#3fb950}.l3{stroke:#ab7df8}.mark{stroke:#e6edf3}}";

/// Where a text stands in relation to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self { width, height, body: String::new() };
        svg.text(0.0, 18.0, "title", Anchor::Start, title);
        svg
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.push(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(&format!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    pub(super) fn bar(&mut self, series: usize, x: f64, y: f64, width: f64, height: f64) {
        // A bar that is too short to see is still there.
        let width = width.max(1.0);
        self.push(&format!(
            r#"<rect class="f{series}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    pub(super) fn curve(&mut self, series: usize, points: &[(f64, f64)]) {
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(&format!(r#"<polyline class="line l{series}" points="{}"/>"#, path.join(" ")));
        for (x, y) in points {
            self.push(&format!(r#"<circle class="f{series}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#));
        }
    }

    pub(super) fn legend(&mut self, y: f64, names: &[&str]) {
        let mut x = 0.0;
        for (series, name) in names.iter().enumerate() {
            self.bar(series, x, y - 9.0, 10.0, 10.0);
            self.text(x + 15.0, y, "", Anchor::Start, name);
            x += 40.0 + 7.0 * f64::from(u16::try_from(name.chars().count()).unwrap_or(0));
        }
    }

    fn push(&mut self, element: &str) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    pub(super) fn finish(self) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 0 {:.0} {height:.0}\" width=\"{:.0}\" height=\"{height:.0}\">\n\
             <style>{STYLE}</style>\n{body}</svg>\n",
            width + 20.0,
            width + 20.0,
        )
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `top` into at most six.
pub(super) fn step(top: f64) -> f64 {
    let mut step = 1e-3;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if top / (step * factor) <= 6.0 {
                return step * factor;
            }
        }
        step *= 10.0;
    }
}
