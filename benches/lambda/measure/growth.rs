//! Warm batches of 1 to 10,000 records: time, CPU and memory, and whether they grow in a straight line.

use std::time::Duration;

use super::{Chapter, side_by_side};
use crate::{
    BoxError,
    candidate::Candidate,
    event,
    report::{as_f64, lines::Lines, mb, median, ms, table::Table, us},
    standin::World,
};

/// How many records, and how many batches of so many.
const SIZES: [(u32, u32); 5] = [(1, 200), (10, 100), (100, 20), (1_000, 5), (10_000, 2)];
/// A candidate that takes longer than this for one batch is measured with one only.
const PATIENCE: Duration = Duration::from_secs(5);

struct Figures {
    name: &'static str,
    records: u32,
    event_bytes: usize,
    time: Duration,
    cpu: Duration,
    peak_kib: u64,
}

pub(crate) fn measure(candidates: &[Candidate]) -> Result<Chapter, BoxError> {
    let working = || candidates.iter().filter(|candidate| candidate.works);
    let mut figures = Vec::new();
    for (records, batches) in SIZES {
        for candidate in working() {
            figures.push(one(candidate, records, batches)?);
        }
    }
    let names: Vec<_> = working().map(|candidate| candidate.name).collect();
    figures.sort_by_key(|one| names.iter().position(|name| *name == one.name));
    Ok(chapter(&names, &figures))
}

fn one(candidate: &Candidate, records: u32, batches: u32) -> Result<Figures, BoxError> {
    let function = World::default().start(candidate)?;
    for run in 0..3 {
        function.invoke(event::orders(10, 900_000 + run))?;
    }
    let before = function.process.cpu();
    let (mut times, mut event_bytes) = (Vec::new(), 0);
    for run in 0..batches {
        let event = event::orders(records, run);
        event_bytes = event.len();
        times.push(function.invoke(event)?);
        if times.iter().sum::<Duration>() > PATIENCE {
            break;
        }
    }
    let done = records * u32::try_from(times.len())?;
    let cpu = function.process.cpu().since(before).total / done;
    let peak_kib = function.process.peak_kib();
    Ok(Figures { name: candidate.name, records, event_bytes, time: median(times), cpu, peak_kib })
}

fn chapter(names: &[&'static str], figures: &[Figures]) -> Chapter {
    let row = |one: &Figures| {
        vec![
            one.name.to_owned(),
            one.records.to_string(),
            format!("{:.1} KB", as_f64(u64::try_from(one.event_bytes).unwrap_or(0)) / 1e3),
            ms(one.time),
            us(one.time / one.records),
            us(one.cpu),
            mb(one.peak_kib),
        ]
    };
    let curve = |value: fn(&Figures) -> f64| {
        let of = |name: &&'static str| {
            let points = figures.iter().filter(|one| one.name == *name);
            (*name, points.map(|one| (f64::from(one.records), value(one))).collect::<Vec<_>>())
        };
        names.iter().map(of).collect::<Vec<_>>()
    };
    let time = Lines {
        title: "A batch of new orders, store and provider instant",
        axes: ("records in the batch", "milliseconds a batch"),
        curves: curve(|one| one.time.as_secs_f64() * 1e3),
    };
    let cpu = Lines {
        title: "CPU time for one record",
        axes: ("records in the batch", "microseconds a record"),
        curves: curve(|one| one.cpu.as_secs_f64() * 1e6),
    };
    Chapter {
        title: "Warm batches, and growth",
        how: "New orders, one-shot, store and provider without latency, `CONCURRENCY=10`; medians. CPU is that of the \
              function's process, of all its threads. The peers work through a batch one record after the other, which \
              is their default."
            .to_owned(),
        table: Table {
            head: vec!["function", "records", "event", "a batch", "a record", "CPU a record", "peak memory"],
            rows: figures.iter().map(row).collect(),
        },
        plots: vec![
            ("performance-growth.svg", "Curves of the time of a batch over its records", time.svg()),
            ("performance-cpu.svg", "Curves of the CPU time of a record over the records of its batch", cpu.svg()),
        ],
        reading: reading(figures),
        headlines: headlines(figures),
    }
}

fn headlines(figures: &[Figures]) -> Vec<(&'static str, String)> {
    let tens = || figures.iter().filter(|one| one.records == 10);
    vec![
        ("warm batch of 10 orders", side_by_side(tens().map(|one| (one.name, ms(one.time))))),
        ("CPU time an order", side_by_side(tens().map(|one| (one.name, us(one.cpu))))),
    ]
}

fn reading(figures: &[Figures]) -> String {
    let ours = |records: u32| figures.iter().find(|one| one.name == "charge-once" && one.records == records);
    let (Some(few), Some(many)) = (ours(100), ours(10_000)) else { return String::new() };
    let (few_time, many_time) = (few.time / few.records, many.time / many.records);
    let event_kib = u64::try_from(many.event_bytes / 1024).unwrap_or(1);
    let mut text = format!(
        "From 100 to 10,000 records the time of one changes by a factor of {:.2}: it grows in a straight line. Peak memory \
         with 10,000 records is {:.1} times the event.",
        many_time.as_secs_f64() / few_time.as_secs_f64(),
        as_f64(many.peak_kib) / as_f64(event_kib),
    );
    for one in figures.iter().filter(|one| one.records == 10 && one.name != "charge-once") {
        if let Some(ours) = ours(10) {
            text.push_str(&format!(
                " In batches of 10, {} takes {:.0} times the CPU for a record.",
                one.name,
                one.cpu.as_secs_f64() / ours.cpu.as_secs_f64()
            ));
        }
    }
    text
}
