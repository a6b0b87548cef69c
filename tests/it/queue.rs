//! The SQS client of the product against the SQS endpoint of local mode, over a real socket.
#![expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use aws_sdk_sqs::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    types::{MessageSystemAttributeName, QueueAttributeName},
};
use charge_once::{
    backoff::Random,
    clock::{Clock, Timestamp},
    local::sqs_endpoint::{SqsEndpoint, VisibilityCall, VisibilityFailure},
    queue::{
        MAX_BATCH, Outgoing, Queue, Receive, VisibilityChange, conformance,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy, SqsError},
        sqs::SqsQueue,
    },
    record::{ReceiptHandle, TextAttribute},
};

/// The endpoint on a clock that only the test moves, and clients of it.
struct Endpoint {
    sqs: SqsEndpoint,
    client: Client,
    queue: SqsQueue,
    now: Arc<AtomicI64>,
}

impl Endpoint {
    async fn start() -> Self {
        let now = Arc::new(AtomicI64::new(1_700_000_000_000));
        let read = Arc::clone(&now);
        let clock = Clock::from_fn(move || Timestamp::from_millis(read.load(Ordering::SeqCst)));
        let sqs = SqsEndpoint::start(MemoryQueues::new(clock, Random::seeded(1))).await.unwrap();
        let client = client(sqs.url());
        Self { queue: SqsQueue::new(client.clone()), client, sqs, now }
    }

    fn advance(&self, time: Duration) {
        self.now.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

pub(crate) fn client(url: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::for_tests())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled())
        .endpoint_url(url);
    Client::from_conf(config.build())
}

impl conformance::Fixture for Endpoint {
    type Queue = SqsQueue;
    const LONGEST_PASS: Duration = Duration::MAX;

    fn queue(&self) -> &SqsQueue {
        &self.queue
    }

    async fn create(&self, name: &str, attributes: &[(&str, &str)]) -> (String, String) {
        let mut call = self.client.create_queue().queue_name(name);
        for (name, value) in attributes {
            call = call.attributes(QueueAttributeName::from(*name), *value);
        }
        let url = call.send().await.unwrap().queue_url.unwrap();
        let arn = QueueAttributeName::QueueArn;
        let answer = self.client.get_queue_attributes().queue_url(&url).attribute_names(arn.clone());
        let arn = answer.send().await.unwrap().attributes.unwrap()[&arn].clone();
        (url, arn)
    }

    async fn pass(&self, time: Duration) {
        self.advance(time);
    }
}

fn text(body: &str) -> Outgoing {
    Outgoing { body: body.to_owned(), ..Outgoing::default() }
}

fn now_or_never() -> Receive {
    Receive { max_messages: 10, wait: Duration::ZERO, visibility: None }
}

#[tokio::test]
async fn the_client_conforms() {
    let left_out = conformance::run(&Endpoint::start().await).await;
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[tokio::test]
async fn an_unreachable_queue_has_no_code() {
    let queue = SqsQueue::new(client("http://127.0.0.1:1"));
    let error =
        queue.delete("http://127.0.0.1:1/0/q", &[ReceiptHandle::new("h").unwrap()]).await.unwrap_err();
    assert_eq!((error.operation, error.code), ("DeleteMessageBatch", None));
}

#[tokio::test]
async fn queues_are_found_by_name_and_by_any_url_that_ends_in_it() {
    let endpoint = Endpoint::start().await;
    endpoint.sqs.queues().create("orders", QueueSettings::standard()).unwrap();
    let found = endpoint.client.get_queue_url().queue_name("orders").send().await.unwrap();
    assert_eq!(found.queue_url.unwrap(), endpoint.sqs.queue_url("orders"));
    let missing = endpoint.client.get_queue_url().queue_name("other").send().await.unwrap_err();
    assert!(missing.into_service_error().is_queue_does_not_exist());
    let of_an_account = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders";
    assert!(endpoint.queue.send(of_an_account, &[text("1")]).await.unwrap()[0].is_ok());
    let listed = endpoint.client.list_queues().queue_name_prefix("ord").send().await.unwrap();
    assert_eq!(listed.queue_urls.unwrap(), [endpoint.sqs.queue_url("orders")]);
}

#[tokio::test]
async fn attributes_are_answered_and_changed() {
    let endpoint = Endpoint::start().await;
    endpoint.sqs.queues().create("q", QueueSettings::standard()).unwrap();
    let url = endpoint.sqs.queue_url("q");
    endpoint.queue.send(&url, &[text("1"), text("2"), text("3")]).await.unwrap();
    endpoint.queue.receive(&url, Receive { max_messages: 1, ..now_or_never() }).await.unwrap();
    let set = endpoint.client.set_queue_attributes().queue_url(&url);
    set.attributes(QueueAttributeName::VisibilityTimeout, "180").send().await.unwrap();
    let bad = endpoint.client.set_queue_attributes().queue_url(&url);
    let bad = bad.attributes(QueueAttributeName::VisibilityTimeout, "43201").send().await.unwrap_err();
    assert!(bad.into_service_error().is_invalid_attribute_value());

    let get = endpoint.client.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::All);
    let attributes = get.send().await.unwrap().attributes.unwrap();
    let value = |name| attributes[&name].as_str();
    assert_eq!(value(QueueAttributeName::VisibilityTimeout), "180");
    assert_eq!(value(QueueAttributeName::ApproximateNumberOfMessages), "2");
    assert_eq!(value(QueueAttributeName::ApproximateNumberOfMessagesNotVisible), "1");
    assert_eq!(value(QueueAttributeName::QueueArn), MemoryQueues::arn("q"));

    endpoint.client.purge_queue().queue_url(&url).send().await.unwrap();
    let depth = endpoint.sqs.queues().depth("q").unwrap();
    assert_eq!((depth.visible, depth.in_flight), (0, 0));
}

