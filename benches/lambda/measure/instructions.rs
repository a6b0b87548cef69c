//! Instructions, counted by callgrind: figures that do not depend on the mood of the machine.

use std::path::PathBuf;

use super::Chapter;
use crate::{
    BoxError,
    candidate::{Candidate, charge_once},
    event,
    report::{table::Table, thousands},
    standin::{Contract, World},
};

const RECORDS: u32 = 10;
/// How often a count that fails is tried.
const TRIES: u32 = 4;

/// What a budget bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// From exec to the first request for an event.
    pub(crate) start: u64,
    /// A new order in a batch of 10, one-shot.
    pub(crate) record: u64,
}

/// Whether valgrind is there.
pub(crate) fn available() -> bool {
    std::process::Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Counts what the budget bounds.
pub(crate) fn counts(candidate: &Candidate, batches: u32) -> Result<Counts, BoxError> {
    let start = run(candidate, Contract::OneShot, None, |run| event::orders(RECORDS, run))?;
    let record = record(candidate, Contract::OneShot, batches, |run| event::orders(RECORDS, run))?;
    Ok(Counts { start, record })
}

/// Instructions of one record: the difference of two runs that differ by `batches`.
fn record(
    candidate: &Candidate,
    contract: Contract,
    batches: u32,
    event: impl Fn(u32) -> Vec<u8>,
) -> Result<u64, BoxError> {
    let few = run(candidate, contract, Some(0), &event)?;
    let many = run(candidate, contract, Some(batches), &event)?;
    Ok(many.saturating_sub(few) / u64::from(batches * RECORDS))
}

/// On a busy machine a call under valgrind may run into its timeout; then it is counted again.
fn run(
    candidate: &Candidate,
    contract: Contract,
    batches: Option<u32>,
    event: impl Fn(u32) -> Vec<u8>,
) -> Result<u64, BoxError> {
    let mut counted = run_once(candidate, contract, batches, &event);
    for _again in 1..TRIES {
        if counted.is_ok() {
            break;
        }
        counted = run_once(candidate, contract, batches, &event);
    }
    counted
}

/// Instructions of a whole life: with one batch of new orders and `batches` more, or without any.
fn run_once(
    candidate: &Candidate,
    contract: Contract,
    batches: Option<u32>,
    event: impl Fn(u32) -> Vec<u8>,
) -> Result<u64, BoxError> {
    let out: PathBuf = std::env::temp_dir().join(format!("charge-once-callgrind-{}", std::process::id()));
    let mut command: Vec<String> =
        ["/usr/bin/env", "valgrind", "--tool=callgrind", "--quiet"].map(str::to_owned).into();
    command.push(format!("--callgrind-out-file={}", out.display()));
    command.extend(candidate.command.iter().cloned());
    let counted = Candidate { command, ..candidate.clone() };
    // One record after the other: valgrind is slow enough for ten at once to run into timeouts, and the order is always
    // the same.
    let function = World { contract, concurrency: 1, ..World::default() }.start(&counted)?;
    if let Some(batches) = batches {
        // The very first call makes the TLS client, which under valgrind may outlast its timeout; both runs have it.
        function.runtime.ask(event::orders(RECORDS, 900_000))?;
        for run in 0..batches {
            function.runtime.ask(event(run))?;
        }
    }
    function.process.terminate();
    let counted =
        std::fs::read_to_string(&out).map_err(|error| format!("callgrind left no result: {error}"))?;
    std::fs::remove_file(&out)?;
    let total =
        counted.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    Ok(total.ok_or("callgrind counted nothing")?.trim().parse()?)
}

pub(crate) fn measure() -> Result<Chapter, BoxError> {
    const BATCHES: u32 = 10;
    let ours = charge_once();
    let Counts { start, record: new } = counts(&ours, BATCHES)?;
    let poison = record(&ours, Contract::OneShot, BATCHES, |_run| event::poison(RECORDS))?;
    let duplicate = record(&ours, Contract::OneShot, BATCHES, |_run| event::orders(RECORDS, 900_000))?;
    let two_phase = record(&ours, Contract::TwoPhase, BATCHES, |run| event::orders(RECORDS, run))?;
    let rows = [
        ("to the first `/next`", start),
        ("a poison record: read, decided, logged, its visibility changed", poison),
        ("a duplicate: one refused write", duplicate),
        ("a new order, one-shot: two writes, one charge", new),
        ("a new order, two-phase: three writes, two calls to the provider", two_phase),
    ];
    Ok(Chapter {
        title: "Instructions",
        how: format!(
            "Of the release build, counted by callgrind in user space; records in batches of {RECORDS}, one after the other, \
             each with its share of the invocation. `make check` counts the same of the development build and fails above `benches/instructions.txt` \
             by more than a tenth."
        ),
        table: Table {
            head: vec!["what", "instructions"],
            rows: rows.map(|(what, count)| vec![what.to_owned(), thousands(count)]).into(),
        },
        plots: Vec::new(),
        reading: String::new(),
        headlines: Vec::new(),
    })
}
