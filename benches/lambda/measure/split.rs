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
    standin::{Contract, World},
};

const BATCHES: u32 = 100;
const RECORDS: u32 = 10;

pub(crate) fn measure() -> Result<Chapter, BoxError> {
    let parts = [
        Part {
            name: "poison: read, decided, logged",
            cpu: cpu(Contract::OneShot, |_run| event::poison(RECORDS))?,
        },
        Part {
            name: "duplicate: and one refused write",
            cpu: cpu(Contract::OneShot, |_run| event::orders(RECORDS, 900_000))?,
        },
        Part {
            name: "one-shot: and two writes, one charge",
            cpu: cpu(Contract::OneShot, |run| event::orders(RECORDS, run))?,
        },
        Part {
            name: "two-phase: and three writes, two calls",
            cpu: cpu(Contract::TwoPhase, |run| event::orders(RECORDS, run))?,
        },
    ];
    Ok(chapter(&parts))
}

struct Part {
    name: &'static str,
    cpu: Cpu,
}

/// CPU of one record.
fn cpu(contract: Contract, event: impl Fn(u32) -> Vec<u8>) -> Result<Cpu, BoxError> {
    let function = World { contract, ..World::default() }.start(&charge_once())?;
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

fn chapter(parts: &[Part]) -> Chapter {
    let row = |part: &Part| {
        let user = part.cpu.total.saturating_sub(part.cpu.kernel);
        vec![part.name.to_owned(), us(part.cpu.total), us(user), us(part.cpu.kernel)]
    };
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let bar = |part: &Part| Bar {
        label: part.name.to_owned(),
        parts: vec![micros(part.cpu.total.saturating_sub(part.cpu.kernel)), micros(part.cpu.kernel)],
        mark: None,
        text: us(part.cpu.total),
    };
    let plot = Bars {
        title: "CPU of one record, by how far it gets",
        axis: "microseconds a record",
        series: &["in the program", "in the kernel: the network"],
        bars: parts.iter().map(bar).collect(),
    };
    Chapter {
        title: "Where the CPU goes",
        how: format!(
            "{BATCHES} batches of {RECORDS}, without latency and without TLS, each record with its share of the invocation. \
             Each row goes on where the one before ends. The kernel's part is counted in steps of 10 ms over the whole run."
        ),
        table: Table {
            head: vec!["record", "CPU", "in the program", "in the kernel"],
            rows: parts.iter().map(row).collect(),
        },
        plots: vec![("performance-split.svg", "Bars of the CPU time of a record by how far it gets", plot.svg())],
        reading: "Nearly all of it is the calls: what the AWS SDK, HTTP and the kernel take for each. Reading, deciding and \
                  logging are what poison takes."
            .to_owned(),
        headlines: Vec::new(),
    }
}
