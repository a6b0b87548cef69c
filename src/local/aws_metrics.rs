//! What AWS counts beside the function: the queue and its event source mapping, once a second.
//!
//! The lines stand in the function's log and have the form of its own metrics, so that whatever reads those reads
//! these too.

use std::{convert::Infallible, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    clock::{Clock, Timestamp},
    local::{
        mapping::Counts,
        runtime_api::FUNCTION_NAME,
        stack::{Stack, StackError},
    },
};

/// AWS itself counts by the minute; a rehearsal is over after a few of them.
const PERIOD: Duration = Duration::from_secs(1);
/// AWS gives a mapping a UUID.
const MAPPING_NAME: &str = "orders-mapping";

/// Where to look, and what was told already.
#[derive(Debug)]
pub(super) struct AwsMetrics<'a> {
    pub(super) stack: &'a Stack,
    pub(super) counts: &'a Counts,
    pub(super) queue: &'a str,
    pub(super) dead_letter_queue: &'a str,
    /// Messages sent in all.
    pub(super) sent: u64,
    pub(super) told: Totals,
}

/// How often it happened so far: messages sent, received, deleted and kept, and invocations failed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals([u64; 5]);

impl AwsMetrics<'_> {
    /// Tells of each second, for ever.
    ///
    /// # Errors
    /// A queue is gone, or the log cannot be written.
    pub(super) async fn tell_every_second(&mut self) -> Result<Infallible, StackError> {
        let mut tick = tokio::time::interval(PERIOD);
        loop {
            tick.tick().await;
            self.tell()?;
        }
    }

    /// Tells what happened since the last time.
    ///
    /// # Errors
    /// A queue is gone, or the log cannot be written.
    pub(super) fn tell(&mut self) -> Result<(), StackError> {
        let [sent, received, deleted, kept, failed] = self.news();
        let queues = self.stack.queues();
        let (depth, dead) = (queues.depth(self.queue)?, queues.depth(self.dead_letter_queue)?);
        let lines = [
            (
                "AWS/SQS",
                ("QueueName", self.queue),
                vec![
                    ("NumberOfMessagesSent", sent),
                    ("NumberOfMessagesReceived", received),
                    ("NumberOfMessagesDeleted", deleted),
                    ("ApproximateNumberOfMessagesVisible", of(depth.visible)),
                    ("ApproximateNumberOfMessagesNotVisible", of(depth.in_flight)),
                ],
            ),
            (
                "AWS/SQS",
                ("QueueName", self.dead_letter_queue),
                vec![("ApproximateNumberOfMessagesVisible", of(dead.visible))],
            ),
            (
                "AWS/Lambda",
                ("EventSourceMappingUUID", MAPPING_NAME),
                vec![
                    ("PolledEventCount", received),
                    ("InvokedEventCount", received),
                    ("FailedInvokeEventCount", kept),
                    ("DeletedEventCount", deleted),
                ],
            ),
            ("AWS/Lambda", ("FunctionName", FUNCTION_NAME), vec![("Errors", failed)]),
        ];
        // The function's lines have the machine's time as well, whatever clock the stand-ins go by.
        let now = Clock::system().now();
        lines.iter().try_for_each(|(namespace, dimension, metrics)| {
            self.stack.write_log(&line(namespace, *dimension, metrics, now))
        })
    }

    /// What is new of each total.
    fn news(&mut self) -> [u64; 5] {
        let totals = Totals([
            self.sent,
            self.counts.deliveries(),
            self.counts.deleted(),
            self.counts.kept(),
            self.counts.failed(),
        ]);
        let Totals(before) = std::mem::replace(&mut self.told, totals);
        let mut news = totals.0;
        news.iter_mut().zip(before).for_each(|(now, before)| *now = now.saturating_sub(before));
        news
    }
}

fn of(messages: usize) -> u64 {
    u64::try_from(messages).unwrap_or(u64::MAX)
}

/// A line of the embedded metric format.
fn line(namespace: &str, dimension: (&str, &str), metrics: &[(&str, u64)], now: Timestamp) -> String {
    let (dimension, value) = dimension;
    let definitions: Vec<Value> =
        metrics.iter().map(|(name, _)| json!({"Name": name, "Unit": "Count"})).collect();
    let directive = json!({"Namespace": namespace, "Dimensions": [[dimension]], "Metrics": definitions});
    let mut line: Map<String, Value> =
        metrics.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
    line.insert(dimension.to_owned(), json!(value));
    line.insert("_aws".to_owned(), json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": [directive]}));
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_of_the_functions_own() {
        let now = Timestamp::from_millis(1_795_981_211_761);
        let line = line("AWS/SQS", ("QueueName", "orders"), &[("NumberOfMessagesSent", 7)], now);
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            line,
            json!({
                "_aws": {
                    "Timestamp": 1_795_981_211_761_i64,
                    "CloudWatchMetrics": [{
                        "Namespace": "AWS/SQS",
                        "Dimensions": [["QueueName"]],
                        "Metrics": [{"Name": "NumberOfMessagesSent", "Unit": "Count"}],
                    }],
                },
                "QueueName": "orders",
                "NumberOfMessagesSent": 7,
            })
        );
    }
}
