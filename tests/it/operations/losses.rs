//! Ways to lose an order with an operator's own hands: half a walk, an unset variable, an old reason, a wrong queue.

use std::time::Duration;

use charge_once::{
    queue::{
        Outgoing, Receive,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy},
    },
    record::MessageGroupId,
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Bench, attribute, dlq::Scratch, order, order_id, text};

/// 25 letters of one group in a FIFO queue, of which a walk sees ten.
async fn one_group() -> Bench {
    let bench = Bench::fifo().await;
    for n in 0..25 {
        let message = Outgoing {
            body: format!("broken {n}"),
            attributes: vec![attribute("reason", "BODY_NOT_JSON")],
            group: MessageGroupId::new("customer-7"),
            deduplication_id: Some(n.to_string()),
            ..Outgoing::default()
        };
        bench.sqs.queues().send_one(bench.dlq, message).unwrap();
    }
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_could_not_see_all_says_so() {
    let bench = one_group().await;
    let exported = bench.run(&["dlq", "export"]).await;
    assert_eq!((exported.status.code(), text(&exported.stdout).lines().count()), (Some(1), 10));
    insta::assert_snapshot!(text(&exported.stderr), @"incomplete: 10 of about 25 messages were seen; the rest is hidden by another reader, or waits behind others of its FIFO group. Run this again once these are dealt with, or later");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_that_was_not_kept() {
    let bench = one_group().await;
    let file = Scratch::with(&text(&bench.run(&["dlq", "export"]).await.stdout));
    let discard =
        ["dlq", "discard", "--filter", "*", "--only-in", file.0.to_str().unwrap(), "--confirm", "--json"];
    let done: Value = serde_json::from_slice(&bench.run(&discard).await.stdout).unwrap();
    assert_eq!(done["deleted"], 10);
    assert_eq!(bench.depth(bench.dlq), 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discard_names_all_that_is_gone() {
    let bench = one_group().await;
    let output = text(&bench.run(&["dlq", "discard", "--filter", "*", "--confirm"]).await.stdout);
    let names = output.lines().nth(2).unwrap();
    assert_eq!(names.split(", ").count(), 25, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_keeps_the_time_of_the_first_sending_among_ten_attributes() {
    let bench = Bench::start().await;
    let attributes = (0..10).map(|n| attribute(&format!("a{n}"), "x")).collect();
    let message = Outgoing { body: order("o-1"), attributes, ..Outgoing::default() };
    bench.sqs.queues().send_one(bench.dlq, message).unwrap();
    assert_eq!(bench.json(&["dlq", "redrive", "--confirm", "--json"]).await["sent"], 1);
    let copy = bench.drain("orders").await.remove(0);
    assert_eq!(copy.attributes.len(), 10);
    assert!(copy.attributes.iter().any(|attribute| attribute.name == "original_sent_at"), "{copy:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_too_large_for_a_copy_stays_and_stops_no_other() {
    let bench = Bench::start().await;
    for body in ["x".repeat(1_048_576), order("o-1"), order("o-2")] {
        bench.bury(&body, None);
    }
    let output = bench.run(&["dlq", "redrive", "--confirm", "--json"]).await;
    let moved: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &moved["sent"]), (Some(1), &json!(2)));
    assert!(moved["failed"][0].as_str().unwrap().ends_with("larger than SQS takes"), "{moved:#}");
    assert_eq!((bench.depth("orders"), bench.depth("orders-dlq")), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unset_variable_decides_nothing() {
    let bench = Bench::start().await;
    let more = json!({ "held_reason": "RESTORED", "attention": "HELD", "first_sent_at": 1500 });
    bench.record(&order("o-1"), "HELD", more);
    bench.bury("no order", None);
    for words in [
        &["ledger", "resolve", "o-1", "--paid", "", "--confirm", "--fence", "1"][..],
        &["ledger", "resolve", "o-1", "--declined", "--by", "", "--confirm", "--fence", "1"],
        &["dlq", "discard", "--filter", "order_id=", "--confirm"],
        &["dlq", "discard", "--filter", "reason~", "--confirm"],
        &["dlq", "discard", "--filter", "group=", "--confirm"],
    ] {
        assert_eq!(bench.run(words).await.status.code(), Some(2), "{words:?}");
    }
    assert_eq!((bench.row("o-1")["state"].as_str(), bench.depth("orders-dlq")), (Some("HELD"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_order_is_kept_whatever_currency_the_operator_knows() {
    let bench = Bench::start().await;
    let more = json!({ "held_reason": "RESTORED", "attention": "HELD", "first_sent_at": 1500 });
    bench.record(&order("o-1"), "HELD", more);
    bench.bury(r#"{"order_id":"o-1","amount":49.90}"#, None);
    let done = bench.json(&["dlq", "discard", "--filter", "*", "--confirm", "--json"]).await;
    assert_eq!((&done["deleted"], &done["refused"]), (&json!(0), &json!(["o-1"])));
}

/// A queue whose messages die in `orders-dlq`, too, with one that has.
async fn dead_in(bench: &Bench, queue: &str, message: Outgoing) {
    let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn("orders-dlq"), max_receive_count: 1 };
    let settings = QueueSettings { redrive: Some(redrive), ..QueueSettings::standard() };
    bench.sqs.queues().create(queue, settings).unwrap();
    bench.sqs.queues().send_one(queue, message).unwrap();
    let receive = Receive { max_messages: 1, wait: Duration::ZERO, visibility: Some(Duration::ZERO) };
    for _ in 0..2 {
        bench.sqs.queues().receive_from(queue, receive).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_two_queues_go_each_to_its_own() {
    let bench = Bench::start().await;
    dead_in(&bench, "orders-us", Outgoing { body: order("o-us"), ..Outgoing::default() }).await;
    bench.bury(&order("o-eu"), None);
    assert_eq!(bench.json(&["dlq", "redrive", "--confirm", "--json"]).await["sent"], 2);
    for (queue, id) in [("orders-us", "o-us"), ("orders", "o-eu")] {
        assert_eq!(bench.drain(queue).await.iter().map(order_id).collect::<Vec<_>>(), [id]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_an_earlier_death_is_not_that_of_this_one() {
    let bench = Bench::start().await;
    let attributes = vec![attribute("reason", "CURRENCY_MISSING")];
    dead_in(&bench, "orders-us", Outgoing { body: order("o-1"), attributes, ..Outgoing::default() }).await;
    let stats = bench.json(&["dlq", "stats", "--json"]).await;
    assert_eq!(stats["groups"][0]["reason"], "NO_RECORD");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_worked_on_is_not_discarded_from() {
    let bench = Bench::start().await;
    let message = Outgoing { body: order("o-1"), ..Outgoing::default() };
    bench.sqs.queues().send_one("orders", message).unwrap();
    let orders = bench.sqs.queue_url("orders");
    let output = bench.run(&["dlq", "discard", "--dlq-url", &orders, "--filter", "*", "--confirm"]).await;
    assert_eq!((output.status.code(), bench.depth("orders")), (Some(1), 1));
    assert!(text(&output.stderr).contains("worked on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_queue_is_not_redriven_into_itself() {
    let bench = Bench::start().await;
    bench.bury(&order("o-1"), None);
    let dlq = bench.sqs.queue_url("orders-dlq");
    let output = bench.run(&["dlq", "redrive", "--to", &dlq, "--confirm"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("dead-letter queue itself"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_copy_is_not_taken_for_the_message_it_repairs() {
    let bench = Bench::fifo().await;
    let line =
        |id: &str| json!({ "message_id": "m-1", "system": { "MessageGroupId": "g" }, "body": order(id) });
    let file = Scratch::with(&format!("\u{feff}{}\n{}\n", line("o-1"), line("o-2")));
    let moved = bench.json(&["dlq", "import", file.0.to_str().unwrap(), "--confirm", "--json"]).await;
    assert_eq!((&moved["sent"], bench.depth("orders.fifo")), (&json!(2), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_die_again_is_named_before_it_is_sent() {
    let bench = Bench::start().await;
    bench.record(&order("o-1"), "DECLINED", json!({ "error": "card_declined" }));
    for body in [order("o-1"), order("o-2"), "no order".to_owned()] {
        bench.bury(&body, None);
    }
    let planned = bench.json(&["dlq", "redrive", "--json"]).await;
    assert_eq!(planned["sent"], 3);
    let hopeless: Vec<&str> =
        planned["hopeless"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(hopeless.contains(&"o-1: DECLINED:card_declined"), "{hopeless:?}");
    assert!(hopeless.iter().any(|text| text.ends_with(": BODY_NOT_JSON")), "{hopeless:?}");
    assert_eq!(hopeless.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_too_large_for_a_message_stops_no_other() {
    let bench = Bench::start().await;
    bench.bury(&order("o-1"), None);
    bench.bury(&order("o-2"), None);
    let lines = text(&bench.run(&["dlq", "export"]).await.stdout);
    let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[0]["body"] = "x".repeat(1_048_577).into();
    let file = Scratch::with(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let import = ["dlq", "import", file.0.to_str().unwrap(), "--json"];
    for confirm in [&[][..], &["--confirm"]] {
        let output = bench.run(&[&import[..], confirm].concat()).await;
        let moved: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &moved["sent"]), (Some(1), &json!(1)));
        assert!(moved["failed"][0].as_str().unwrap().ends_with("larger than SQS takes"), "{moved:#}");
    }
    assert_eq!(bench.depth("orders"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_command_tells_what_it_has_done() {
    let bench = Bench::start().await;
    for n in 0..40 {
        bench.bury(&order(&format!("o-{n}")), None);
    }
    let redrive = bench.command(&["dlq", "redrive", "--rate", "10", "--confirm", "--json"]).spawn().unwrap();
    while bench.depth("orders") == 0 {
        tokio::task::yield_now().await;
    }
    let interrupt = Command::new("kill").args(["-INT", &redrive.id().unwrap().to_string()]).status();
    assert!(interrupt.await.unwrap().success());
    let output = redrive.wait_with_output().await.unwrap();
    let moved: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sent = moved["sent"].as_u64().unwrap();
    assert_eq!((output.status.code(), sent), (Some(1), bench.depth("orders") as u64));
    assert!((1..40).contains(&sent), "{sent}");
    insta::assert_snapshot!(text(&output.stderr), @"stopped by a signal, between two batches: the rest is as it was. Run this again for it");
    // What is left is visible at once, and not hidden by a walk that nobody ends.
    assert_eq!(bench.depth(bench.dlq) as u64, 40 - sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_found_is_named() {
    let bench = Bench::start().await;
    let gone = bench.sqs.queue_url("gone");
    let said = async |words: &[&str]| {
        let output = bench.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        text(&output.stderr)
    };
    for words in [
        &["dlq", "stats", "--dlq-url", &gone][..],
        &["queue", "depth", &gone],
        &["queue", "send", "--queue-url", &gone],
        &["queue", "depth", "gone"],
    ] {
        let error = said(words).await;
        assert!(error.contains("gone") && error.contains("does not exist"), "{words:?}: {error}");
    }
    let error = said(&["ledger", "show", "o-1", "--table", "elsewhere"]).await;
    assert!(error.contains("table elsewhere"), "{error}");
    let error = said(&["queue", "create", "orders"]).await;
    assert!(error.contains("the queue orders-dlq was not created"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_into_a_queue_that_is_worked_on_uses_up_no_receive() {
    let bench = Bench::start().await;
    let orders = bench.sqs.queue_url("orders");
    bench.sqs.queues().send_one("orders", Outgoing { body: order("o-1"), ..Outgoing::default() }).unwrap();
    for command in ["stats", "peek", "export", "redrive"] {
        let output = bench.run(&["dlq", command, "--dlq-url", &orders]).await;
        assert_eq!(output.status.code(), Some(1), "{command}");
    }
    let output = bench.run(&["dlq", "discard", "--filter", "*", "--dlq-url", &orders, "--confirm"]).await;
    assert!(text(&output.stderr).contains("say --any-queue"), "{}", text(&output.stderr));
    // One receive is allowed, and the first one finds it.
    assert_eq!(bench.drain("orders").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discarded_order_in_doubt_is_not_called_unpaid() {
    let bench = Bench::start().await;
    bench.record(&order("o-1"), "HELD", json!({ "held_reason": "RESTORED", "attention": "HELD" }));
    bench.bury(&order("o-1"), None);
    let words = ["dlq", "discard", "--filter", "*", "--force", "--json"];
    let planned = bench.json(&words).await;
    assert_eq!((&planned["not_paid"], &planned["in_doubt"]), (&json!([]), &json!(["o-1"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attempt_after_a_declined_one_is_not_called_declined() {
    let bench = Bench::start().await;
    bench.record(&order("o-1"), "DECLINED", json!({ "error": "card_declined" }));
    bench.bury(&order("o-1").replace('}', ",\"attempt\":2}"), None);
    let stats = bench.json(&["dlq", "stats", "--json"]).await;
    assert_eq!(stats["groups"][0]["reason"], "NO_RECORD");
    let planned = bench.json(&["dlq", "redrive", "--json"]).await;
    assert_eq!((&planned["sent"], &planned["hopeless"]), (&json!(1), &json!([])));
}

/// The age guard reads the attribute, and a producer may have had the same name for something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_names_the_time_of_the_first_sending_whatever_the_producer_named_so() {
    let bench = Bench::start().await;
    for value in ["2026-11-30T09:00:00Z", "1796029200.5", "99999999999999"] {
        let attributes = vec![attribute("original_sent_at", value)];
        let message = Outgoing { body: order("o-1"), attributes, ..Outgoing::default() };
        bench.sqs.queues().send_one(bench.dlq, message).unwrap();
        assert_eq!(bench.json(&["dlq", "redrive", "--confirm", "--json"]).await["sent"], 1);
        let copy = bench.drain("orders").await.remove(0);
        let named = copy.attributes.iter().find(|attribute| attribute.name == "original_sent_at").unwrap();
        let named: i64 = named.value.parse().unwrap();
        assert!(named <= charge_once::clock::Clock::system().now().as_millis(), "{value}: {named}");
    }
}

/// A worker whose table does not exist would use up the receives of every message.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_its_table_receives_nothing() {
    let bench = Bench::start().await;
    bench.sqs.queues().send_one("orders", Outgoing { body: order("o-1"), ..Outgoing::default() }).unwrap();
    let mut worker = bench.command(&["worker", "--once"]);
    worker.envs([
        ("GATEWAY", "http"),
        ("GATEWAY_URL", "http://127.0.0.1:1/charges"),
        ("LEDGER_TABLE", "nope"),
    ]);
    let output = worker.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no table nope"), "{}", text(&output.stderr));
    // One receive is allowed, and the first one finds it.
    assert_eq!(bench.drain("orders").await.len(), 1);
}
