//! `charge-once local --queue`: the whole life of many orders through the real function, with faults and kills.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Stdio;

use charge_once::backoff::Random;
use serde_json::Value;
use tokio::process::Command;

/// The result of a rehearsal that must find every order in exactly one place.
async fn rehearse(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(["local", "--json", "--bootstrap", env!("CARGO_BIN_EXE_bootstrap")])
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

fn count(result: &Value, name: &str) -> u64 {
    result[name].as_u64().unwrap()
}

/// Whatever goes wrong in between: each order has one place, and each poison message is in the DLQ.
fn assert_accounted(result: &Value) {
    let places = ["charged", "declined", "held", "unsettled"];
    let sum: u64 = places.iter().map(|place| count(result, place)).sum();
    assert_eq!(sum, count(result, "orders"), "{result:#}");
    assert!(count(result, "poison") > 0, "{result:#}");
}

#[tokio::test]
async fn without_faults_every_order_is_charged_at_its_first_delivery() {
    let args = ["--queue", "200", "--duplicates", "10%", "--poison", "2%"];
    let result = rehearse(&args).await;
    assert_accounted(&result);
    assert_eq!(count(&result, "charged"), count(&result, "orders"));
    assert!(count(&result, "orders") < 200 - count(&result, "poison"), "{result:#}");
    assert_eq!((count(&result, "without_answer"), count(&result, "kills")), (0, 0));
}

/// The sum of a metric over all lines of a log that have the dimension's value.
fn sum(log: &[Value], dimension: (&str, &str), metric: &str) -> u64 {
    let (name, value) = dimension;
    log.iter().filter(|line| line[name] == value).filter_map(|line| line[metric].as_u64()).sum()
}

#[tokio::test]
async fn the_log_holds_the_metrics_of_function_queue_and_mapping_and_they_add_up() {
    let path = std::env::temp_dir().join(format!("charge-once-test-{}.log", Random::System.token()));
    let args = ["--queue", "60", "--duplicates", "10%", "--poison", "5%", "--faults", "decline=10%", "--log"];
    let result = rehearse(&[&args[..], &[path.to_str().unwrap()]].concat()).await;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let log: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    assert_eq!(sum(&log, ("service", "charge-once"), "Charged"), count(&result, "charged"));
    let queue = ("QueueName", "orders");
    assert_eq!(sum(&log, queue, "NumberOfMessagesSent"), count(&result, "messages"));
    assert_eq!(sum(&log, queue, "NumberOfMessagesReceived"), count(&result, "deliveries"));
    let mapping = ("EventSourceMappingUUID", "orders-mapping");
    let [kept, deleted] =
        ["FailedInvokeEventCount", "DeletedEventCount"].map(|name| sum(&log, mapping, name));
    assert_eq!(kept + deleted, count(&result, "deliveries"));
    let dead = log.iter().rfind(|line| line["QueueName"] == "orders-dlq").unwrap();
    assert_eq!(deleted + count(dead, "ApproximateNumberOfMessagesVisible"), count(&result, "messages"));
}

#[tokio::test]
async fn with_faults_and_kills_no_order_is_lost_or_charged_twice() {
    let faults = "decline=3%,500=3%,sticky-500=1%,timeout-after-charge=2%,reset-after-charge=3%,late=1%,forget-keys=1%";
    let args = ["--queue", "300", "--duplicates", "5%", "--poison", "2%", "--kill-every", "4s"];
    let result = rehearse(&[&args[..], &["--faults", faults]].concat()).await;
    assert_accounted(&result);
    assert!(count(&result, "kills") > 0 && count(&result, "declined") > 0, "{result:#}");
    assert!(count(&result, "deliveries") > count(&result, "messages"), "{result:#}");
}

#[tokio::test]
async fn a_fifo_group_is_charged_in_order_whatever_fails() {
    let faults = "decline=2%,500=3%,reset-after-charge=3%";
    let args = ["--queue", "150", "--fifo", "--duplicates", "5%", "--poison", "2%", "--faults", faults];
    let result = rehearse(&args).await;
    assert_accounted(&result);
    assert_eq!(result["out_of_order"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn the_one_shot_gateway_is_exact_while_the_provider_keeps_its_keys() {
    let faults = "500=3%,timeout-after-charge=2%,reset-after-charge=3%";
    let args = ["--queue", "150", "--gateway", "http", "--poison", "2%", "--faults", faults];
    let result = rehearse(&args).await;
    assert_accounted(&result);
    assert_eq!(count(&result, "charged"), count(&result, "orders"), "{result:#}");
}

#[tokio::test]
async fn the_worker_loses_nothing_and_charges_nothing_twice_either() {
    let faults = "decline=3%,500=3%,timeout-after-charge=2%,reset-after-charge=3%,forget-keys=1%";
    let args = ["--queue", "80", "--worker", "--duplicates", "5%", "--poison", "3%", "--kill-every", "9s"];
    let result = rehearse(&[&args[..], &["--faults", faults]].concat()).await;
    assert_accounted(&result);
    assert!(count(&result, "deliveries") > 0, "{result:#}");
}
