//! What each action of the SQS API does with the queues.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Shared, md5, wire};
use crate::queue::{
    MAX_BATCH, Outgoing, Receive,
    memory::{MemoryQueues, MoveStatus, MoveTask, QueueSettings, SqsError, check_total_size},
};

type Answer = Result<Value, SqsError>;

impl Shared {
    /// Performs one action on the parameters in `body`.
    pub(super) async fn act(&self, action: &str, body: &[u8]) -> Answer {
        match action {
            "CreateQueue" => self.create_queue(wire::read(body)?),
            "GetQueueUrl" => self.get_queue_url(&wire::read(body)?),
            "ListQueues" => Ok(self.list_queues(&wire::read(body)?)),
            "GetQueueAttributes" => self.get_attributes(&wire::read(body)?),
            "SetQueueAttributes" => self.set_attributes(&wire::read(body)?),
            "PurgeQueue" => self.purge(&wire::read(body)?),
            "SendMessage" => self.send(wire::read(body)?),
            "SendMessageBatch" => self.send_batch(wire::read(body)?),
            "ReceiveMessage" => self.receive(wire::read(body)?).await,
            "DeleteMessage" => self.delete(&wire::read(body)?),
            "DeleteMessageBatch" => self.delete_batch(wire::read(body)?),
            "ChangeMessageVisibility" => self.change_visibility(&wire::read(body)?),
            "ChangeMessageVisibilityBatch" => self.change_visibility_batch(wire::read(body)?),
            "ListDeadLetterSourceQueues" => self.list_sources(&wire::read(body)?),
            "StartMessageMoveTask" => self.start_move(&wire::read(body)?),
            "ListMessageMoveTasks" => self.list_moves(&wire::read(body)?),
            "CancelMessageMoveTask" => self.cancel_move(&wire::read(body)?),
            other => Err(SqsError::UnsupportedOperation(format!("{other} is not supported here"))),
        }
    }

    fn create_queue(&self, request: wire::CreateQueue) -> Answer {
        let settings = QueueSettings::from_attributes(&request.attributes)?;
        self.queues.create(&request.queue_name, settings)?;
        Ok(json!({ "QueueUrl": self.queue_url(&request.queue_name) }))
    }

    fn get_queue_url(&self, request: &wire::GetQueueUrl) -> Answer {
        self.queues.depth(&request.queue_name)?;
        Ok(json!({ "QueueUrl": self.queue_url(&request.queue_name) }))
    }

    fn list_queues(&self, request: &wire::ListQueues) -> Value {
        let max = request.max_results.unwrap_or(1000);
        let after = request.next_token.as_deref().unwrap_or_default();
        let mut names = self.queues.names();
        names.retain(|name| name.starts_with(&request.queue_name_prefix) && name.as_str() > after);
        let more = names.len() > max && request.max_results.is_some();
        names.truncate(max);
        let urls: Vec<_> = names.iter().map(|name| self.queue_url(name)).collect();
        let next_token = if more { names.pop() } else { None };
        json!({ "QueueUrls": urls, "NextToken": next_token })
    }

    fn get_attributes(&self, request: &wire::GetQueueAttributes) -> Answer {
        let mut attributes = self.queues.attributes(name_in(&request.queue_url))?;
        attributes
            .retain(|name, _| request.attribute_names.iter().any(|asked| asked == "All" || asked == name));
        Ok(json!({ "Attributes": attributes }))
    }

    fn set_attributes(&self, request: &wire::SetQueueAttributes) -> Answer {
        self.queues.set_attributes(name_in(&request.queue_url), &request.attributes)?;
        Ok(json!({}))
    }

    fn purge(&self, request: &wire::OfQueue) -> Answer {
        self.queues.purge(name_in(&request.queue_url))?;
        Ok(json!({}))
    }

    fn send(&self, request: wire::SendMessage) -> Answer {
        let name = name_in(&request.queue_url).to_owned();
        self.send_one(&name, request.into_outgoing()?)
    }

    fn send_batch(&self, request: wire::Batch<wire::SendMessage>) -> Answer {
        let name = name_in(&request.queue_url).to_owned();
        request.check()?;
        self.queues.depth(&name)?;
        let request = request.map(wire::SendMessage::into_outgoing);
        check_total_size(request.entries.iter().filter_map(|entry| entry.entry.as_ref().ok()))?;
        Ok(request.each(|message| self.send_one(&name, message?)))
    }

