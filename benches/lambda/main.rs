//! How fast the deployed function is, beside an empty one and beside Powertools.
//!
//! `make bench` runs it and writes `docs/performance.md` with its plots. All figures of one run come from one
//! machine and stand beside what they are compared to. With `--budget` it counts instructions only, for
//! `make check`; `--accept` takes what it counts as the budget.
#![expect(
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::indexing_slicing,
    reason = "a program for people, on small numbers and on JSON of its own making"
)]

mod budget;
mod candidate;
mod event;
mod measure;
mod process;
mod report;
mod standin;

use self::measure::Chapter;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), BoxError> {
    let given = |name: &str| std::env::args().any(|argument| argument == name);
    match () {
        // `cargo test --benches` runs benches too, with this argument missing.
        () if !given("--bench") => Ok(()),
        () if given("--accept") => budget::accept(),
        () if given("--budget") => budget::check(),
        () => document(),
    }
}

/// Measures everything and writes `docs/performance.md`; or only the chapters that are named, and writes nothing.
fn document() -> Result<(), BoxError> {
    let candidates = candidate::all();
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|given| given == name);
    let counts = wanted("instructions") && measure::instructions::available();
    let mut chapters = Vec::new();
    let mut add = |chapter: Option<Chapter>| {
        if let Some(chapter) = chapter {
            println!("{}", chapter.markdown());
            chapters.push(chapter);
        }
    };
    add(wanted("start").then(|| measure::start::measure(&candidates)).transpose()?);
    add(wanted("growth").then(|| measure::growth::measure(&candidates)).transpose()?);
    add(wanted("split").then(measure::split::measure).transpose()?);
    add(wanted("path").then(|| measure::path::measure(&candidates)).transpose()?);
    add(counts.then(measure::instructions::measure).transpose()?);
    add(wanted("cost").then(|| measure::cost::measure(&candidates)).transpose()?);
    match named.is_empty() {
        true => write(&chapters),
        false => Ok(()),
    }
}

fn write(chapters: &[Chapter]) -> Result<(), BoxError> {
    let docs = candidate::root().join("docs");
    let mut text = introduction()?;
    for chapter in chapters {
        text.push('\n');
        text.push_str(&chapter.markdown());
        for (file, _alternative, svg) in &chapter.plots {
            std::fs::write(docs.join(file), svg)?;
        }
    }
    std::fs::write(docs.join("performance.md"), text)?;
    write_readme(chapters)
}

/// The README's own table stands between these two lines.
const FIGURES: (&str, &str) = ("<!-- figures: make bench -->\n", "<!-- end of figures -->\n");

fn write_readme(chapters: &[Chapter]) -> Result<(), BoxError> {
    let path = candidate::root().join("README.md");
    let readme = std::fs::read_to_string(&path)?;
    let (before, rest) = readme.split_once(FIGURES.0).ok_or("the README has no place for figures")?;
    let (_old, after) = rest.split_once(FIGURES.1).ok_or("the README's figures have no end")?;
    let headlines = chapters.iter().flat_map(|chapter| &chapter.headlines);
    let rows = headlines.map(|(what, figures)| format!("| {what} | {figures} |\n")).collect::<String>();
    let table = format!("| what | measured |\n|---|---|\n{rows}");
    Ok(std::fs::write(path, format!("{before}{}{table}{}{after}", FIGURES.0, FIGURES.1))?)
}

fn introduction() -> Result<String, BoxError> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism()?;
    Ok(format!(
        "# Performance\n\nFor those who decide by figures. Written by `make bench` in one run on one machine ({}, {cores} \
         cores), so compare the figures with each other, not with those of other machines. What is measured is the binary that \
         is deployed. Runtime API, store and provider are stand-ins over HTTP on loopback, in another process on the same \
         cores; the peers get the same ones. The worker has figures of its own: [worker.md](worker.md).\n",
        model.unwrap_or("unknown processor"),
    ))
}
