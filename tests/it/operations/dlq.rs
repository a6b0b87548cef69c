//! A thousand dead letters of five kinds: grouped, sent back by kind, also by a tool that was killed on the way.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use charge_once::{backoff::Random, queue::Outgoing, record::MessageGroupId};
use serde_json::{Value, json};

use super::{Bench, attribute, order, order_id, text};

const EACH: usize = 200;
const LONG: Duration = Duration::from_secs(20);

/// Declined, paid, held, in doubt, and no order at all: 200 of each.
async fn cemetery() -> Bench {
    let bench = Bench::start().await;
    for n in 0..EACH {
        let [declined, paid, held, doubt] =
            ["declined", "paid", "held", "doubt"].map(|kind| order(&format!("{kind}-{n}")));
        bench.record(&declined, "DECLINED", json!({ "error": "card_declined" }));
        bench.record(&paid, "PAID", json!({ "charge_id": format!("ch_{n}") }));
        bench.record(&held, "HELD", json!({ "held_reason": "UNKNOWN_EXPIRED", "attention": "HELD" }));
        bench.record(&doubt, "SENT", json!({ "lease_until": 0, "attention": "UNSETTLED" }));
        bench.bury(&declined, Some("DECLINED:card_declined"));
        bench.bury(&paid, None);
        bench.bury(&held, None);
        bench.bury(&doubt, None);
        bench.bury("not json", None);
    }
    bench
}

