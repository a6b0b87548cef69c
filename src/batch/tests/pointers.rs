//! Records whose body lies in S3: each way of not getting it is a decision of its own.

use super::*;
use crate::{
    envelope::S3Pointer,
    payload::{Fetching, PayloadError},
};

fn pointing(position: usize, bucket: &str, key: &str) -> Record {
    let body = format!(
        r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{{"s3BucketName":"{bucket}","s3Key":"{key}"}}]"#
    );
    Record { body: Ok(body), ..record(position, "", None, false) }
}

/// Objects whose key says what they hold; a `down` one fails, a `hang` one never comes.
fn object(S3Pointer { s3_key, .. }: S3Pointer) -> Fetching {
    let pointer = pointing(0, "ours", "good-1").body.unwrap();
    Box::pin(async move {
        Ok(match s3_key.as_str() {
            "down" => return Err(PayloadError::Unavailable("503".into())),
            "hang" => std::future::pending().await,
            "pointer" => pointer.into_bytes(),
            "test-event" => br#"{"Event":"s3:TestEvent"}"#.to_vec(),
            "eventbridge" => {
                br#"{"detail-type":"t","source":"s","detail":{"order_id":"good-9","amount":1,"currency":"EUR"}}"#
                    .to_vec()
            }
            order => format!(r#"{{"order_id":"{order}","amount":1,"currency":"EUR"}}"#).into_bytes(),
        })
    })
}

async fn run_at(step: &Script, rules: &BatchRules, records: Vec<Record>, now: i64) -> BatchResult {
    let payloads = Payloads::new(vec!["ours".to_owned()], Arc::new(object));
    let (clock, queue) = (Clock::from_fn(move || Timestamp::from_millis(now)), Dlq::default());
    let batch = Batch { step, queue: &queue, payloads: &payloads, rules, clock: &clock, deadline: DEADLINE };
    batch.run(records).await
}

async fn reasons_of(keys: &[&str]) -> Vec<String> {
    let records = keys.iter().enumerate().map(|(position, key)| pointing(position, "ours", key)).collect();
    reasons(&run_at(&Script::default(), &rules(), records, 0).await)
}

#[tokio::test(start_paused = true)]
async fn an_order_in_s3_is_charged_like_any_other() {
    let keys = ["good-1", "eventbridge", "pointer", "test-event", "down", "hang"];
    let expected = [
        "CHARGED",
        "CHARGED",
        "PAYLOAD_UNUSABLE",
        "S3_TEST_EVENT",
        "PAYLOAD_UNAVAILABLE",
        "PAYLOAD_UNAVAILABLE",
    ];
    assert_eq!(reasons_of(&keys).await, expected);
}

#[tokio::test]
async fn an_order_in_s3_shares_the_lane_of_its_order() {
    let step = Script { gate: Some(Arc::new(Semaphore::new(0))), ..Script::default() };
    let rules = rules();
    let records = vec![record(0, "good-1", None, false), pointing(1, "ours", "good-1")];
    let batch = run_at(&step, &rules, records, 0);
    tokio::pin!(batch);
    assert!(batch.as_mut().now_or_never().is_none());
    assert_eq!(step.seen(), ["good-1"], "the second waits for the first");
    step.gate.as_ref().unwrap().add_permits(9);
    assert_eq!(reasons(&batch.await), ["CHARGED"; 2]);
}

#[tokio::test]
async fn without_time_for_a_charge_nothing_is_read() {
    let records = vec![pointing(0, "ours", "good-1"), pointing(1, "theirs", "good-1")];
    let result = run_at(&Script::default(), &rules(), records, DEADLINE.as_millis() - 12_000).await;
    assert_eq!(reasons(&result), ["NOT_STARTED:DEADLINE", "S3_POINTER_NOT_ALLOWED"]);
}

#[tokio::test]
async fn a_pointer_that_cannot_be_read_holds_its_fifo_group() {
    let group = |mut record: Record, name: &str| {
        record.queue = QueueArn::parse("arn:aws:sqs:eu-west-1:1:orders.fifo").map(Arc::new);
        record.group = MessageGroupId::new(name);
        record
    };
    let records = vec![
        group(pointing(0, "ours", "down"), "a"),
        group(pointing(1, "ours", "good-1"), "a"),
        group(pointing(2, "ours", "good-2"), "b"),
    ];
    let result = run_at(&Script::default(), &rules(), records, 0).await;
    assert_eq!(reasons(&result), ["PAYLOAD_UNAVAILABLE", "NOT_STARTED:GROUP", "CHARGED"]);
}

#[tokio::test]
async fn an_outage_of_s3_says_nothing_about_orders_that_lie_elsewhere() {
    let one_at_a_time = BatchRules { concurrency: 1, ..rules() };
    let mut records: Vec<Record> = (0..4).map(|position| pointing(position, "ours", "down")).collect();
    records.push(record(4, "good-1", None, false));
    let result = run_at(&Script::default(), &one_at_a_time, records, 0).await;
    assert_eq!(reasons(&result)[3..], ["PAYLOAD_UNAVAILABLE", "CHARGED"]);
    assert!(!result.breaker_opened);
    assert_eq!(result.judged[0].outcome.facts.health, Health::Failing, "a worker pauses");
}
