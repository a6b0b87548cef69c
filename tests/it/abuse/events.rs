//! What a producer can send: as much, as many and as deep as SQS and Lambda let through.

use charge_once::local::{environment::Provider, runtime_api::InvocationOutcome};

use super::{Abused, abuse, event, order};

async fn charge(name: &str, event: String) -> Abused {
    abuse(name, Provider::Http, &[], event).await
}

/// A valid order that is `size` bytes long.
fn padded(number: usize, size: usize) -> String {
    let order = order(number);
    let padding = "x".repeat(size - order.len() - r#","note":"""#.len());
    format!(r#"{},"note":"{padding}"}}"#, order.trim_end_matches('}'))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_six_megabytes_is_read() {
    let abused =
        charge("event of 6 MB, 24 records of 250 KB", event((0..24).map(|n| padded(n, 250_000)))).await;
    assert_eq!((abused.decided("ack", "CHARGED"), abused.kept()), (24, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_mebibyte_is_an_order_like_any_other() {
    let abused = charge("valid order in a body of 1 MiB", event([padded(1, 1024 * 1024)])).await;
    abused.assert_one("ack", "CHARGED");
    let abused = charge("body of 1 MiB without sense", event(["\u{1b}[2J\n".repeat(1024 * 1024 / 5)])).await;
    abused.assert_one("poison", "BODY_NOT_JSON");
    abused.assert_log_is_whole();
}

/// As many as an event source mapping hands over at most. One in a hundred is an order.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_records_are_each_answered() {
    let bodies = (0..10_000).map(|n| if n % 100 == 0 { order(n) } else { "no order".to_owned() });
    let abused = charge("10,000 records, 9,900 without an order", event(bodies)).await;
    let (charged, poison) = (abused.decided("ack", "CHARGED"), abused.decided("poison", "BODY_NOT_JSON"));
    let left = abused.decided("retry", "NOT_STARTED");
    assert_eq!((charged + left, poison), (100, 9_900), "{:?}", abused.invocation.outcome);
    assert_eq!((abused.kept(), abused.stack.charges().len()), (9_900 + left, charged));
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_ends_in_a_decision() {
    let lists = "[".repeat(100_000) + &"]".repeat(100_000);
    for (name, body, reason) in [
        (
            "100,000 lists in an unknown field",
            format!(r#"{{"order_id":"o","amount":1,"x":{lists}}}"#),
            "BODY_TOO_DEEP",
        ),
        ("100,000 lists", lists.clone(), "BODY_NOT_"),
        ("100,000 open objects", r#"{"a":"#.repeat(100_000), "BODY_TOO_DEEP"),
        (
            "100,000 lists in an EventBridge detail",
            format!(r#"{{"detail-type":"t","source":"s","detail":{lists}}}"#),
            "BODY_",
        ),
    ] {
        charge(name, event([body])).await.assert_one("poison", reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_event_is_refused_and_the_function_lives_on() {
    let lists = "[".repeat(100_000) + &"]".repeat(100_000);
    let abused = charge("event of 100,000 lists", format!(r#"{{"Records":{lists}}}"#)).await;
    // The one member of the outermost list is no record, so it has no name by which it could be kept.
    assert!(
        matches!(abused.invocation.outcome, InvocationOutcome::Error(_)),
        "{:?}",
        abused.invocation.outcome
    );
    let next = abused.stack.invoke(event([order(1)])).await.unwrap();
    assert_eq!(next.records[0].text("decision"), "ack", "the same process goes on");
}
