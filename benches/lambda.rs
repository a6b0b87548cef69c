//! How fast it is: cold start, memory, and how near a batch comes to its critical path.
//!
//! `make bench` runs it and writes `docs/performance.md`. All figures of one run come from one machine and stand
//! beside what they are compared to.
#![expect(
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    reason = "a program for people, on small numbers"
)]

use std::{path::Path, time::Duration};

use charge_once::local::environment::Provider;

use self::support::{
    BoxError,
    function::{Latency, World, batch},
    report::{Table, median, ms, ratio},
};

mod support;

const STARTS: u64 = 15;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // `cargo test --benches` runs benches too, with this argument missing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let candidates = candidates()?;
    let tables = [
        start_table(&candidates).await?,
        warm_table(&candidates).await?,
        critical_path_table().await?,
        growth_table().await?,
    ];
    let mut text = introduction()?;
    for table in &tables {
        text.push('\n');
        text.push_str(&table.markdown());
    }
    println!("{text}");
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md"), text)?;
    Ok(())
}

/// A function that is measured.
struct Candidate {
    name: &'static str,
    command: Vec<String>,
    /// Whether it does the work, or only answers.
    works: bool,
}

/// The deployed binary: the one of the release build, whatever this harness was built with.
fn bootstrap() -> String {
    let target = Path::new(env!("CARGO_BIN_EXE_bootstrap")).parent().and_then(Path::parent);
    let release = target.map(|target| target.join("release").join("bootstrap"));
    release.map_or_else(String::new, |path| path.to_string_lossy().into_owned())
}

fn candidates() -> Result<Vec<Candidate>, BoxError> {
    let bootstrap = bootstrap();
    let empty = Path::new(&bootstrap).with_file_name("examples").join("empty_function");
    let mut candidates = vec![Candidate { name: "charge-once", command: vec![bootstrap], works: true }];
    if empty.exists() {
        let command = vec![empty.to_string_lossy().into_owned()];
        candidates.push(Candidate { name: "an empty function (lambda_runtime)", command, works: false });
    }
    if let Ok(python) =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bench-python"))
    {
        let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/powertools");
        let start = format!(
            "import sys; sys.path.insert(0, {:?}); sys.argv = ['awslambdaric', 'handler.handler']; import runpy; runpy.run_module('awslambdaric', run_name='__main__')",
            handler.to_string_lossy()
        );
        let command = vec![python.trim().to_owned(), "-c".to_owned(), start];
        candidates.push(Candidate { name: "Powertools for Python, the same work", command, works: true });
    }
    Ok(candidates)
}

fn introduction() -> Result<String, BoxError> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism()?;
    Ok(format!(
        "# Performance\n\nFor those who decide by figures. Written by `make bench`; every table is one run on one machine \
         ({}, {cores} cores), so compare inside a table. The ledger is an embedded DynamoDB and the provider a \
         simulated one, both over HTTP on loopback and in another process than the function.\n",
        model.unwrap_or("unknown processor"),
    ))
}

async fn start_table(candidates: &[Candidate]) -> Result<Table, BoxError> {
    let mut rows = Vec::new();
    for candidate in candidates {
        let (mut starts, mut firsts, mut peak) = (Vec::new(), Vec::new(), 0);
        for run in 0..STARTS {
            let world = World::start(Provider::Http, Latency::default(), &[]).await?;
            let (process, start) = world.spawn(&candidate.command).await?;
            starts.push(start);
            firsts.push(start + world.invoke(batch(1, run)).await?);
            world.invoke(batch(10, 1000 + run)).await?;
            peak = peak.max(process.peak_kib().unwrap_or(0));
        }
        rows.push(vec![
            candidate.name.to_owned(),
            ms(median(starts)),
            ms(median(firsts)),
            format!("{}.{} MB", peak / 1024, peak % 1024 * 10 / 1024),
        ]);
    }
    Ok(Table {
        title: "Cold start",
        note: format!(
            "From exec to the first request for an event, and to the first answer (one order); medians of {STARTS} starts. Peak resident memory after a batch of 10."
        ),
        head: vec!["function", "to the first `/next`", "to the first answer", "peak memory"],
        rows,
    })
}

