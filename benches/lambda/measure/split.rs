//! Where the CPU of a record goes, from records that end at different points of the way.

use std::time::Duration;

use super::Chapter;
use crate::{
    BoxError,
    candidate::charge_once,
    event,
    process::Cpu,
    report::{
        bars::{Bar, Bars},
        table::Table,
        us,
    },
    standin::World,
};

const BATCHES: u32 = 100;
const RECORDS: u32 = 10;

pub(crate) fn measure() -> Result<Chapter, BoxError> {
    let poison = cpu(|_run| event::poison(RECORDS))?;
    let duplicate = cpu(|_run| event::orders(RECORDS, 900_000))?;
    let new = cpu(|run| event::orders(RECORDS, run))?;
    let call = duplicate.since(poison);
    let own = Part { name: "reading, deciding, logging, its share of the invocation", cpu: poison };
    let ledger = Part { name: "two ledger calls (AWS SDK: sign, send, read)", cpu: twice(call) };
    let provider = Part {
        name: "one charge (HTTP: send, read), and deciding on it",
        cpu: new.since(poison).since(twice(call)),
    };
    Ok(chapter(&[own, ledger, provider], new))
}

struct Part {
    name: &'static str,
    cpu: Cpu,
}

fn twice(cpu: Cpu) -> Cpu {
    Cpu { total: cpu.total * 2, kernel: cpu.kernel * 2 }
}

/// CPU of one record.
fn cpu(event: impl Fn(u32) -> Vec<u8>) -> Result<Cpu, BoxError> {
    let function = World::default().start(&charge_once())?;
    function.invoke(event::orders(RECORDS, 900_000))?;
    let before = function.process.cpu();
    for run in 0..BATCHES {
        // Poison is listed in the answer, as it should be.
        function.runtime.ask(event(run))?;
    }
    let Cpu { total, kernel } = function.process.cpu().since(before);
    let done = BATCHES * RECORDS;
    Ok(Cpu { total: total / done, kernel: kernel / done })
}

fn chapter(parts: &[Part], whole: Cpu) -> Chapter {
    let all = Part { name: "a new order", cpu: whole };
    let row = |part: &Part| vec![part.name.to_owned(), us(part.cpu.total), us(part.cpu.kernel)];
    let millis = |time: Duration| time.as_secs_f64() * 1e6;
    let bar = |part: &Part| Bar {
        label: part.name.split(['(', ',']).next().unwrap_or_default().trim().to_owned(),
        parts: vec![millis(part.cpu.total.saturating_sub(part.cpu.kernel)), millis(part.cpu.kernel)],
        mark: None,
        text: us(part.cpu.total),
    };
    let shown: Vec<&Part> = parts.iter().chain([&all]).collect();
    let plot = Bars {
        title: "Where the CPU of one new order goes",
        axis: "microseconds a record",
        series: &["in the program", "in the kernel: the network"],
        bars: shown.iter().map(|part| bar(part)).collect(),
    };
    Chapter {
        title: "Where the CPU goes",
        how: format!(
            "{BATCHES} batches of {RECORDS}, one-shot, without latency and without TLS. Poison ends after reading, a \
             duplicate after one refused write, a new order after two writes and a charge; the parts are the differences. \
             The kernel's part is counted in steps of 10 ms over the whole run."
        ),
        table: Table {
            head: vec!["part of a record", "CPU", "of it in the kernel"],
            rows: shown.iter().map(|part| row(part)).collect(),
        },
        plots: vec![("performance-split.svg", "Bars of the CPU time of the parts of a record", plot.svg())],
        reading: String::new(),
        headlines: Vec::new(),
    }
}
