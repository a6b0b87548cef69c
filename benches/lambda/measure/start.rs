//! Cold start: from exec to the first request for an event, and to the first answer.

use std::time::Duration;

use super::{Chapter, side_by_side};
use crate::{
    BoxError,
    candidate::{Candidate, built},
    event,
    report::{
        bars::{Bar, Bars},
        mb, median, ms, ratio,
        table::Table,
    },
    standin::World,
};

/// Starts of each candidate, in turns, so that all meet the same moods of the machine.
const STARTS: u32 = 21;

#[derive(Default)]
struct Starts {
    ready: Vec<Duration>,
    cpu: Vec<Duration>,
    answered: Vec<Duration>,
    peak_kib: u64,
}

pub(crate) fn measure(candidates: &[Candidate]) -> Result<Chapter, BoxError> {
    let mut all: Vec<Starts> = candidates.iter().map(|_candidate| Starts::default()).collect();
    for run in 0..STARTS {
        for (candidate, starts) in candidates.iter().zip(&mut all) {
            let function = World::default().start(candidate)?;
            starts.ready.push(function.start);
            starts.cpu.push(function.process.cpu().total);
            starts.answered.push(function.start + function.invoke(event::orders(1, run))?);
            function.invoke(event::orders(10, 1000 + run))?;
            starts.peak_kib = starts.peak_kib.max(function.process.peak_kib());
        }
    }
    let figures: Vec<_> = candidates
        .iter()
        .zip(all)
        .map(|(candidate, starts)| Figures {
            name: candidate.name,
            ready: median(starts.ready),
            cpu: median(starts.cpu),
            answered: median(starts.answered),
            peak_kib: starts.peak_kib,
        })
        .collect();
    Ok(chapter(&figures))
}

struct Figures {
    name: &'static str,
    ready: Duration,
    cpu: Duration,
    answered: Duration,
    peak_kib: u64,
}

fn chapter(figures: &[Figures]) -> Chapter {
    let ours = figures.first();
    let beside = |time: Duration, of: fn(&Figures) -> Duration| {
        ratio(time.as_secs_f64(), ours.map_or(0.0, |ours| of(ours).as_secs_f64()))
    };
    let row = |one: &Figures| {
        vec![
            one.name.to_owned(),
            ms(one.ready),
            beside(one.ready, |ours| ours.ready),
            ms(one.cpu),
            ms(one.answered),
            beside(one.answered, |ours| ours.answered),
            mb(one.peak_kib),
        ]
    };
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let bar = |one: &Figures| Bar {
        label: one.name.to_owned(),
        parts: vec![millis(one.ready), millis(one.answered.saturating_sub(one.ready))],
        mark: None,
        text: ms(one.answered),
    };
    let plot = Bars {
        title: "Cold start",
        axis: "milliseconds from exec",
        series: &["to the first request for an event", "from there to the first answer"],
        bars: figures.iter().map(bar).collect(),
    };
    Chapter {
        title: "Cold start",
        how: format!(
            "From exec to the first `/next`, and to the first answer (one order): medians of {STARTS} starts each, in \
             turns; `x` is in relation to charge-once. Peak resident memory after a batch of 10. The empty function is \
             `examples/empty_function.rs`: `lambda_runtime` and nothing else."
        ),
        table: Table {
            head: vec!["function", "first `/next`", "", "CPU until then", "first answer", "", "peak memory"],
            rows: figures.iter().map(row).collect(),
        },
        plots: vec![(
            "performance-start.svg",
            "Bars of the time to the first request and answer",
            plot.svg(),
        )],
        reading: format!("The binary has {}.", size()),
        headlines: vec![
            (
                "cold start, to the first request for an event",
                side_by_side(figures.iter().map(|one| (one.name, ms(one.ready)))),
            ),
            (
                "cold start, to the first answer",
                side_by_side(figures.iter().map(|one| (one.name, ms(one.answered)))),
            ),
            ("peak memory", side_by_side(figures.iter().map(|one| (one.name, mb(one.peak_kib))))),
        ],
    }
}

/// The size of the binary and of its zip.
fn size() -> String {
    let unpacked = std::fs::metadata(built("release", "bootstrap")).map_or(0, |file| file.len());
    let zipped = std::process::Command::new("gzip")
        .args(["-9", "-c"])
        .arg(built("release", "bootstrap"))
        .output()
        .map_or(0, |output| output.stdout.len());
    // A zip holds the same deflated bytes and some 150 more.
    let zipped = u64::try_from(zipped).unwrap_or(0);
    format!("{} unpacked and {} in a zip", mb(unpacked / 1024), mb(zipped / 1024))
}
