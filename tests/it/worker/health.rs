//! `--listen`: what Prometheus reads is what CloudWatch reads.

use std::collections::BTreeMap;

use charge_once::metrics::Counts;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Running, Site};

async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// `charge_once_charged_not_recorded_total 1` as `("chargednotrecorded", 1)`.
fn counters(metrics: &str) -> BTreeMap<String, u64> {
    let counter = |line: &str| {
        let (name, count) = line.strip_prefix("charge_once_")?.split_once("_total ")?;
        Some((name.replace('_', ""), count.parse().unwrap()))
    };
    metrics.lines().filter_map(counter).collect()
}

#[tokio::test]
async fn the_endpoint_shows_the_sums_of_the_metrics_lines() {
    let site = Site::start().await;
    site.json(&["queue", "create", "orders.fifo", "--json"]).await;
    let orders = ["--count", "40", "--duplicates", "20", "--seed", "3", "--json"];
    site.json(&[&["queue", "send", "orders.fifo"], &orders[..]].concat()).await;
    // One at a time, so that no order waits for a lease and every message is received once.
    let mut worker = Running::start(&site, &["worker", "--concurrency", "1", "--listen", "127.0.0.1:0"]);

    let mut address = String::new();
    let mut sums = BTreeMap::<String, u64>::new();
    let all_are_counted = |line: &Value| {
        if line["message"] == "health and metrics are served" {
            line["address"].as_str().unwrap().clone_into(&mut address);
        }
        for name in Counts::NAMES {
            *sums.entry(name.to_lowercase()).or_default() += line[*name].as_u64().unwrap_or_default();
        }
        sums["records"] == 40
    };
    worker.wait_for(1, all_are_counted).await;

    assert!(get(&address, "/healthz").await.starts_with("HTTP/1.1 200"));
    let mut served = counters(&get(&address, "/metrics").await);
    served.retain(|name, _| sums.contains_key(name));
    assert_eq!(served, sums);
    assert_eq!((served["charged"] + served["duplicate"], served["duplicate"] > 0), (40, true));
    worker.signal("TERM").await;
    assert_eq!(worker.exit_code().await, Some(0));
}
