//! What only FIFO queues do.

use super::{ACCEPTED, Bench, Fixture, bodies, grouped, redrive, system};

const FIFO: (&str, &str) = ("FifoQueue", "true");

pub(super) async fn a_group_waits_for_its_message_in_flight<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "waits.fifo", &[FIFO]).await;
    bench.send(&[grouped("g", "1")]).await;
    let head = bench.receive_one(30).await;
    assert_eq!(system(&head, "MessageGroupId"), "g");
    assert_eq!(system(&head, "MessageDeduplicationId"), "1");
    bench.send(&[grouped("g", "2"), grouped("h", "3")]).await;
    assert_eq!(bodies(&bench.receive(30).await), ["3"], "other groups go on");
    assert_eq!(bench.delete(&head.receipt_handle).await, Ok(()));
    let next = bench.receive_one(30).await;
    assert_eq!(next.body, "2");
    assert!(system(&head, "SequenceNumber") < system(&next, "SequenceNumber"));
}

pub(super) async fn a_receive_takes_a_run_of_one_group<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "run.fifo", &[FIFO]).await;
    bench.send(&[grouped("g", "1"), grouped("h", "2"), grouped("g", "3")]).await;
    let received = bench.receive(30).await;
    let of_g: Vec<_> = received.iter().filter(|message| system(message, "MessageGroupId") == "g").collect();
    assert_eq!([of_g[0].body.as_str(), of_g[1].body.as_str()], ["1", "3"]);
    assert_eq!(bench.delete(&of_g[0].receipt_handle).await, Ok(()));
    bench.send(&[grouped("g", "4")]).await;
    assert!(bench.receive(30).await.is_empty(), "one of the run is still in flight");
}

pub(super) async fn a_group_goes_on_in_order_after_a_failure<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "order.fifo", &[FIFO]).await;
    bench.send(&[grouped("g", "1"), grouped("g", "2"), grouped("g", "3")]).await;
    let received = bench.receive(30).await;
    assert_eq!(bodies(&received), ["1", "2", "3"]);
    for message in received.iter().rev() {
        assert_eq!(bench.hide(&message.receipt_handle, 0).await, ACCEPTED);
    }
    assert_eq!(bodies(&bench.receive(30).await), ["1", "2", "3"]);
}

pub(super) async fn a_repeated_message_is_dropped<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "repeated.fifo", &[FIFO]).await;
    let first = bench.send(&[grouped("g", "1")]).await;
    let message = bench.receive_one(30).await;
    assert_eq!(bench.delete(&message.receipt_handle).await, Ok(()));
    let second = bench.send(&[grouped("g", "1")]).await;
    assert_eq!(second, first, "accepted as the message it repeats");
    assert!(bench.receive(30).await.is_empty(), "also after the first is deleted");

    let attributes = [FIFO, ("ContentBasedDeduplication", "true")];
    let by_content = Bench::new(fixture, "content.fifo", &attributes).await;
    let mut message = grouped("g", "same");
    message.deduplication_id = None;
    by_content.send(&[message.clone(), message]).await;
    assert_eq!(bodies(&by_content.receive(30).await), ["same"]);
}

pub(super) async fn a_repeated_message_is_kept_after_five_minutes<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "later.fifo", &[FIFO]).await;
    bench.send(&[grouped("g", "1")]).await;
    bench.pass(301).await;
    bench.send(&[grouped("g", "1")]).await;
    assert_eq!(bodies(&bench.receive(30).await), ["1", "1"]);
}

pub(super) async fn an_expired_handle_is_refused<F: Fixture>(fixture: &F) {
    let bench = Bench::new(fixture, "expired.fifo", &[FIFO]).await;
    bench.send(&[grouped("g", "1")]).await;
    let message = bench.receive_one(1).await;
    bench.pass(2).await;
    let refused = bench.delete(&message.receipt_handle).await.expect_err("the handle has expired");
    assert_eq!(refused.code, "InvalidParameterValue");
    let refused = bench.hide(&message.receipt_handle, 30).await;
    assert_eq!(refused, "InvalidParameterValue");
    assert_eq!(bench.receive_one(30).await.id, message.id, "the message is still there");
}

pub(super) async fn a_dead_letter_starts_anew<F: Fixture>(fixture: &F) {
    let (url, dlq_arn) = fixture.create("anew-dlq.fifo", &[FIFO]).await;
    let dlq = Bench { fixture, url };
    let policy = redrive(&dlq_arn, 1);
    let bench = Bench::new(fixture, "anew.fifo", &[FIFO, ("RedrivePolicy", &policy)]).await;
    bench.send(&[grouped("g", "poison"), grouped("g", "good")]).await;
    let head = bench.receive(0).await.remove(0);
    bench.pass(2).await;
    assert!(bench.receive(0).await.is_empty(), "followers that were received with the head are spent too");
    let dead = dlq.receive(30).await;
    assert_eq!(bodies(&dead), ["poison", "good"], "in order");
    assert_eq!(system(&dead[0], "MessageGroupId"), "g");
    assert!(system(&dead[0], "SentTimestamp") > system(&head, "SentTimestamp"), "its retention starts anew");
}