#[tokio::test]
async fn digests_and_attributes_come_as_asked_for() {
    let endpoint = Endpoint::start().await;
    endpoint.sqs.queues().create("q", QueueSettings::standard()).unwrap();
    let url = endpoint.sqs.queue_url("q");
    let attribute = |name: &str, value: &str| TextAttribute {
        name: name.to_owned(),
        data_type: "String".to_owned(),
        value: value.to_owned(),
    };
    let attributes =
        vec![attribute("order.kind", "b"), attribute("test_attribute_name_1", "test_attribute_value_1")];
    let message = Outgoing { attributes, ..text("hello") };
    endpoint.sqs.queues().send_one("q", message).unwrap();
    let receive = || endpoint.client.receive_message().queue_url(&url).visibility_timeout(0);

    let bare = receive().send().await.unwrap().messages.unwrap().remove(0);
    assert_eq!(bare.md5_of_body.as_deref(), Some("5d41402abc4b2a76b9719d911017c592"));
    assert!(bare.attributes.is_none() && bare.message_attributes.is_none());
    assert!(bare.md5_of_message_attributes.is_none());

    let some = receive().message_attribute_names("order.*");
    let some = some.message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
    let some = some.send().await.unwrap().messages.unwrap().remove(0);
    assert_eq!(some.attributes.unwrap().len(), 1);
    assert!(some.message_attributes.unwrap().contains_key("order.kind"));
    assert!(some.md5_of_message_attributes.is_some());
}

