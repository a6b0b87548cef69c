//! What only tools need of SQS: how deep a queue is, and its own move tasks.

use aws_sdk_sqs::types::{ListMessageMoveTasksResultEntry, QueueAttributeName};

use super::{SqsQueue, failed};
use crate::{clock::Timestamp, queue::QueueError};

/// What a queue says of itself. The numbers are SQS's own approximations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// The ARN.
    pub arn: String,
    /// Messages that can be received.
    pub visible: u64,
    /// Messages that are hidden because somebody received them.
    pub in_flight: u64,
    /// Messages that are hidden because they were sent with a delay.
    pub delayed: u64,
    /// Whether messages that are received too often leave it for another queue, as from one that is worked on.
    pub has_dead_letter_queue: bool,
}

/// A move task of SQS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTask {
    /// What cancelling takes; only while the task runs.
    pub handle: Option<String>,
    /// `RUNNING`, `COMPLETED`, `CANCELLING`, `CANCELLED` or `FAILED`.
    pub status: String,
    /// Messages moved.
    pub moved: u64,
    /// Messages there were to move at the start.
    pub to_move: Option<u64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
}

impl MoveTask {
    /// Whether messages are still being moved.
    pub fn is_running(&self) -> bool {
        ["RUNNING", "CANCELLING"].contains(&self.status.as_str())
    }
}

impl SqsQueue {
    /// ARN and depth of the queue.
    ///
    /// # Errors
    /// The call failed.
    pub async fn facts(&self, url: &str) -> Result<QueueFacts, QueueError> {
        let call = self.client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All);
        let answer = Box::pin(call.send()).await.map_err(|error| failed("GetQueueAttributes", url, error))?;
        let attributes = answer.attributes.unwrap_or_default();
        let number = |name| attributes.get(&name).and_then(|text| text.parse().ok()).unwrap_or_default();
        Ok(QueueFacts {
            arn: attributes.get(&QueueAttributeName::QueueArn).cloned().unwrap_or_default(),
            visible: number(QueueAttributeName::ApproximateNumberOfMessages),
            in_flight: number(QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
            delayed: number(QueueAttributeName::ApproximateNumberOfMessagesDelayed),
            has_dead_letter_queue: attributes.contains_key(&QueueAttributeName::RedrivePolicy),
        })
    }

    /// Starts a move task; `per_second` is 1 to 500, `None` leaves the rate to SQS.
    ///
    /// # Errors
    /// The call failed: the source is no dead-letter queue, say, or a task runs already.
    pub async fn start_move(
        &self,
        source_arn: &str,
        destination_arn: Option<&str>,
        per_second: Option<u32>,
    ) -> Result<String, QueueError> {
        let call = self
            .client
            .start_message_move_task()
            .source_arn(source_arn)
            .set_destination_arn(destination_arn.map(str::to_owned))
            .set_max_number_of_messages_per_second(per_second.and_then(|rate| i32::try_from(rate).ok()));
        let answer =
            Box::pin(call.send()).await.map_err(|error| failed("StartMessageMoveTask", source_arn, error))?;
        Ok(answer.task_handle.unwrap_or_default())
    }

    /// The latest move task of a dead-letter queue.
    ///
    /// # Errors
    /// The call failed.
    pub async fn latest_move(&self, source_arn: &str) -> Result<Option<MoveTask>, QueueError> {
        let call = self.client.list_message_move_tasks().source_arn(source_arn).max_results(1);
        let answer =
            Box::pin(call.send()).await.map_err(|error| failed("ListMessageMoveTasks", source_arn, error))?;
        Ok(answer.results.unwrap_or_default().into_iter().next().map(task))
    }

    /// Stops a move task of a dead-letter queue; answers how many messages it has moved.
    ///
    /// # Errors
    /// The call failed: no such task runs, say.
    pub async fn cancel_move(&self, source_arn: &str, handle: &str) -> Result<u64, QueueError> {
        let call = self.client.cancel_message_move_task().task_handle(handle);
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| failed("CancelMessageMoveTask", source_arn, error))?;
        Ok(u64::try_from(answer.approximate_number_of_messages_moved).unwrap_or_default())
    }
}

fn task(entry: ListMessageMoveTasksResultEntry) -> MoveTask {
    MoveTask {
        handle: entry.task_handle,
        status: entry.status.unwrap_or_default(),
        moved: u64::try_from(entry.approximate_number_of_messages_moved).unwrap_or_default(),
        to_move: entry.approximate_number_of_messages_to_move.and_then(|count| u64::try_from(count).ok()),
        failure: entry.failure_reason,
        started_at: Timestamp::from_millis(entry.started_timestamp),
    }
}
