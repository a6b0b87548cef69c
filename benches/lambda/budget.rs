//! The budget of instructions that `make check` holds the development build to.
//!
//! Counted without optimisation: it needs no link-time optimisation, and what adds work adds it there, too.

use std::path::PathBuf;

use crate::{
    BoxError,
    candidate::{Candidate, built, root},
    measure::instructions::{self, Counts},
};

/// Batches by which the two counted runs differ; few, because valgrind is slow.
const BATCHES: u32 = 2;
const HOW_TO_ACCEPT: &str = "if that is wanted, type: make budget";

fn file() -> PathBuf {
    root().join("benches/instructions.txt")
}

fn count() -> Result<Counts, BoxError> {
    let bootstrap = built("debug", "bootstrap").to_string_lossy().into_owned();
    let candidate = Candidate { name: "the development build", command: vec![bootstrap], works: true };
    instructions::counts(&candidate, BATCHES)
}

/// Fails if anything takes over a tenth more instructions than its budget.
pub(crate) fn check() -> Result<(), BoxError> {
    if !instructions::available() {
        println!("valgrind is not installed: instructions not counted (see CONTRIBUTING.md)");
        return Ok(());
    }
    let Counts { start, record } = count()?;
    let text = std::fs::read_to_string(file())?;
    let mut over = Vec::new();
    for (name, counted) in [("start", start), ("record", record)] {
        let budget = budget(&text, name).ok_or_else(|| format!("{name} has no budget"))?;
        let percent = (i128::from(counted) - i128::from(budget)) * 100 / i128::from(budget.max(1));
        println!("{name}: {counted} instructions, {percent:+} % of {budget}");
        if counted > budget + budget / 10 {
            over.push(name);
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("more instructions than benches/instructions.txt allows: {over:?}; {HOW_TO_ACCEPT}")
                .into())
        }
    }
}

fn budget(text: &str, name: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(name)?.trim().strip_prefix('=')?.trim().parse().ok();
    text.lines().find_map(value)
}

/// Takes what is counted now as the budget.
pub(crate) fn accept() -> Result<(), BoxError> {
    let Counts { start, record } = count()?;
    let text = format!(
        "# Instructions of the development build, counted by callgrind (`make budget` writes them, `make check` fails\n\
         # above +10 %): from exec to the first request for an event, and for one new order in a batch of 10.\n\
         start = {start}\nrecord = {record}\n"
    );
    print!("{text}");
    std::fs::write(file(), text)?;
    Ok(())
}
