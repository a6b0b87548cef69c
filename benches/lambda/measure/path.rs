//! How near a batch comes to its critical path, where store and provider take their time.

use std::time::Duration;

use super::Chapter;
use crate::{
    BoxError,
    candidate::{Candidate, charge_once},
    event,
    report::{
        bars::{Bar, Bars},
        median, ms, ratio,
        table::Table,
    },
    standin::{Contract, Latency, World},
};

/// Store and provider, in milliseconds a call.
const LATENCIES: [(u64, u64); 3] = [(5, 50), (20, 100), (20, 300)];
/// Records, concurrency, batches.
const SIZES: [(u32, u32, u32); 4] = [(1, 10, 9), (10, 10, 9), (100, 10, 3), (1_000, 100, 3)];
/// The same with one latency only: these take half a minute.
const MANY: [(u32, u32, u32); 1] = [(10_000, 100, 1)];
const MANY_LATENCY: (u64, u64) = (20, 100);

struct Figures {
    name: &'static str,
    contract: Contract,
    latency: (u64, u64),
    records: u32,
    concurrency: u32,
    time: Duration,
    ideal: Duration,
}

pub(crate) fn measure(candidates: &[Candidate]) -> Result<Chapter, BoxError> {
    let ours = charge_once();
    let mut figures = Vec::new();
    for contract in [Contract::OneShot, Contract::TwoPhase] {
        for (sizes, latencies) in [(&SIZES[..], &LATENCIES[..]), (&MANY[..], &[MANY_LATENCY][..])] {
            for size in sizes {
                for latency in latencies {
                    figures.push(one(&ours, contract, *latency, *size)?);
                }
            }
        }
    }
    for peer in candidates.iter().filter(|candidate| candidate.works && candidate.name != ours.name) {
        figures.push(one(peer, Contract::OneShot, MANY_LATENCY, (10, 1, 3))?);
    }
    Ok(chapter(&figures))
}

/// What no implementation can beat: the calls of one record that must follow each other.
pub(crate) fn critical_path(contract: Contract, latency: Latency) -> Duration {
    match contract {
        Contract::OneShot => latency.store * 2 + latency.provider,
        Contract::TwoPhase => latency.store * 3 + latency.provider * 2,
    }
}

fn one(
    candidate: &Candidate,
    contract: Contract,
    (store, provider): (u64, u64),
    (records, concurrency, batches): (u32, u32, u32),
) -> Result<Figures, BoxError> {
    let latency = Latency::millis(store, provider);
    let function = World { contract, latency, concurrency }.start(candidate)?;
    let named =
        |error: BoxError| format!("{records} orders, {}, {store}/{provider} ms: {error}", contract.name());
    // Opens the connections.
    function.invoke(event::orders(concurrency, 900_000))?;
    let mut times = Vec::new();
    for run in 0..batches {
        times.push(function.invoke(event::orders(records, run)).map_err(named)?);
    }
    let ideal = critical_path(contract, latency) * records.div_ceil(concurrency);
    Ok(Figures {
        name: candidate.name,
        contract,
        latency: (store, provider),
        records,
        concurrency,
        time: median(times),
        ideal,
    })
}

fn chapter(figures: &[Figures]) -> Chapter {
    let row = |one: &Figures| {
        vec![
            format!("{}, {}", one.name, one.contract.name()),
            format!("{} / {} ms", one.latency.0, one.latency.1),
            one.records.to_string(),
            one.concurrency.to_string(),
            ms(one.time),
            ms(one.ideal),
            ratio(one.time.as_secs_f64(), one.ideal.as_secs_f64()),
        ]
    };
    let bar = |one: &Figures| Bar {
        label: format!("{}, {}/{} ms, {}", one.contract.name(), one.latency.0, one.latency.1, one.records),
        parts: vec![one.time.as_secs_f64() / one.ideal.as_secs_f64()],
        mark: Some(1.0),
        text: ratio(one.time.as_secs_f64(), one.ideal.as_secs_f64()),
    };
    let plot = Bars {
        title: "Time of a batch over its critical path (the mark)",
        axis: "ratio; each bar: kind, store/provider latency, records",
        series: &[],
        bars: figures.iter().filter(|one| one.name == "charge-once").map(bar).collect(),
    };
    Chapter {
        title: "Distance to the critical path",
        how: "Every call to the store and to the provider takes the given time. The ideal is what the calls of one record \
              take in a row (2 to the store and 1 to the provider one-shot, 3 and 2 two-phase), times the records over \
              `CONCURRENCY`; it counts neither CPU nor network. Connections are warm."
            .to_owned(),
        table: Table {
            head: vec!["function, kind", "store / provider", "records", "at once", "time", "ideal", "ratio"],
            rows: figures.iter().map(row).collect(),
        },
        plots: vec![("performance-path.svg", "Bars of the ratio to the critical path", plot.svg())],
        reading: "What is left above the ideal is CPU: all records of a wave reach the same step at the same moment, and \
                  one thread (a Lambda function below 1.8 GB has less than one core) makes their requests one after the \
                  other, while the stand-ins share the machine. So it is about the CPU of the records that run at once, \
                  as in \"Where the CPU goes\", once a wave, whatever the latencies are."
            .to_owned(),
        headlines: headlines(figures),
    }
}

fn headlines(figures: &[Figures]) -> Vec<(&'static str, String)> {
    let ratio_of = |records: u32| {
        let one = figures.iter().find(|one| one.records == records && one.latency == MANY_LATENCY)?;
        Some(ratio(one.time.as_secs_f64(), one.ideal.as_secs_f64()))
    };
    let (ten, many) = (ratio_of(10).unwrap_or_default(), ratio_of(10_000).unwrap_or_default());
    vec![(
        "time over the critical path, with 20 ms a call to the store and 100 ms to the provider",
        format!("{ten} for 10 orders, {many} for 10,000 at `CONCURRENCY=100`"),
    )]
}