fn counts(stats: &Value) -> Vec<(&str, u64, String)> {
    let groups = stats["groups"].as_array().unwrap().iter();
    groups
        .map(|group| {
            let reason = group["reason"].as_str().unwrap();
            (reason, group["messages"].as_u64().unwrap(), group["ledger"].to_string())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_letters_are_grouped_and_stay() {
    let bench = cemetery().await;
    let stats = bench.json(&["dlq", "stats", "--json"]).await;
    assert_eq!(
        counts(&stats),
        [
            ("BODY_NOT_JSON", 200, r#"{"no-order":200}"#.to_owned()),
            ("DECLINED:card_declined", 200, r#"{"declined":200}"#.to_owned()),
            ("HELD:UNKNOWN_EXPIRED", 200, r#"{"held":200}"#.to_owned()),
            ("PAID", 200, r#"{"paid":200}"#.to_owned()),
            ("UNSETTLED", 200, r#"{"unsettled":200}"#.to_owned()),
        ]
    );
    assert_eq!(bench.depth("orders-dlq"), 1000, "looking leaves everything visible");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_kind_goes_back_and_nothing_else() {
    let bench = cemetery().await;
    let to = bench.sqs.queue_url("orders");
    let redrive = ["dlq", "redrive", "--json", "--to", &to];

    let dry = bench.json(&redrive).await;
    assert_eq!((&dry["dry_run"], &dry["seen"], &dry["sent"]), (&json!(true), &json!(1000), &json!(600)));
    for (list, kind) in [("paid_left", "paid"), ("refused", "held"), ("unsettled", "doubt")] {
        let names: Vec<&str> = dry[list].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(names.len(), EACH);
        assert!(names.iter().all(|name| name.starts_with(kind)), "{list}: {names:?}");
    }
    assert_eq!((bench.depth("orders-dlq"), bench.depth("orders")), (1000, 0), "a dry run changes nothing");

    let declined = [&redrive[..], &["--filter", "reason=DECLINED", "--confirm"]].concat();
    let sent = bench.json(&declined).await;
    assert_eq!((&sent["sent"], &sent["failed"]), (&json!(200), &json!([])));
    let arrived = bench.drain("orders").await;
    let orders: BTreeSet<String> = arrived.iter().map(order_id).collect();
    let wanted: BTreeSet<String> = (0..EACH).map(|n| format!("declined-{n}")).collect();
    assert_eq!((arrived.len(), orders), (EACH, wanted));
    assert_eq!(bench.depth("orders-dlq"), 800);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_killed_in_the_middle_loses_nothing_and_sends_no_paid_order() {
    let bench = cemetery().await;
    let to = bench.sqs.queue_url("orders");
    let redrive = ["dlq", "redrive", "--filter", "reason=UNSETTLED", "--to", &to, "--confirm", "--json"];

    let mut first = bench.command(&[&redrive[..], &["--rate", "100"]].concat()).spawn().unwrap();
    let mut arrived = Vec::new();
    while arrived.len() < 30 {
        arrived.extend(bench.receive("orders", LONG).await);
    }
    first.kill().await.unwrap();
    arrived.extend(bench.drain("orders").await);
    assert!(arrived.len() < EACH, "it was killed before its end");
    // The consumer has charged what arrived.
    let charged: BTreeSet<String> = arrived.iter().map(order_id).collect();
    for id in &charged {
        bench.record(&order(id), "PAID", json!({ "charge_id": "ch_1" }));
    }
    bench.advance(Duration::from_secs(301));

    let second = bench.json(&redrive).await;
    let later: BTreeSet<String> = bench.drain("orders").await.iter().map(order_id).collect();
    assert_eq!(charged.intersection(&later).count(), 0, "no paid order is sent");
    assert_eq!(charged.union(&later).count(), EACH, "no order is lost");
    // A letter of a paid order is no longer UNSETTLED, so the filter does not even mean it.
    assert_eq!((&second["sent"], &second["paid_left"]), (&json!(later.len()), &json!([])));
    let in_both = bench.depth("orders-dlq") - 4 * EACH;
    assert!(in_both <= 10, "at most one batch was sent and not yet deleted: {in_both}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_and_group_are_kept_and_the_death_moves_aside() {
    let bench = Bench::fifo().await;
    let send = |queue: &str, attributes| {
        let message = Outgoing {
            body: order("o-1"),
            attributes,
            group: MessageGroupId::new("customer-7"),
            deduplication_id: Some("d-1".to_owned()),
            delay: Duration::ZERO,
        };
        bench.sqs.queues().send_one(queue, message).unwrap()
    };
    // It was sent under this deduplication id a moment ago; under that id a second one would be swallowed.
    send("orders.fifo", Vec::new());
    bench.drain("orders.fifo").await;
    let dead = vec![attribute("reason", "GATEWAY:UNKNOWN"), attribute("tenant", "seven")];
    let id = send("orders-dlq.fifo", dead).id;

    let to = bench.sqs.queue_url("orders.fifo");
    bench.json(&["dlq", "redrive", "--to", &to, "--confirm", "--json"]).await;
    let arrived = bench.drain("orders.fifo").await;
    let [message] = arrived.as_slice() else { panic!("{arrived:?}") };
    let (sent_at, others): (Vec<_>, Vec<_>) =
        message.attributes.iter().partition(|one| one.name == "original_sent_at");
    assert!(sent_at.iter().any(|one| one.value.parse::<i64>().is_ok()), "{sent_at:?}");
    let attributes: BTreeSet<_> = others.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    let wanted =
        [("original_message_id", id.as_str()), ("redrive_reason", "GATEWAY:UNKNOWN"), ("tenant", "seven")];
    assert_eq!(attributes, BTreeSet::from(wanted));
    assert_eq!(message.system["MessageGroupId"], "customer-7");
    assert_eq!(message.system["MessageDeduplicationId"], format!("redrive-{id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_goes_where_sqs_says_it_came_from() {
    let bench = Bench::start().await;
    let message = Outgoing { body: order("o-1"), ..Outgoing::default() };
    bench.sqs.queues().send_one("orders", message).unwrap();
    let receive = charge_once::queue::Receive {
        max_messages: 1,
        wait: Duration::ZERO,
        visibility: Some(Duration::ZERO),
    };
    for _ in 0..2 {
        bench.sqs.queues().receive_from("orders", receive).await.unwrap();
    }
    bench.bury(&order("o-2"), None);
    assert_eq!(bench.depth("orders-dlq"), 2);
    let mut command = bench.command(&["dlq", "redrive", "--confirm", "--json"]);
    let output = command.env_remove("QUEUE_URL").output().await.unwrap();
    let moved: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(moved["sent"], 1);
    assert_eq!(moved["no_source"].as_array().unwrap().len(), 1, "nobody knows where o-2 came from");
    assert!(!output.status.success());
    assert_eq!(bench.drain("orders").await.iter().map(order_id).collect::<Vec<_>>(), ["o-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn paid_letters_are_dropped_and_doubtful_ones_are_not() {
    let bench = cemetery().await;
    let paid = bench.json(&["dlq", "discard", "--filter", "ledger=paid", "--confirm", "--json"]).await;
    assert_eq!((&paid["deleted"], &paid["not_paid"]), (&json!(200), &json!([])));
    let all = bench.json(&["dlq", "discard", "--filter", "*", "--json"]).await;
    assert_eq!((&all["deleted"], all["refused"].as_array().unwrap().len()), (&json!(400), 400));
    assert_eq!(bench.depth("orders-dlq"), 800, "the second was a dry run");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_can_be_imported() {
    let bench = Bench::start().await;
    bench.bury(&order("o-1"), Some("GATEWAY:UNKNOWN"));
    bench.bury(&order("o-2"), None);
    bench.record(&order("o-2"), "PAID", json!({ "charge_id": "ch_2" }));
    let exported = bench.run(&["dlq", "export"]).await;
    let lines = text(&exported.stdout);
    assert_eq!(lines.lines().count(), 2);

    let file = Scratch::with(&lines);
    let to = bench.sqs.queue_url("orders");
    let import = ["dlq", "import", file.0.to_str().unwrap(), "--to", &to, "--confirm", "--json"];
    let moved = bench.json(&import).await;
    assert_eq!((&moved["sent"], &moved["paid_left"]), (&json!(1), &json!(["o-2"])));
    assert_eq!(bench.drain("orders").await.iter().map(order_id).collect::<Vec<_>>(), ["o-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn peeking_shows_no_body_unless_asked() {
    let bench = Bench::start().await;
    bench.bury(&order("o-1"), Some("MISMATCH"));
    let peek = |more: &'static [&'static str]| {
        let bench = &bench;
        async move { text(&bench.run(&[&["dlq", "peek"], more].concat()).await.stdout) }
    };
    let plain = peek(&[]).await;
    assert!(plain.contains("o-1") && plain.contains("MISMATCH") && !plain.contains("amount"), "{plain}");
    assert!(plain.contains("looking counted as one receive"), "{plain}");
    assert!(!peek(&["--json"]).await.contains("49.90"));
    assert!(peek(&["--show-body"]).await.contains("49.90"));
    assert!(peek(&["--filter", "reason!=MISMATCH"]).await.contains("0 of 1 message;"));
}

/// A file that goes with this value.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn with(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("charge-once-test-{}.jsonl", Random::System.token()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}