#[tokio::test]
async fn dead_letters_are_moved_back_by_a_task() {
    let endpoint = Endpoint::start().await;
    let queues = endpoint.sqs.queues();
    queues.create("dead", QueueSettings::standard()).unwrap();
    let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn("dead"), max_receive_count: 1 };
    queues.create("live", QueueSettings { redrive: Some(redrive), ..QueueSettings::standard() }).unwrap();
    let (live, dead) = (endpoint.sqs.queue_url("live"), endpoint.sqs.queue_url("dead"));
    endpoint.queue.send(&live, &[text("1"), text("2"), text("3")]).await.unwrap();
    let shown = Receive { visibility: Some(Duration::ZERO), ..now_or_never() };
    while !endpoint.queue.receive(&live, shown).await.unwrap().is_empty() {}

    let sources = endpoint.client.list_dead_letter_source_queues().queue_url(&dead).send().await.unwrap();
    assert_eq!(sources.queue_urls, std::slice::from_ref(&live));
    let arn = MemoryQueues::arn("dead");
    let start =
        endpoint.client.start_message_move_task().source_arn(&arn).max_number_of_messages_per_second(1);
    let handle = start.send().await.unwrap().task_handle.unwrap();
    endpoint.advance(Duration::from_secs(1));
    let list = || endpoint.client.list_message_move_tasks().source_arn(&arn).send();
    let task = list().await.unwrap().results.unwrap().remove(0);
    assert_eq!((task.status.as_deref(), task.task_handle.as_ref()), (Some("RUNNING"), Some(&handle)));
    assert_eq!(task.approximate_number_of_messages_moved, 2);
    assert_eq!(task.approximate_number_of_messages_to_move, Some(3));

    let cancel = || endpoint.client.cancel_message_move_task().task_handle(&handle).send();
    assert_eq!(cancel().await.unwrap().approximate_number_of_messages_moved, 2);
    assert!(cancel().await.unwrap_err().into_service_error().is_resource_not_found_exception());
    let task = list().await.unwrap().results.unwrap().remove(0);
    assert_eq!((task.status.as_deref(), task.task_handle), (Some("CANCELLED"), None));
    assert_eq!(endpoint.queue.receive(&live, now_or_never()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn visibility_changes_are_recorded_and_fail_on_request() {
    let endpoint = Endpoint::start().await;
    let url = "https://sqs.cn-north-1.amazonaws.com.cn/1/written-by-hand";
    let change = |handle: &str, seconds| VisibilityChange {
        receipt_handle: ReceiptHandle::new(handle).unwrap(),
        seconds,
    };
    let changes = [change("a", 0), change("b", 900)];
    let unknown = endpoint.queue.change_visibility(url, &changes).await.unwrap_err();
    assert_eq!(unknown.code.as_deref(), Some("QueueDoesNotExist"));

    endpoint.sqs.accept_unknown_visibility();
    let results = endpoint.queue.change_visibility(url, &changes).await.unwrap();
    assert_eq!(results, [Ok(()), Ok(())]);

    let lost = SqsError::ReceiptHandleIsInvalid("b".to_owned());
    endpoint.sqs.fail_visibility(VisibilityFailure::Entries(lost));
    let results = endpoint.queue.change_visibility(url, &changes[1..]).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap_err().code, "ReceiptHandleIsInvalid");
    endpoint.sqs.fail_visibility(VisibilityFailure::Calls(SqsError::OverLimit));
    let refused = endpoint.queue.change_visibility(url, &changes).await.unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("OverLimit"));

    endpoint.sqs.fail_visibility(None);
    assert!(endpoint.queue.change_visibility(url, &changes[..1]).await.unwrap()[0].is_ok());
    let call = |handle: &str, seconds| VisibilityCall {
        queue_url: url.to_owned(),
        receipt_handle: handle.to_owned(),
        seconds,
    };
    assert_eq!(
        endpoint.sqs.visibility_changes(),
        [call("a", 0), call("b", 900), call("b", 900), call("a", 0)]
    );
}

#[tokio::test]
async fn entry_ids_must_be_distinct_and_plain() {
    let endpoint = Endpoint::start().await;
    endpoint.sqs.queues().create("q", QueueSettings::standard()).unwrap();
    let entry = |id: &str| {
        let entry = aws_sdk_sqs::types::DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle("h");
        entry.build().unwrap()
    };
    let delete = |first: &str, second: &str| {
        let call = endpoint.client.delete_message_batch().queue_url(endpoint.sqs.queue_url("q"));
        call.entries(entry(first)).entries(entry(second)).send()
    };
    assert!(delete("a", "a").await.unwrap_err().into_service_error().is_batch_entry_ids_not_distinct());
    assert!(delete("a", "b c").await.unwrap_err().into_service_error().is_invalid_batch_entry_id());
}

#[tokio::test]
async fn a_long_queue_drains_completely() {
    const COUNT: usize = 5_000;
    let endpoint = Endpoint::start().await;
    endpoint.sqs.queues().create("q", QueueSettings::standard()).unwrap();
    let url = endpoint.sqs.queue_url("q");
    let messages: Vec<_> = (0..COUNT).map(|n| text(&n.to_string())).collect();
    for batch in messages.chunks(MAX_BATCH) {
        assert!(endpoint.queue.send(&url, batch).await.unwrap().iter().all(Result::is_ok));
    }
    let drain = || async {
        let mut seen = BTreeMap::new();
        loop {
            let received = endpoint.queue.receive(&url, now_or_never()).await.unwrap();
            if received.is_empty() {
                return seen;
            }
            let handles: Vec<_> = received.iter().map(|message| message.receipt_handle.clone()).collect();
            endpoint.queue.delete(&url, &handles).await.unwrap();
            seen.extend(received.into_iter().map(|message| (message.id, message.body)));
        }
    };
    let (a, b, c, d) = tokio::join!(drain(), drain(), drain(), drain());
    assert_eq!(a.len() + b.len() + c.len() + d.len(), COUNT, "each handed out once");
    assert_eq!(endpoint.sqs.queues().depth("q").unwrap().in_flight, 0);
}
