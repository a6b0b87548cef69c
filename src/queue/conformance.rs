//! Every queue passes these: the suite that holds the memory queue to what SQS does.
//!
//! A backend gives a [`Fixture`] and calls [`run`]. Checks that need more time to pass than the fixture can
//! let pass are not run, and `run` answers with their names, so that leaving one out is always a visible choice.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test suite: a failed expectation ends the test"
)]

mod fifo;
mod limits;
mod standard;

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;

use super::{EntryResult, Message, Outgoing, Queue, Receive, VisibilityChange};
use crate::record::{MessageGroupId, MessageId, ReceiptHandle};

/// A backend under test.
pub trait Fixture: Sync {
    /// The queue it tests.
    type Queue: Queue;

    /// The longest time that `pass` can let pass: how long one is ready to wait for a real server, anything
    /// for a clock that the test drives.
    const LONGEST_PASS: Duration;

    /// The queue.
    fn queue(&self) -> &Self::Queue;

    /// Creates an empty queue with these attributes and answers its URL and ARN. The names given are unique
    /// within a run; a real server may add to them.
    fn create(
        &self,
        name: &str,
        attributes: &[(&str, &str)],
    ) -> impl Future<Output = (String, String)> + Send;

    /// Lets at least so much time pass for the queue.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Hands every check to a macro, with the seconds that it lets pass.
macro_rules! every_check {
    ($do:ident) => {
        $do! {
            standard::a_message_arrives_as_it_was_sent takes 0,
            standard::a_group_on_a_standard_queue_blocks_nothing takes 0,
            standard::results_follow_the_entries takes 0,
            standard::a_received_message_is_hidden_until_its_timeout takes 2,
            standard::a_new_timeout_counts_from_the_call takes 4,
            standard::an_outdated_handle_deletes_nothing takes 0,
            standard::a_message_that_shows_again_is_not_in_flight takes 2,
            standard::deleting_twice_succeeds takes 0,
            standard::a_delayed_message_waits takes 2,
            standard::a_spent_message_moves_on_the_next_receive takes 2,
            standard::a_receive_that_waits_wakes_at_once takes 0,
            standard::a_message_ends_with_its_retention takes 61,
            fifo::a_group_waits_for_its_message_in_flight takes 0,
            fifo::a_receive_takes_a_run_of_one_group takes 0,
            fifo::a_group_goes_on_in_order_after_a_failure takes 0,
            fifo::a_repeated_message_is_dropped takes 0,
            fifo::a_repeated_message_is_kept_after_five_minutes takes 301,
            fifo::an_expired_handle_is_refused takes 2,
            fifo::a_dead_letter_starts_anew takes 2,
            limits::a_missing_queue_is_named takes 0,
            limits::a_batch_holds_one_to_ten takes 0,
            limits::a_batch_is_no_longer_than_a_message takes 0,
            limits::a_bad_message_fails_alone takes 0,
            limits::more_than_twelve_hours_is_an_error takes 2,
            limits::receives_are_bounded takes 0,
        }
    };
}

/// Runs every check that the fixture has the time for; answers the names of the others.
pub async fn run<F: Fixture>(fixture: &F) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    macro_rules! check {
        ($($module:ident::$name:ident takes $seconds:literal,)*) => {$(
            if F::LONGEST_PASS >= Duration::from_secs($seconds) {
                $module::$name(fixture).await;
            } else {
                left_out.push(stringify!($name));
            }
        )*};
    }
    every_check!(check);
    left_out
}

/// What a backend made of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// The checks that it passed.
    pub passed: Vec<&'static str>,
    /// The checks that it failed.
    pub failed: Vec<&'static str>,
    /// The checks for which there was no time.
    pub left_out: Vec<&'static str>,
}

/// Runs every check to its end, for a backend of others that is known to differ here and there.
pub async fn judge<F: Fixture>(fixture: &F) -> Verdicts {
    let mut verdicts = Verdicts::default();
    macro_rules! check {
        ($($module:ident::$name:ident takes $seconds:literal,)*) => {$(
            let list = if F::LONGEST_PASS < Duration::from_secs($seconds) {
                &mut verdicts.left_out
            } else if AssertUnwindSafe($module::$name(fixture)).catch_unwind().await.is_ok() {
                &mut verdicts.passed
            } else {
                &mut verdicts.failed
            };
            list.push(stringify!($name));
        )*};
    }
    every_check!(check);
    verdicts
}

/// A fixture with one of its queues: the words that the checks are written in.
struct Bench<'a, F: Fixture> {
    fixture: &'a F,
    url: String,
}

impl<'a, F: Fixture> Bench<'a, F> {
    async fn new(fixture: &'a F, name: &str, attributes: &[(&str, &str)]) -> Self {
        Self { fixture, url: fixture.create(name, attributes).await.0 }
    }

    /// Sends messages that must be accepted.
    async fn send(&self, messages: &[Outgoing]) -> Vec<MessageId> {
        let results = self.fixture.queue().send(&self.url, messages).await.expect("the send succeeds");
        results.into_iter().map(|result| result.expect("the message is accepted")).collect()
    }

    /// Receives up to ten messages without waiting.
    async fn receive(&self, visibility: u64) -> Vec<Message> {
        let visibility = Some(Duration::from_secs(visibility));
        let receive = Receive { max_messages: 10, wait: Duration::ZERO, visibility };
        self.fixture.queue().receive(&self.url, receive).await.expect("the receive succeeds")
    }

    /// Receives the one message there must be.
    async fn receive_one(&self, visibility: u64) -> Message {
        let mut messages = self.receive(visibility).await;
        assert_eq!(messages.len(), 1, "one message can be received");
        messages.remove(0)
    }

    async fn delete(&self, handle: &ReceiptHandle) -> EntryResult {
        let handles = std::slice::from_ref(handle);
        let mut results = self.fixture.queue().delete(&self.url, handles).await.expect("the delete succeeds");
        assert_eq!(results.len(), 1, "one result for one entry");
        results.remove(0)
    }

    /// Changes a timeout; answers the error's code, or [`ACCEPTED`].
    async fn hide(&self, handle: &ReceiptHandle, seconds: u32) -> String {
        let changes = [VisibilityChange { receipt_handle: handle.clone(), seconds }];
        let results =
            self.fixture.queue().change_visibility(&self.url, &changes).await.expect("the call succeeds");
        results[0].clone().map_or_else(|error| error.code, |()| ACCEPTED.to_owned())
    }

    async fn pass(&self, seconds: u64) {
        self.fixture.pass(Duration::from_secs(seconds)).await;
    }
}

/// Stands for the code of a call that is not refused.
const ACCEPTED: &str = "";

fn text(body: &str) -> Outgoing {
    Outgoing { body: body.to_owned(), ..Outgoing::default() }
}

fn grouped(group: &str, body: &str) -> Outgoing {
    Outgoing { group: MessageGroupId::new(group), deduplication_id: Some(body.to_owned()), ..text(body) }
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.body.as_str()).collect()
}

fn system<'a>(message: &'a Message, name: &str) -> &'a str {
    message.system.get(name).unwrap_or_else(|| panic!("the message has no {name}"))
}

fn redrive(arn: &str, max_receive_count: u32) -> String {
    format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{max_receive_count}}}"#)
}
