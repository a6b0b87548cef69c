//! Orders in S3 beyond the behaviour cases: through the worker, and through the settings alone.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        log::RecordLine,
        stack::{Stack, StackConfig},
        worker_process::WorkerCommand,
    },
    queue::{Outgoing, memory::QueueSettings},
};
use serde_json::json;

use crate::support::s3::{FakeS3, Object};

const MAX_WAIT: Duration = Duration::from_secs(60);

fn config(s3: &FakeS3, buckets: &str) -> StackConfig {
    StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        script: Script::default(),
        data: None,
        log: None,
        settings: [
            ("PAYLOAD_BUCKETS".to_owned(), buckets.to_owned()),
            ("AWS_ENDPOINT_URL_S3".to_owned(), s3.url()),
        ]
        .into(),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    }
}

#[tokio::test]
async fn the_worker_reads_orders_from_s3_too() {
    let order = json!({"order_id": "o-s3-worker", "amount": 5, "currency": "EUR"}).to_string();
    let s3 = FakeS3::start(BTreeMap::from([("shop-payloads/k".to_owned(), Object::Text(order))])).await;
    let stack = Stack::without_function(config(&s3, "shop-payloads")).await.unwrap();
    stack.queues().create("orders", QueueSettings::standard()).unwrap();
    for key in ["k", "gone"] {
        let pointer = json!({"s3BucketName": "shop-payloads", "s3Key": key});
        let body = json!(["software.amazon.payloadoffloading.PayloadS3Pointer", pointer]).to_string();
        stack.queues().send_one("orders", Outgoing { body, ..Outgoing::default() }).unwrap();
    }
    let command = WorkerCommand {
        charge_once: PathBuf::from(env!("CARGO_BIN_EXE_charge-once")),
        queue: "orders",
        loops: 1,
        visibility: Duration::from_secs(30),
    };
    let mut worker = command.start(&stack).unwrap();
    let decided = async {
        let mut reasons = Vec::new();
        while !["CHARGED", "PAYLOAD_UNUSABLE"].iter().all(|it| reasons.iter().any(|reason| reason == it)) {
            let log = stack.take_log().unwrap();
            reasons.extend(
                log.iter().filter_map(|line| RecordLine::parse(line)).map(|line| line.text("reason")),
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, decided).await.unwrap();
    assert_eq!(stack.charges().len(), 1);
    worker.kill().await.unwrap();
}

/// A bad name of a bucket stops the start with the variable's name.
#[tokio::test]
async fn a_bucket_that_is_none_stops_the_start() {
    let s3 = FakeS3::start(BTreeMap::new()).await;
    let error = Stack::start(config(&s3, "s3://shop-payloads")).await.unwrap_err();
    let error = charge_once::telemetry::ErrorChain(&error).to_string();
    assert!(error.contains("PAYLOAD_BUCKETS must be names of buckets"), "{error}");
}
