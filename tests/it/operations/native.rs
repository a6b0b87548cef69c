//! SQS's own move task, started, watched and cancelled.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, order, text};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_native_redrive_is_watched_to_its_end() {
    let bench = Bench::start().await;
    for n in 0..20 {
        bench.bury(&order(&format!("o-{n}")), None);
    }
    let to = bench.sqs.queue_url("orders");
    let redrive = ["dlq", "redrive", "--native", "--to", &to];
    let dry = text(&bench.run(&redrive).await.stdout);
    assert_eq!(dry, "20 messages would be moved, as fast as SQS likes. Nothing was changed; add --confirm\n");
    let done = bench.json(&[&redrive[..], &["--confirm", "--json"]].concat()).await;
    assert_eq!((&done["status"], &done["moved"]), (&json!("COMPLETED"), &json!(20)));
    assert_eq!((bench.depth("orders-dlq"), bench.depth("orders")), (0, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_redrive_is_cancelled() {
    let bench = Bench::start().await;
    for n in 0..100 {
        bench.bury(&order(&format!("o-{n}")), None);
    }
    let to = bench.sqs.queue_url("orders");
    let redrive = ["dlq", "redrive", "--native", "--to", &to, "--rate", "5", "--confirm", "--json"];
    let watching = bench.command(&redrive).spawn().unwrap();
    assert!(!bench.receive("orders", LONG).await.is_empty(), "the task moves");

    let shown = text(&bench.run(&["dlq", "cancel"]).await.stdout);
    assert!(shown.starts_with("A task runs. Nothing was changed; add --confirm\nRUNNING: "), "{shown}");
    let cancelled = bench.json(&["dlq", "cancel", "--confirm", "--json"]).await;
    assert_eq!(cancelled["status"], "CANCELLED");
    let output = watching.wait_with_output().await.unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen, cancelled, "whoever watched it sees how it ended");
    let moved = usize::try_from(cancelled["moved"].as_u64().unwrap()).unwrap();
    assert!((1..100).contains(&moved), "{moved}");
    assert_eq!(bench.depth("orders-dlq"), 100 - moved);
}
