//! `charge-once local --queue N`: generated orders through a queue, retries, kills and all, and what became of them.

mod table;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use charge_once::{
    generate::Recipe,
    local::{
        mapping::Counts,
        rehearsal::{Consumer, Rehearsal, Rehearsed},
        stack::Stack,
    },
};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::{
    CommandResult, Finding,
    queue::percent,
    screen::{Screen, note},
};

/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(200);

/// What `--queue` needs to know.
#[derive(Debug, clap::Args)]
pub(super) struct RehearsalArgs {
    /// Send N generated orders through an in-memory SQS queue and its event source mapping, until it is empty
    #[arg(long, value_name = "N", conflicts_with_all = ["events", "twice", "data"], value_parser = orders)]
    queue: Option<u32>,
    /// The queue is FIFO, one message group for about ten orders
    #[arg(long, requires = "queue")]
    fifo: bool,
    /// Let `charge-once worker` work on the queue instead of the Lambda function
    #[arg(long, requires = "queue")]
    worker: bool,
    /// Kill the function's process (SIGKILL) again and again after this time, such as 2s or 500ms
    #[arg(long, requires = "queue", value_name = "TIME", value_parser = time)]
    kill_every: Option<Duration>,
    /// How many of a hundred messages repeat an earlier order, such as 5%
    #[arg(long, requires = "queue", value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    duplicates: u8,
    /// How many of a hundred messages hold no usable order, such as 1%
    #[arg(long, requires = "queue", value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    poison: u8,
    /// The same seed makes the same orders
    #[arg(long, requires = "queue", default_value_t = 1)]
    seed: u64,
    /// How many batches run at once; with --worker, how many receives
    #[arg(long, requires = "queue", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    batches: u16,
}

impl RehearsalArgs {
    /// `None` without `--queue`.
    pub(super) fn rehearsal(&self) -> Option<Rehearsal> {
        let recipe = Recipe {
            count: self.queue?,
            fifo: self.fifo,
            duplicates_percent: self.duplicates,
            poison_percent: self.poison,
            seed: self.seed,
        };
        Some(Rehearsal { recipe, kill_every: self.kill_every, concurrency: self.batches })
    }

    /// Who works on the queue.
    ///
    /// # Errors
    /// The system does not say where this binary lies.
    pub(super) fn consumer(&self) -> io::Result<Consumer> {
        Ok(if self.worker { Consumer::Worker(std::env::current_exe()?) } else { Consumer::Function })
    }
}

pub(super) async fn rehearse(
    stack: &Stack,
    rehearsal: &Rehearsal,
    consumer: &Consumer,
    json: bool,
    screen: &mut Screen,
) -> CommandResult {
    let counts = Counts::default();
    let rehearsed = tokio::select! {
        rehearsed = rehearsal.run(stack, consumer, &counts) => rehearsed?,
        never = show_progress(stack, rehearsal, &counts) => match never {},
    };
    if json {
        writeln!(screen, "{:#}", table::to_json(&rehearsed))?;
    } else {
        writeln!(screen, "{}", table::Rows(&rehearsed))?;
    }
    Ok(finding(&rehearsed))
}

fn finding(rehearsed: &Rehearsed) -> Finding {
    if rehearsed.audit.is_sound() { Finding::Clean } else { Finding::Wrong }
}

/// How often a line says the same where nothing can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Draws how far the queue is; where standard error is no terminal a line says so now and then.
async fn show_progress(stack: &Stack, rehearsal: &Rehearsal, counts: &Counts) -> std::convert::Infallible {
    let draws = io::stderr().is_terminal();
    if !draws {
        note(&format!("{} orders go through the queue; what became of them follows", rehearsal.recipe.count));
    }
    let style = ProgressStyle::with_template("{elapsed} {wide_bar} {pos}/{len} settled, {msg}");
    let bar = ProgressBar::new(rehearsal.recipe.count.into());
    let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let bar = Erased(bar);
    let mut tick = tokio::time::interval(TICK);
    let (begun, mut lines) = (Instant::now(), 1);
    loop {
        tick.tick().await;
        let left = stack.queues().depth(rehearsal.queue()).map_or(0, |depth| depth.total());
        let left = u64::try_from(left).unwrap_or(u64::MAX);
        bar.0.set_position(u64::from(rehearsal.recipe.count).saturating_sub(left));
        bar.0.set_message(format!("{} deliveries, {} crashed batches", counts.deliveries(), counts.failed()));
        if !draws && begun.elapsed() >= LINE_EVERY.saturating_mul(lines) {
            lines = lines.saturating_add(1);
            let (settled, all) = (bar.0.position(), rehearsal.recipe.count);
            note(&format!("{settled} of {all} settled after {} s", begun.elapsed().as_secs()));
        }
    }
}

/// A progress bar that leaves nothing on the screen.
struct Erased(ProgressBar);

impl Drop for Erased {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A file may have been meant, which goes without `--queue`.
fn orders(text: &str) -> Result<u32, &'static str> {
    let count = text.parse().ok().filter(|count| (1..=1_000_000).contains(count));
    count.ok_or("write how many orders to generate, 1 to 1000000; an event's file goes without --queue")
}

fn time(text: &str) -> Result<Duration, &'static str> {
    let parse = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
    let time = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => parse(digits).map(Duration::from_millis),
        (None, Some(digits)) => parse(digits).map(Duration::from_secs),
        (None, None) => None,
    };
    time.ok_or("write a time such as 2s or 500ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_not_a_file() {
        assert_eq!((orders("1"), orders("1000000")), (Ok(1), Ok(1_000_000)));
        assert!(["0", "1000001", "-1", "2k"].iter().all(|text| orders(text).is_err()));
        assert!(orders("order.json").unwrap_err().contains("file"));
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert!(["", "2", "0s", "s", "1m", "ms"].iter().all(|text| time(text).is_err()));
    }
}
