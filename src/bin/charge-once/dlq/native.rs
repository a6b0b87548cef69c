//! SQS's own move task: the whole queue, at a rate, with progress; and its cancelling.

use std::{io::Write, time::Duration};

use charge_once::{
    clients::Clients,
    queue::{
        QueueError,
        sqs::{MoveTask, SqsQueue},
    },
};
use serde_json::json;

use super::{DlqArg, progress};
use crate::{
    CommandResult, Finding,
    screen::{Screen, plural},
};

const EXAMPLE: &str = "\
Example:
  charge-once dlq cancel --dlq-url DLQ_URL --confirm";

/// How often the task is asked how far it is.
const POLL: Duration = Duration::from_millis(500);

/// Stop a move task that `redrive --native` or somebody else started; what was moved stays moved
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    dlq: DlqArg,
    /// Do it; without this, only show the task
    #[arg(long)]
    confirm: bool,
}

/// A move that was asked for.
pub(super) struct Task<'a> {
    pub(super) dlq_url: &'a str,
    pub(super) to: Option<&'a str>,
    pub(super) rate: Option<u32>,
    pub(super) confirm: bool,
}

pub(super) async fn run(
    task: &Task<'_>,
    clients: &Clients,
    json: bool,
    screen: &mut Screen,
) -> CommandResult {
    let queue = clients.queue();
    let source = queue.facts(task.dlq_url).await?;
    if !task.confirm && json {
        writeln!(screen, "{:#}", json!({ "dry_run": true, "to_move": source.visible, "rate": task.rate }))?;
        return Ok(Finding::Clean);
    }
    if !task.confirm {
        let rate =
            task.rate.map_or_else(|| "as fast as SQS likes".to_owned(), |rate| format!("{rate} a second"));
        writeln!(
            screen,
            "{} would be moved, {rate}. Nothing was changed; add --confirm",
            plural(source.visible, "message")
        )?;
        return Ok(Finding::Clean);
    }
    // Without a destination SQS refuses messages that the function itself sent to the DLQ.
    let destination = match task.to {
        Some(url) => Some(queue.facts(url).await?.arn),
        None => None,
    };
    queue.start_move(&source.arn, destination.as_deref(), task.rate).await?;
    let ended = watch(&queue, &source.arn, source.visible).await?;
    report(ended.as_ref(), json, screen)
}

/// Follows the task to its end. Ctrl-C ends the watching, not the task.
async fn watch(queue: &SqsQueue, source_arn: &str, total: u64) -> Result<Option<MoveTask>, QueueError> {
    let bar = progress::bar(total);
    bar.set_message("moved; Ctrl-C leaves the task running, `dlq cancel` stops it;");
    let mut ticks = tokio::time::interval(POLL);
    loop {
        ticks.tick().await;
        let Some(task) = queue.latest_move(source_arn).await? else { return Ok(None) };
        bar.set_position(task.moved);
        if !task.is_running() {
            bar.finish_and_clear();
            return Ok(Some(task));
        }
    }
}

fn report(task: Option<&MoveTask>, json: bool, screen: &mut Screen) -> CommandResult {
    let Some(task) = task else {
        writeln!(screen, "{}", if json { "null" } else { "there is no move task" })?;
        return Ok(Finding::Clean);
    };
    if json {
        let document = json!({
            "status": task.status,
            "moved": task.moved,
            "to_move": task.to_move,
            "failure": task.failure,
        });
        writeln!(screen, "{document:#}")?;
    } else {
        let moved = match task.to_move {
            Some(total) => format!("{} of {}", task.moved, plural(total, "message")),
            None => plural(task.moved, "message"),
        };
        writeln!(screen, "{}: {moved} moved", task.status)?;
        if let Some(failure) = &task.failure {
            writeln!(screen, "{failure}: name the queue with --to QUEUE_URL")?;
        }
    }
    Ok(if task.failure.is_some() { Finding::Wrong } else { Finding::Clean })
}

pub(super) async fn cancel(
    args: &CancelArgs,
    clients: &Clients,
    json: bool,
    screen: &mut Screen,
) -> CommandResult {
    let queue = clients.queue();
    let source = queue.facts(&args.dlq.dlq_url).await?;
    let task = queue.latest_move(&source.arn).await?;
    let running = task.as_ref().filter(|task| task.is_running());
    if let Some(handle) = running.and_then(|task| task.handle.as_deref()).filter(|_| args.confirm) {
        queue.cancel_move(&source.arn, handle).await?;
        return report(queue.latest_move(&source.arn).await?.as_ref(), json, screen);
    }
    match (running, &task) {
        _ if json => {}
        (Some(_), _) => writeln!(screen, "A task runs. Nothing was changed; add --confirm")?,
        (None, Some(_)) => writeln!(screen, "No task runs; the last one:")?,
        (None, None) => {}
    }
    report(task.as_ref(), json, screen)
}
