//! What every queue does, and what only standard queues do.

use std::time::Duration;

use super::{ACCEPTED, Bench, Fixture, bodies, redrive, system, text};
use crate::{
    queue::{Outgoing, Queue, Receive},
    record::{MessageGroupId, ReceiptHandle, TextAttribute},
};

pub(super) async fn a_message_arrives_as_it_was_sent<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "arrives", &[]).await;
    let attribute = |name: &str, data_type: &str, value: &str| TextAttribute {
        name: name.to_owned(),
        data_type: data_type.to_owned(),
        value: value.to_owned(),
    };
    let mut sent = text("{\"order_id\":\"€-1\"}\r\n\t<&>");
    sent.attributes = vec![attribute("a", "String", "ü"), attribute("b", "Number.int", "7")];
    let ids = bench.send(std::slice::from_ref(&sent)).await;
    let mut message = bench.receive_one(30).await;
    message.attributes.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(message.id, ids[0]);
    assert_eq!(message.body, sent.body);
    assert_eq!(message.attributes, sent.attributes);
    assert_eq!(system(&message, "ApproximateReceiveCount"), "1");
    for name in ["SentTimestamp", "ApproximateFirstReceiveTimestamp"] {
        assert!(system(&message, name).parse::<i64>().is_ok(), "{name} is a number");
    }
    assert!(!message.system.contains_key("MessageGroupId"));
}

pub(super) async fn a_group_on_a_standard_queue_blocks_nothing<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "fair", &[]).await;
    let of_tenant = |body| Outgoing { group: MessageGroupId::new("tenant"), ..text(body) };
    bench.send(&[of_tenant("1")]).await;
    let first = bench.receive_one(30).await;
    assert_eq!(system(&first, "MessageGroupId"), "tenant");
    bench.send(&[of_tenant("2")]).await;
    assert_eq!(bodies(&bench.receive(30).await), ["2"], "the first is still in flight");
}

pub(super) async fn results_follow_the_entries<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "results", &[]).await;
    bench.send(&[text("1"), text("2")]).await;
    let received = bench.receive(30).await;
    let garbage = ReceiptHandle::new("garbage").expect("not empty");
    let handles = [received[0].receipt_handle.clone(), garbage, received[1].receipt_handle.clone()];
    let results = fixture.queue().delete(&bench.url, &handles).await.expect("the call succeeds");
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(results[1].as_ref().expect_err("refused").code, "ReceiptHandleIsInvalid");
}

pub(super) async fn a_received_message_is_hidden_until_its_timeout<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "hidden", &[]).await;
    bench.send(&[text("1")]).await;
    let first = bench.receive_one(1).await;
    assert!(bench.receive(1).await.is_empty(), "the message is hidden");
    bench.pass(2).await;
    let second = bench.receive_one(30).await;
    assert_eq!(second.id, first.id);
    assert_ne!(second.receipt_handle, first.receipt_handle, "every receive gives a new handle");
    assert_eq!(system(&second, "ApproximateReceiveCount"), "2");
    let first_received = |message| system(message, "ApproximateFirstReceiveTimestamp").to_owned();
    assert_eq!(first_received(&second), first_received(&first));
}

pub(super) async fn a_new_timeout_counts_from_the_call<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "absolute", &[]).await;
    bench.send(&[text("1")]).await;
    let message = bench.receive_one(600).await;
    assert_eq!(bench.hide(&message.receipt_handle, 1).await, ACCEPTED, "it may become shorter");
    bench.pass(2).await;
    let message = bench.receive_one(1).await;
    assert_eq!(bench.hide(&message.receipt_handle, 600).await, ACCEPTED, "and longer");
    bench.pass(2).await;
    assert!(bench.receive(1).await.is_empty());
    assert_eq!(bench.hide(&message.receipt_handle, 0).await, ACCEPTED);
    assert_eq!(bench.receive_one(1).await.id, message.id, "0 shows it at once");
}