async fn warm_table(candidates: &[Candidate]) -> Result<Table, BoxError> {
    let mut rows = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.works) {
        let world = World::start(Provider::Http, Latency::default(), &[]).await?;
        let (process, _) = world.spawn(&candidate.command).await?;
        world.invoke(batch(10, 1)).await?;
        let before = process.cpu().unwrap_or_default();
        let mut times = Vec::new();
        let batches = 50;
        for run in 0..batches {
            times.push(world.invoke(batch(10, 100 + run)).await?);
        }
        let cpu = process.cpu().unwrap_or_default().saturating_sub(before);
        let per_record = cpu.checked_div(u32::try_from(batches * 10)?).unwrap_or_default();
        rows.push(vec![
            candidate.name.to_owned(),
            ms(median(times)),
            format!("{} µs", per_record.as_micros()),
        ]);
    }
    Ok(Table {
        title: "Warm batches",
        note: "Batches of 10 new orders, store and provider without added latency: median time of a batch, and CPU time of the function's process for one record (two ledger writes and one charge over HTTP, without TLS).".to_owned(),
        head: vec!["function", "batch of 10", "CPU a record"],
        rows,
    })
}

/// What no implementation can beat: the calls of one record that must follow each other.
fn critical_path(contract: Provider, latency: Latency) -> Duration {
    match contract {
        Provider::Http => latency.store * 2 + latency.provider,
        Provider::Stripe => latency.store * 3 + latency.provider * 2,
    }
}

async fn critical_path_table() -> Result<Table, BoxError> {
    let bootstrap = vec![bootstrap()];
    let millis = Duration::from_millis;
    let mut rows = Vec::new();
    for (contract, store, provider, count, concurrency) in [
        (Provider::Http, 20, 100, 10, 10),
        (Provider::Http, 5, 50, 10, 10),
        (Provider::Http, 20, 300, 10, 10),
        (Provider::Stripe, 20, 100, 10, 10),
        (Provider::Http, 20, 100, 100, 10),
        (Provider::Http, 20, 100, 10_000, 100),
    ] {
        // An unoptimised store cannot keep up with so many.
        if count > 1000 && cfg!(debug_assertions) {
            continue;
        }
        let latency = Latency { store: millis(store), provider: millis(provider) };
        let world = World::start(contract, latency, &[("CONCURRENCY", &concurrency.to_string())]).await?;
        let (_process, _) = world.spawn(&bootstrap).await?;
        world.invoke(batch(concurrency, 1)).await?;
        let runs = if count > 1000 { 1 } else { 7 };
        let mut times = Vec::new();
        for run in 0..runs {
            times.push(world.invoke(batch(count, 100 + run)).await?);
        }
        let (time, ideal) = (median(times), critical_path(contract, latency) * count.div_ceil(concurrency));
        let kind = if contract == Provider::Http { "one-shot" } else { "two-phase" };
        rows.push(vec![
            kind.to_owned(),
            format!("{store} / {provider} ms"),
            count.to_string(),
            concurrency.to_string(),
            ms(time),
            ms(ideal),
            ratio(time, ideal),
        ]);
    }
    Ok(Table {
        title: "Distance to the critical path",
        note: "Every call to the ledger and to the provider takes the given time. The ideal is what the calls of one record take in a row (2 ledger calls and 1 charge one-shot, 3 and 2 two-phase), times the batch over the concurrency.".to_owned(),
        head: vec!["kind", "store / provider", "records", "concurrency", "time", "ideal", "ratio"],
        rows,
    })
}

async fn growth_table() -> Result<Table, BoxError> {
    let bootstrap = vec![bootstrap()];
    let mut rows = Vec::new();
    for count in [1, 10, 100, 1000, 10_000] {
        if count > 1000 && cfg!(debug_assertions) {
            continue;
        }
        let world = World::start(Provider::Http, Latency::default(), &[("CONCURRENCY", "10")]).await?;
        let (process, _) = world.spawn(&bootstrap).await?;
        world.invoke(batch(10, 1)).await?;
        let event = batch(count, 7);
        let (size, before) = (event.len(), process.cpu().unwrap_or_default());
        let time = world.invoke(event).await?;
        let cpu = process.cpu().unwrap_or_default().saturating_sub(before);
        let per_record = time.checked_div(count).unwrap_or_default();
        let cpu = if count >= 1000 {
            format!("{} µs", cpu.checked_div(count).unwrap_or_default().as_micros())
        } else {
            "-".to_owned()
        };
        rows.push(vec![
            count.to_string(),
            format!("{} KB", size / 1000),
            ms(time),
            format!("{} µs", per_record.as_micros()),
            cpu,
            format!("{} MB", process.peak_kib().unwrap_or(0) / 1024),
        ]);
    }
    Ok(Table {
        title: "Growth with the batch",
        note:
            "One batch of new orders at `CONCURRENCY=10`, without added latency. CPU is the function's own."
                .to_owned(),
        head: vec!["records", "event", "time", "time a record", "CPU a record", "peak memory"],
        rows,
    })
}
