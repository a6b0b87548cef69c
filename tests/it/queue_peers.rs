//! Emulators of SQS that other people wrote, as a second opinion on our own queue and on the commands that move dead
//! letters. `make peers` starts them and names them in the environment. Where they and we differ, AWS's documents
//! decide; the differences are in `docs/peers.md`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::time::{Duration, Instant};

use aws_sdk_sqs::{
    Client,
    types::{QueueAttributeName, SendMessageBatchRequestEntry},
};
use charge_once::{
    backoff::Random,
    queue::{
        conformance::{self, Fixture},
        sqs::SqsQueue,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::queue::client;

/// What ministack 1.5.33 does otherwise than SQS documents; each is a row of `docs/peers.md`.
const MINISTACK_DIFFERS: [&str; 7] = [
    "an_outdated_handle_deletes_nothing",
    "a_message_that_shows_again_is_not_in_flight",
    "deleting_twice_succeeds",
    "an_expired_handle_is_refused",
    "a_dead_letter_starts_anew",
    "more_than_twelve_hours_is_an_error",
    "receives_are_bounded",
];

/// The URL in a variable that `scripts/peers` sets.
#[expect(clippy::disallowed_methods, reason = "names the process that scripts/peers started")]
fn peer(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `make peers`"))
}

/// A server of others, with queues of our own names.
struct Emulator {
    url: String,
    client: Client,
    queue: SqsQueue,
    run: String,
}

impl Emulator {
    fn at(variable: &str) -> Self {
        let url = peer(variable);
        let client = client(&url);
        Self { url, queue: SqsQueue::new(client.clone()), client, run: Random::System.token() }
    }

    async fn arn(&self, url: &str) -> String {
        self.attribute(url, QueueAttributeName::QueueArn).await
    }

    async fn attribute(&self, url: &str, name: QueueAttributeName) -> String {
        let answer = self.client.get_queue_attributes().queue_url(url).attribute_names(name.clone());
        answer.send().await.unwrap().attributes.unwrap()[&name].clone()
    }

    async fn depth(&self, url: &str) -> usize {
        let text = self.attribute(url, QueueAttributeName::ApproximateNumberOfMessages).await;
        text.parse().unwrap()
    }

    /// A queue, its dead-letter queue and so many letters in that.
    async fn cemetery(&self, letters: usize) -> (String, String) {
        let (dlq, arn) = self.create("dlq", &[]).await;
        let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 1 }).to_string();
        let (orders, _) = self.create("orders", &[("RedrivePolicy", &policy)]).await;
        let bodies: Vec<String> =
            (0..letters).map(|n| format!(r#"{{"order_id":"o-{n}","amount":1,"currency":"EUR"}}"#)).collect();
        for bodies in bodies.chunks(10) {
            let entries = bodies.iter().enumerate().map(|(place, body)| {
                let entry = SendMessageBatchRequestEntry::builder().id(place.to_string());
                entry.message_body(body).build().unwrap()
            });
            let call = self.client.send_message_batch().queue_url(&dlq).set_entries(Some(entries.collect()));
            assert!(call.send().await.unwrap().failed.is_empty());
        }
        (dlq, orders)
    }

    /// Our own command line.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
        command.args(["dlq", "--endpoint-url", &self.url, "--region", "us-east-1", "--json"]).args(args);
        command
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("LEDGER_TABLE", "none")
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Fixture for Emulator {
    type Queue = SqsQueue;
    const LONGEST_PASS: Duration = Duration::from_secs(5);

    fn queue(&self) -> &SqsQueue {
        &self.queue
    }

    async fn create(&self, name: &str, attributes: &[(&str, &str)]) -> (String, String) {
        let mut call = self.client.create_queue().queue_name(format!("{}-{name}", self.run));
        for (name, value) in attributes {
            call = call.attributes(QueueAttributeName::from(*name), *value);
        }
        let url = call.send().await.unwrap().queue_url.unwrap();
        let arn = self.arn(&url).await;
        (url, arn)
    }

    /// Its clock is the machine's.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs ministack: make peers"]
#[expect(clippy::print_stdout, reason = "what was judged is the result")]
async fn ministack_passes_what_our_queues_pass() {
    let (verdicts, words) = quietly(conformance::judge(&Emulator::at("MINISTACK_URL"))).await;
    println!("passed {}, differs in {:?}", verdicts.passed.len(), verdicts.failed);
    println!("left out for want of time: {:?}", verdicts.left_out);
    assert_eq!(verdicts.failed, MINISTACK_DIFFERS, "{}", words.join("\n"));
}

/// Keeps what panics say, because most of the checks that fail are expected to. No other test may run meanwhile.
async fn quietly<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    let (say, said) = std::sync::mpsc::channel();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| drop(say.send(panic.to_string()))));
    let done = work.await;
    std::panic::set_hook(before);
    (done, said.try_iter().collect())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs localemu: make peers"]
async fn a_native_redrive_moves_all_of_a_queue_of_others() {
    let emulator = Emulator::at("LOCALEMU_URL");
    let (dlq, orders) = emulator.cemetery(50).await;
    let args = ["redrive", "--native", "--dlq-url", &dlq, "--to", &orders, "--confirm"];
    let output = emulator.command(&args).output().await.unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&ended["status"], &ended["moved"]), (&json!("COMPLETED"), &json!(50)), "{ended}");
    assert_eq!((emulator.depth(&dlq).await, emulator.depth(&orders).await), (0, 50));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs localemu: make peers"]
async fn a_native_redrive_of_others_is_watched_and_cancelled() {
    let emulator = Emulator::at("LOCALEMU_URL");
    let (dlq, orders) = emulator.cemetery(100).await;
    let args = ["redrive", "--native", "--dlq-url", &dlq, "--to", &orders, "--rate", "5", "--confirm"];
    let watching = emulator.command(&args).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while emulator.depth(&orders).await == 0 {
        assert!(Instant::now() < patience, "the task moves");
    }
    let cancel = emulator.command(&["cancel", "--dlq-url", &dlq, "--confirm"]).output().await.unwrap();
    let cancelled: Value = serde_json::from_slice(&cancel.stdout).unwrap();
    assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
    let output = watching.wait_with_output().await.unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["status"], "CANCELLED", "{seen}");
    let left = emulator.depth(&dlq).await;
    assert!((1..100).contains(&left), "{left}");
    assert_eq!(left + emulator.depth(&orders).await, 100, "nothing is lost");
}
