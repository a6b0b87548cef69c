//! A queue with a dead-letter queue beside a running [`Stack`], and the variables by which every command finds them:
//! what is done to a deployed stack in an emergency can be tried here first.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    local::stack::{DEAD_LETTER_QUEUES, Stack},
    queue::memory::{MemoryQueues, QueueSettings, RedrivePolicy, SqsError},
};

/// The name of the queue, as in a rehearsal.
const QUEUE: &str = "orders";
/// Poison, which comes back at once, is dead within seconds.
const MAX_RECEIVE_COUNT: u32 = 5;
const VISIBILITY: Duration = Duration::from_secs(180);
/// 14 days.
const DLQ_RETENTION: &str = "1209600";

/// Makes the queue, set as `charge-once queue create` would. Nobody consumes it: that is the worker's part, or a
/// person's.
///
/// The answer is the variables for `charge-once worker`, `queue`, `dlq` and `ledger`, in the order in which one says
/// them.
///
/// # Errors
/// The stack has a queue of that name.
pub fn open(stack: &Stack) -> Result<Vec<(String, String)>, SqsError> {
    let [dead_letter_queue, _] = DEAD_LETTER_QUEUES;
    let redrive = RedrivePolicy {
        dead_letter_queue: MemoryQueues::arn(dead_letter_queue),
        max_receive_count: MAX_RECEIVE_COUNT,
    };
    let retention = BTreeMap::from([("MessageRetentionPeriod".to_owned(), DLQ_RETENTION.to_owned())]);
    stack.queues().set_attributes(dead_letter_queue, &retention)?;
    let settings =
        QueueSettings { visibility: VISIBILITY, redrive: Some(redrive), ..QueueSettings::standard() };
    stack.queues().create(QUEUE, settings)?;
    let of_the_function = stack.environment().iter().filter(|(name, _)| !name.starts_with("AWS_LAMBDA_"));
    let mut variables: Vec<_> = of_the_function.map(|(name, value)| (name.clone(), value.clone())).collect();
    variables.extend([
        ("QUEUE_URL".into(), stack.queue_url(QUEUE)),
        ("DLQ_URL".into(), stack.queue_url(dead_letter_queue)),
        ("MAX_RECEIVE_COUNT".into(), MAX_RECEIVE_COUNT.to_string()),
    ]);
    Ok(variables)
}
