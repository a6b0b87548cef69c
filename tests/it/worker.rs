//! The worker as a process: the command line against the stand-ins of local mode.
#![expect(clippy::unwrap_used, reason = "tests")]

mod gate;
mod health;
mod signals;

use std::{process::Stdio, time::Duration};

use charge_once::{
    backoff::Random,
    clock::Clock,
    gateway::simulated::{Script, Simulated},
    local::{dynamodb::DynamoDb, sqs_endpoint::SqsEndpoint},
    queue::memory::MemoryQueues,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

const TABLE: &str = "ledger";
const MAX_WAIT: Duration = Duration::from_secs(60);

struct Site {
    dynamodb: DynamoDb,
    provider: Simulated,
    sqs: SqsEndpoint,
}

impl Site {
    async fn start() -> Self {
        let dynamodb = DynamoDb::start(None).await.unwrap();
        dynamodb.create_table(TABLE).unwrap();
        let provider = Simulated::start(Clock::system(), Script::default()).await.unwrap();
        let queues = MemoryQueues::new(Clock::system(), Random::System);
        Self { dynamodb, provider, sqs: SqsEndpoint::start(queues).await.unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
        command.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command.envs([
            ("LEDGER_TABLE", TABLE),
            ("GATEWAY", "http"),
            ("GATEWAY_URL", &format!("{}/charges", self.provider.base_url().trim_end_matches('/'))),
            ("GATEWAY_SECRET", "sk_test_local"),
            ("QUEUE_URL", &self.sqs.queue_url("orders.fifo")),
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamodb.url()),
            ("AWS_ENDPOINT_URL_SQS", self.sqs.url()),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]);
        command
    }

    async fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A running worker and its log.
struct Running {
    child: Child,
    log: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(site: &Site, args: &[&str]) -> Self {
        Self::of(&mut site.command(args))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, log }
    }

    /// Reads the log until `count` of its lines are as asked for.
    async fn wait_for(&mut self, count: usize, mut is_it: impl FnMut(&Value) -> bool) {
        let mut seen = 0;
        while seen < count {
            let line = tokio::time::timeout(MAX_WAIT, self.log.next_line()).await.unwrap().unwrap().unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            seen += usize::from(is_it(&line));
        }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().await.unwrap().success());
    }

    async fn exit_code(mut self) -> Option<i32> {
        while let Ok(Some(_line)) = self.log.next_line().await {}
        self.child.wait().await.unwrap().code()
    }
}

#[tokio::test]
async fn orders_are_sent_charged_once_and_the_worker_ends_on_a_signal() {
    let site = Site::start().await;
    let created = site.json(&["queue", "create", "orders", "--fifo", "--json"]).await;
    assert!(created["dlq_url"].as_str().unwrap().ends_with("/orders-dlq.fifo"));
    let sent = site
        .json(&[
            "queue",
            "send",
            "orders.fifo",
            "--count",
            "60",
            "--duplicates",
            "20",
            "--seed",
            "3",
            "--json",
        ])
        .await;
    assert_eq!((&sent["sent"], &sent["refused"]), (&60.into(), &0.into()));
    let depth = site.json(&["queue", "depth", "orders.fifo", "--json"]).await;
    assert_eq!(depth["waiting"], 60);

    // One at a time: two groups that bring one order side by side would make one wait for the other's lease.
    let mut worker =
        Running::start(&site, &["worker", "--loops", "2", "--concurrency", "1", "--listen", "127.0.0.1:0"]);
    worker.wait_for(60, |line| line["decision"] == "ack").await;
    worker.signal("TERM").await;
    assert_eq!(worker.exit_code().await, Some(0));

    let depth = site.json(&["queue", "depth", "--json"]).await;
    assert_eq!((&depth["waiting"], &depth["in_flight"]), (&0.into(), &0.into()));
    let charges = site.provider.charges();
    let mut orders: Vec<_> = charges.iter().map(|charge| charge.order_id.clone()).collect();
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), charges.len(), "each order was charged once");
    assert!((40..60).contains(&charges.len()), "the rest were duplicates: {}", charges.len());
}

#[tokio::test]
async fn once_is_one_receive() {
    let site = Site::start().await;
    site.json(&["queue", "create", "orders.fifo", "--json"]).await;
    site.json(&["queue", "send", "orders.fifo", "--count", "15", "--json"]).await;
    let status = site.command(&["worker", "--once"]).stdout(Stdio::null()).status().await.unwrap();
    assert!(status.success());
    let depth = site.json(&["queue", "depth", "--json"]).await;
    assert_eq!((&depth["waiting"], &depth["in_flight"]), (&5.into(), &0.into()));
}
