//! The first signal ends the work in order, the second ends the process.

use std::time::Duration;

use charge_once::queue::{
    Outgoing, Receive,
    memory::{Depth, MemoryQueues, QueueSettings},
};

use super::{
    Running, Site,
    gate::{Gate, Pending},
};

const QUEUE: &str = "orders";

fn send(queues: &MemoryQueues, order: &str) {
    let body = format!(r#"{{"order_id":"{order}","amount":1,"currency":"EUR"}}"#);
    queues.send_one(QUEUE, Outgoing { body, ..Outgoing::default() }).unwrap();
}

/// Asks again whenever the other tasks of this test have had their turn, the worker's calls among them.
async fn until(queues: &MemoryQueues, holds: impl Fn(Depth) -> bool) {
    while !holds(queues.depth(QUEUE).unwrap()) {
        tokio::task::yield_now().await;
    }
}

/// A worker that has one message at the provider and another one in hand, not begun.
async fn one_at_the_provider_and_one_waiting(site: &Site, gate: &Gate) -> (Running, Pending) {
    let queues = site.sqs.queues();
    queues.create(QUEUE, QueueSettings::standard()).unwrap();
    let url = site.sqs.queue_url(QUEUE);
    let mut command = site.command(&["worker", "--concurrency", "1", "--queue-url", &url]);
    let worker = Running::of(command.env("GATEWAY_URL", gate.url()));
    // A first result teaches the worker that it may receive ahead.
    send(queues, "o-1");
    gate.charge().await.succeed().await;
    until(queues, |depth| depth.total() == 0).await;
    send(queues, "o-2");
    send(queues, "o-3");
    let charge = gate.charge().await;
    until(queues, |depth| depth.in_flight == 2).await;
    (worker, charge)
}

/// Another consumer that waits for a message and receives the one that is handed back.
async fn receive_elsewhere(queues: &MemoryQueues) {
    let hour = Duration::from_secs(3600);
    let receive = Receive { max_messages: 10, wait: Duration::from_secs(20), visibility: Some(hour) };
    assert_eq!(queues.receive_from(QUEUE, receive).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_first_signal_hands_back_what_was_not_begun_and_finishes_the_rest() {
    let (site, gate) = (Site::start().await, Gate::start().await);
    let (mut worker, charge) = one_at_the_provider_and_one_waiting(&site, &gate).await;

    worker.signal("TERM").await;
    receive_elsewhere(site.sqs.queues()).await;
    assert!(worker.is_running(), "a charge is under way");

    charge.succeed().await;
    assert_eq!(worker.exit_code().await, Some(0));
    let depth = site.sqs.queues().depth(QUEUE).unwrap();
    assert_eq!((depth.in_flight, depth.total()), (1, 1), "only the other consumer's message is left");
}

#[tokio::test]
async fn the_second_signal_ends_the_process_and_leaves_what_was_begun_in_the_queue() {
    let (site, gate) = (Site::start().await, Gate::start().await);
    let (worker, charge) = one_at_the_provider_and_one_waiting(&site, &gate).await;

    worker.signal("TERM").await;
    receive_elsewhere(site.sqs.queues()).await;
    worker.signal("INT").await;
    assert_eq!(worker.exit_code().await, Some(130));
    assert_eq!(site.sqs.queues().depth(QUEUE).unwrap().in_flight, 2, "nothing is deleted");
    drop(charge);
}
