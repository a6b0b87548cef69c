//! The operator's commands through the real binary, against the SQS endpoint and the embedded DynamoDB.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    process::{Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use charge_once::{
    backoff::Random,
    clock::{Clock, Timestamp},
    local::{dynamodb::DynamoDb, sqs_endpoint::SqsEndpoint},
    order::{Order, OrderRules},
    queue::{
        Message, Outgoing, Receive,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy},
    },
    record::TextAttribute,
};
use serde_json::{Value, json};
use tokio::process::Command;

mod dlq;
mod doctor;
mod edit;
mod ledger;
mod losses;
mod messages;
mod native;
mod runbook;

pub(crate) const TABLE: &str = "ledger";
const RULES: OrderRules = OrderRules { default_currency: None, max_amount_minor: i64::MAX };

/// Queues and a ledger, and the tool that works on them.
pub(crate) struct Bench {
    pub(crate) sqs: SqsEndpoint,
    dynamodb: DynamoDb,
    /// How far the queues' clock is ahead of the machine's, in milliseconds.
    ahead: Arc<AtomicI64>,
    /// `orders-dlq` or `orders-dlq.fifo`.
    pub(crate) dlq: &'static str,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        Self::with(QueueSettings::standard(), "orders", "orders-dlq").await
    }

    pub(crate) async fn fifo() -> Self {
        Self::with(QueueSettings::fifo(), "orders.fifo", "orders-dlq.fifo").await
    }

    pub(crate) async fn with(settings: QueueSettings, orders: &str, dlq: &'static str) -> Self {
        let ahead = Arc::new(AtomicI64::new(0));
        let (offset, system) = (Arc::clone(&ahead), Clock::system());
        let clock = Clock::from_fn(move || {
            Timestamp::from_millis(system.now().as_millis() + offset.load(Ordering::SeqCst))
        });
        let queues = MemoryQueues::new(clock, Random::seeded(1));
        queues.create(dlq, settings.clone()).unwrap();
        let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn(dlq), max_receive_count: 1 };
        queues.create(orders, QueueSettings { redrive: Some(redrive), ..settings }).unwrap();
        let sqs = SqsEndpoint::start(queues).await.unwrap();
        let dynamodb = DynamoDb::start(None).await.unwrap();
        dynamodb.create_table(TABLE).unwrap();
        Self { sqs, dynamodb, ahead, dlq }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
        self.environment(command.args(args));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// What an operator has set before typing.
    pub(crate) fn environment(&self, command: &mut Command) {
        let orders = self.dlq.replace("-dlq", "");
        command
            .env("AWS_ENDPOINT_URL_SQS", self.sqs.url())
            .env("AWS_ENDPOINT_URL_DYNAMODB", self.dynamodb.url())
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("LEDGER_TABLE", TABLE)
            .env("DLQ_URL", self.sqs.queue_url(self.dlq))
            .env("QUEUE_URL", self.sqs.queue_url(&orders))
            .env("USER", "alex");
    }

    /// Runs the command to its end.
    async fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().await.unwrap()
    }

    /// The command's JSON; it must succeed.
    async fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args).await;
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Puts a message into the dead-letter queue as the function does.
    fn bury(&self, body: &str, reason: Option<&str>) {
        let attributes = reason.map(|reason| attribute("reason", reason)).into_iter().collect();
        let message = Outgoing { body: body.to_owned(), attributes, ..Outgoing::default() };
        self.sqs.queues().send_one(self.dlq, message).unwrap();
    }

    /// Writes a record of the order; `more` goes on top.
    pub(crate) fn record(&self, body: &str, state: &str, more: Value) {
        let order = Order::parse(body, &RULES).unwrap();
        let mut row = json!({
            "pk": format!("order#{}", order.id()), "version": 1, "state": state, "owner": "token", "fence": 1,
            "attempt": 1, "fingerprint": order.fingerprint(), "amount_minor": order.money().minor(),
            "currency": "EUR", "provider": "http:default", "handle_generation": 0, "first_seen_at": 1000,
            "state_changed_at": 2000, "receive_count": 1,
        });
        let members = row.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.dynamodb.put(TABLE, members).unwrap();
    }

    fn depth(&self, queue: &str) -> usize {
        self.sqs.queues().depth(queue).unwrap().visible
    }

    /// Everything that can be received now, gone from the queue afterwards.
    pub(crate) async fn drain(&self, queue: &str) -> Vec<Message> {
        let mut drained = Vec::new();
        loop {
            let messages = self.receive(queue, Duration::ZERO).await;
            if messages.is_empty() {
                return drained;
            }
            drained.extend(messages);
        }
    }

    pub(crate) async fn receive(&self, queue: &str, wait: Duration) -> Vec<Message> {
        let receive = Receive { max_messages: 10, wait, visibility: None };
        let messages = self.sqs.queues().receive_from(queue, receive).await.unwrap();
        for message in &messages {
            self.sqs.queues().delete_one(queue, &message.receipt_handle).unwrap();
        }
        messages
    }

    fn advance(&self, time: Duration) {
        self.ahead.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn row(&self, order_id: &str) -> Value {
        let pk = json!(format!("order#{order_id}"));
        let rows = self.dynamodb.rows(TABLE).unwrap();
        rows.into_iter().find(|row| row["pk"] == pk).unwrap().into()
    }
}

pub(crate) fn order(id: &str) -> String {
    format!(r#"{{"order_id":"{id}","amount":49.90,"currency":"EUR"}}"#)
}

fn order_id(message: &Message) -> String {
    Order::parse(&message.body, &RULES).unwrap().id().to_string()
}

fn attribute(name: &str, value: &str) -> TextAttribute {
    TextAttribute { name: name.to_owned(), data_type: "String".to_owned(), value: value.to_owned() }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