pub(super) async fn an_outdated_handle_deletes_nothing<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "outdated", &[]).await;
    bench.send(&[text("1")]).await;
    let first = bench.receive_one(0).await;
    let second = bench.receive_one(30).await;
    assert_eq!(bench.delete(&first.receipt_handle).await, Ok(()), "which proves nothing");
    assert_eq!(bench.hide(&second.receipt_handle, 0).await, ACCEPTED, "the message is still there");
    let third = bench.receive_one(0).await;
    assert_eq!(
        bench.delete(&third.receipt_handle).await,
        Ok(()),
        "the latest handle deletes, even after its timeout"
    );
    assert!(bench.receive(30).await.is_empty());
}

pub(super) async fn a_message_that_shows_again_is_not_in_flight<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "inflight", &[]).await;
    bench.send(&[text("1")]).await;
    let message = bench.receive_one(1).await;
    bench.pass(2).await;
    assert_eq!(bench.hide(&message.receipt_handle, 30).await, "MessageNotInflight");
}

pub(super) async fn deleting_twice_succeeds<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "twice", &[]).await;
    bench.send(&[text("1")]).await;
    let message = bench.receive_one(30).await;
    assert_eq!(bench.delete(&message.receipt_handle).await, Ok(()));
    assert_eq!(bench.delete(&message.receipt_handle).await, Ok(()));
    let refused = bench.hide(&message.receipt_handle, 30).await;
    assert_eq!(refused, "InvalidParameterValue", "a deleted message cannot be hidden");
}

pub(super) async fn a_delayed_message_waits<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "delayed", &[]).await;
    bench.send(&[Outgoing { delay: Duration::from_secs(1), ..text("late") }, text("now")]).await;
    assert_eq!(bodies(&bench.receive(30).await), ["now"]);
    bench.pass(2).await;
    assert_eq!(bodies(&bench.receive(30).await), ["late"]);
}

pub(super) async fn a_spent_message_moves_on_the_next_receive<F: Fixture>(fixture: &F) {
    let (dlq_url, dlq_arn) = fixture.create("spent-dlq", &[]).await;
    let dlq = Bench { fixture, url: dlq_url };
    let (url, arn) = fixture.create("spent", &[("RedrivePolicy", &redrive(&dlq_arn, 2))]).await;
    let bench = Bench { fixture, url };
    bench.send(&[text("poison")]).await;
    bench.receive_one(0).await;
    let last = bench.receive_one(0).await;
    bench.pass(1).await;
    assert!(dlq.receive(0).await.is_empty(), "nothing moves before the next receive");
    assert!(bench.receive(0).await.is_empty());
    let dead = dlq.receive_one(0).await;
    assert_eq!(dead.id, last.id);
    assert_eq!(system(&dead, "SentTimestamp"), system(&last, "SentTimestamp"), "its retention goes on");
    assert_eq!(system(&dead, "ApproximateReceiveCount"), "3", "counted across queues");
    assert_eq!(system(&dead, "DeadLetterQueueSourceArn"), arn);
}

pub(super) async fn a_receive_that_waits_wakes_at_once<F: Fixture>(fixture: &F) {
    const WAIT: Duration = Duration::from_secs(20);
    let bench = Bench::new(fixture, "wakes", &[]).await;
    let started = tokio::time::Instant::now();
    let receive = Receive { max_messages: 10, wait: WAIT, visibility: None };
    let message = [text("1")];
    let (received, _) = tokio::join!(fixture.queue().receive(&bench.url, receive), bench.send(&message));
    assert_eq!(bodies(&received.expect("the receive succeeds")), ["1"]);
    assert!(started.elapsed() < WAIT);
}

pub(super) async fn a_message_ends_with_its_retention<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "retention", &[("MessageRetentionPeriod", "60")]).await;
    bench.send(&[text("1")]).await;
    bench.pass(61).await;
    assert!(bench.receive(0).await.is_empty());
}
