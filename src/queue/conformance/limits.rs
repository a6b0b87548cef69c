//! What a queue refuses, and by which code.

use std::time::Duration;

use super::{ACCEPTED, Bench, Fixture, grouped, text};
use crate::queue::{Outgoing, Queue, QueueError, Receive};

fn code<T>(result: Result<T, QueueError>) -> String {
    let error = result.err().expect("the call is refused");
    error.code.unwrap_or_else(|| format!("no code: {:?}", error.source))
}

pub(super) async fn a_missing_queue_is_named<F: Fixture>(fixture: &F) {
    let (url, _) = fixture.create("present", &[]).await;
    let missing = url.replace("present", "missing");
    let receive = Receive { max_messages: 1, wait: Duration::ZERO, visibility: None };
    assert_eq!(code(fixture.queue().receive(&missing, receive).await), "QueueDoesNotExist");
    assert_eq!(code(fixture.queue().send(&missing, &[text("1")]).await), "QueueDoesNotExist");
}

pub(super) async fn a_batch_holds_one_to_ten<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "batches", &[]).await;
    let queue = fixture.queue();
    let eleven: Vec<_> = (0..11).map(|n| text(&n.to_string())).collect();
    assert_eq!(code(queue.send(&bench.url, &eleven).await), "TooManyEntriesInBatchRequest");
    assert_eq!(code(queue.send(&bench.url, &[]).await), "EmptyBatchRequest");
    assert_eq!(code(queue.delete(&bench.url, &[]).await), "EmptyBatchRequest");
    assert_eq!(code(queue.change_visibility(&bench.url, &[]).await), "EmptyBatchRequest");
    assert!(bench.receive(0).await.is_empty(), "nothing of a refused batch was sent");
}

pub(super) async fn a_batch_is_no_longer_than_a_message<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "size", &[]).await;
    let long = text(&"x".repeat(1_048_576));
    bench.send(std::slice::from_ref(&long)).await;
    let more = [long, text("1")];
    assert_eq!(code(fixture.queue().send(&bench.url, &more).await), "BatchRequestTooLong");
}

pub(super) async fn a_bad_message_fails_alone<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "alone.fifo", &[("FifoQueue", "true")]).await;
    let messages = [
        grouped("g", "1"),
        text("no group"),
        Outgoing { deduplication_id: None, ..grouped("g", "no deduplication id") },
        grouped("g", "not carried: \u{FFFE}"),
        Outgoing { delay: Duration::from_secs(1), ..grouped("g", "delayed") },
        grouped("g", "2"),
    ];
    let results = fixture.queue().send(&bench.url, &messages).await.expect("the call succeeds");
    let codes: Vec<_> =
        results.iter().map(|result| result.as_ref().map_or_else(|e| e.code.as_str(), |_| "")).collect();
    let refused = "InvalidParameterValue";
    assert_eq!(codes, ["", "MissingParameter", refused, "InvalidMessageContents", refused, ""]);
}

pub(super) async fn more_than_twelve_hours_is_an_error<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "twelve-hours", &[]).await;
    bench.send(&[text("1")]).await;
    let message = bench.receive_one(30).await;
    let too_long = "InvalidParameterValue";
    assert_eq!(bench.hide(&message.receipt_handle, 43_201).await, too_long);
    bench.pass(2).await;
    assert_eq!(bench.hide(&message.receipt_handle, 43_200).await, too_long, "never clamped");
    assert_eq!(bench.hide(&message.receipt_handle, 43_190).await, ACCEPTED);
}

pub(super) async fn receives_are_bounded<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "bounds", &[]).await;
    let receive = Receive { max_messages: 10, wait: Duration::ZERO, visibility: None };
    for out_of_range in [
        Receive { max_messages: 0, ..receive },
        Receive { max_messages: 11, ..receive },
        Receive { wait: Duration::from_secs(21), ..receive },
        Receive { visibility: Some(Duration::from_secs(43_201)), ..receive },
    ] {
        assert_eq!(code(fixture.queue().receive(&bench.url, out_of_range).await), "InvalidParameterValue");
    }
}