    fn send_one(&self, name: &str, message: Outgoing) -> Answer {
        let (body, attributes) = (md5::of_body(&message.body), md5::of_attributes(&message.attributes));
        let sent = self.queues.send_one(name, message)?;
        let mut answer = json!({ "MessageId": sent.id.as_str(), "MD5OfMessageBody": body });
        if let Some(fields) = answer.as_object_mut() {
            let optional = [("MD5OfMessageAttributes", attributes), ("SequenceNumber", sent.sequence_number)];
            fields.extend(
                optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))),
            );
        }
        Ok(answer)
    }

    async fn receive(&self, request: wire::ReceiveMessage) -> Answer {
        let name = name_in(&request.queue_url);
        let receive = Receive {
            // Out of range either way, and refused as such.
            max_messages: u8::try_from(request.max_number_of_messages.unwrap_or(1)).unwrap_or(u8::MAX),
            wait: match request.wait_time_seconds {
                Some(seconds) => Duration::from_secs(seconds),
                None => self.queues.settings(name)?.wait,
            },
            visibility: request.visibility_timeout.map(Duration::from_secs),
        };
        let messages = self.queues.receive_from(name, receive).await?;
        if messages.is_empty() {
            return Ok(json!({}));
        }
        let messages: Vec<_> = messages.into_iter().map(|message| request.answer(message)).collect();
        Ok(json!({ "Messages": messages }))
    }

    fn delete(&self, request: &wire::DeleteMessage) -> Answer {
        self.delete_one(name_in(&request.queue_url), request)
    }

    fn delete_batch(&self, request: wire::Batch<wire::DeleteMessage>) -> Answer {
        let name = name_in(&request.queue_url).to_owned();
        request.check()?;
        self.queues.depth(&name)?;
        Ok(request.each(|entry| self.delete_one(&name, &entry)))
    }

    fn delete_one(&self, name: &str, request: &wire::DeleteMessage) -> Answer {
        self.queues.delete_one(name, &request.handle()?)?;
        Ok(json!({}))
    }

    fn change_visibility(&self, request: &wire::ChangeMessageVisibility) -> Answer {
        self.recorder.whole_call()?;
        self.change_one(&request.queue_url, request)
    }

    fn change_visibility_batch(&self, request: wire::Batch<wire::ChangeMessageVisibility>) -> Answer {
        let url = request.queue_url.clone();
        request.check()?;
        self.recorder.whole_call()?;
        if !self.recorder.accepts_unknown() {
            self.queues.depth(name_in(&url))?;
        }
        Ok(request.each(|entry| self.change_one(&url, &entry)))
    }

    fn change_one(&self, url: &str, request: &wire::ChangeMessageVisibility) -> Answer {
        self.recorder.record(url, request)?;
        let changed = self.queues.change_one(name_in(url), &request.change()?);
        match changed {
            Err(SqsError::QueueDoesNotExist | SqsError::ReceiptHandleIsInvalid(_))
                if self.recorder.accepts_unknown() => {}
            result => result?,
        }
        Ok(json!({}))
    }

    fn list_sources(&self, request: &wire::OfQueue) -> Answer {
        let names = self.queues.sources_of(name_in(&request.queue_url))?;
        let urls: Vec<_> = names.iter().map(|name| self.queue_url(name)).collect();
        // The one list in SQS's API whose name begins in lower case.
        Ok(json!({ "queueUrls": urls }))
    }

    fn start_move(&self, request: &wire::StartMessageMoveTask) -> Answer {
        let source = source_in(&request.source_arn);
        let destination = request.destination_arn.as_deref().map(source_in);
        let rate = request.max_number_of_messages_per_second;
        let handle = self.queues.start_move(source, destination, rate).map_err(no_resource)?;
        Ok(json!({ "TaskHandle": handle }))
    }

    fn list_moves(&self, request: &wire::ListMessageMoveTasks) -> Answer {
        let tasks = self.queues.moves(source_in(&request.source_arn)).map_err(no_resource)?;
        let max = request.max_results.unwrap_or(1).min(MAX_BATCH);
        let results: Vec<_> = tasks.iter().take(max).map(move_result).collect();
        Ok(json!({ "Results": results }))
    }

    fn cancel_move(&self, request: &wire::CancelMessageMoveTask) -> Answer {
        let moved = self.queues.cancel_move(&request.task_handle)?;
        Ok(json!({ "ApproximateNumberOfMessagesMoved": moved }))
    }
}

fn move_result(task: &MoveTask) -> Value {
    let (status, reason) = match task.status {
        MoveStatus::Running => ("RUNNING", None),
        MoveStatus::Completed => ("COMPLETED", None),
        MoveStatus::Cancelled => ("CANCELLED", None),
        MoveStatus::CouldNotDetermineMessageSource => ("FAILED", Some("CouldNotDetermineMessageSource")),
    };
    // The handle is answered only while it is of use.
    let handle = (task.status == MoveStatus::Running).then_some(&task.handle);
    json!({
        "TaskHandle": handle,
        "Status": status,
        "FailureReason": reason,
        "SourceArn": MemoryQueues::arn(&task.source),
        "DestinationArn": task.destination.as_deref().map(MemoryQueues::arn),
        "MaxNumberOfMessagesPerSecond": task.rate,
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "StartedTimestamp": task.started_at.as_millis(),
    })
}

/// Move tasks call a missing queue a missing resource.
fn no_resource(error: SqsError) -> SqsError {
    if error == SqsError::QueueDoesNotExist {
        return SqsError::ResourceNotFound(
            "The resource that you specified for the SourceArn parameter doesn't exist.",
        );
    }
    error
}

/// The queue's name in a URL: its last segment.
fn name_in(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// The queue's name in an ARN.
fn source_in(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or(arn)
}
