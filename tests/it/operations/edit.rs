//! Bodies repaired on their way back.

use charge_once::{local::sqs_endpoint::SqsEndpoint, queue::Message};
use serde_json::{Value, json};

use super::{Bench, order, text};

const PATCH: &str = r#"{"currency":"EUR"}"#;

fn without_currency(id: &str) -> String {
    format!(r#"{{"order_id":"{id}","amount":49.90}}"#)
}

fn names(document: &Value, list: &str) -> Vec<String> {
    document[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.body.as_str()).collect()
}

fn orders(sqs: &SqsEndpoint) -> String {
    sqs.queue_url("orders")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lacked_a_currency_goes_back_with_one() {
    let bench = Bench::start().await;
    bench.bury(&without_currency("a"), Some("CURRENCY_MISSING"));
    bench.bury(&without_currency("b"), Some("CURRENCY_MISSING"));
    bench.bury(&order("c"), Some("DECLINED:card_declined"));
    let to = orders(&bench.sqs);
    let redrive = ["dlq", "redrive", "--filter", "reason=CURRENCY_MISSING", "--edit", PATCH, "--to", &to];

    let dry = text(&bench.run(&redrive).await.stdout);
    assert_eq!(
        dry,
        "2 of 3 messages would be sent\n\
         2 of those, edited: what changed is in brackets\n  a (currency), b (currency)\n\
         Nothing was changed; add --confirm\n"
    );
    assert_eq!((bench.depth("orders-dlq"), bench.depth("orders")), (3, 0));

    let done = bench.json(&[&redrive[..], &["--confirm", "--json"]].concat()).await;
    assert_eq!((&done["sent"], &done["not_edited"]), (&json!(2), &json!([])));
    let sent = bench.drain("orders").await;
    assert_eq!(
        bodies(&sent),
        [
            r#"{"amount":49.90,"currency":"EUR","order_id":"a"}"#,
            r#"{"amount":49.90,"currency":"EUR","order_id":"b"}"#
        ]
    );
    let reason = sent[0].attributes.iter().find(|attribute| attribute.name == "redrive_reason").unwrap();
    assert_eq!(reason.value, "CURRENCY_MISSING");
    assert_eq!(bench.depth("orders-dlq"), 1);
}

/// Envelopes, what is no order even then, and orders that the ledger knows with another content, paid ones above all.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_edited_safely_stays() {
    let bench = Bench::start().await;
    let sns = json!({"Type": "Notification", "TopicArn": "t", "Message": without_currency("sns")});
    bench.bury(&sns.to_string(), None);
    bench.bury(r#"{"order_id":"x"}"#, None);
    bench.record(&order("paid"), "PAID", json!({ "charge_id": "ch_1" }));
    bench.bury(&order("paid"), None);
    bench.record(&order("same"), "PAID", json!({ "charge_id": "ch_2" }));
    bench.bury(&without_currency("same"), None);
    bench.record(&order("held"), "HELD", json!({ "held_reason": "UNKNOWN_EXPIRED", "attention": "HELD" }));
    bench.bury(&without_currency("held"), None);
    let to = orders(&bench.sqs);

    let args = ["dlq", "redrive", "--edit", r#"{"currency":"USD"}"#, "--to", &to, "--confirm", "--json"];
    let output = bench.run(&args).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mismatch = "the ledger knows the order with another content: it would come back as MISMATCH";
    let not_edited = names(&done, "not_edited");
    assert!(not_edited.iter().any(|it| it.ends_with(": the order is in an envelope")), "{not_edited:?}");
    assert!(
        not_edited.iter().any(|it| it.ends_with(": no order even then: AMOUNT_MISSING")),
        "{not_edited:?}"
    );
    assert!(not_edited.contains(&format!("paid: {mismatch}")), "{not_edited:?}");
    assert_eq!(not_edited.iter().filter(|it| it.ends_with(mismatch)).count(), 3);
    assert_eq!((&done["sent"], bench.depth("orders-dlq")), (&json!(0), 5));

    let args = ["dlq", "redrive", "--edit", PATCH, "--to", &to, "--json"];
    let done: Value = serde_json::from_slice(&bench.run(&args).await.stdout).unwrap();
    assert_eq!(names(&done, "refused"), ["held"], "with the recorded content a held order is what it was");
    assert_eq!(names(&done, "paid_left"), ["paid", "same"]);
    assert_eq!(done["sent"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_order_is_tried_again_with_other_details() {
    let bench = Bench::start().await;
    bench.record(&order("a"), "DECLINED", json!({ "error": "card_declined" }));
    bench.bury(&order("a"), Some("DECLINED:card_declined"));
    let to = orders(&bench.sqs);
    let edit =
        |patch: &'static str| ["dlq", "redrive", "--edit", patch, "--to", to.as_str(), "--confirm", "--json"];
    let refused = bench.run(&edit(r#"{"payment_method":"pm_2"}"#)).await;
    assert_eq!(refused.status.code(), Some(1));
    let done = bench.json(&edit(r#"{"payment_method":"pm_2","attempt":2}"#)).await;
    assert_eq!(names(&done, "edited"), ["a (attempt, payment_method)"]);
    assert_eq!(bench.depth("orders"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_checked_before_anything_is_read() {
    let bench = Bench::start().await;
    for (patch, says) in [
        ("amount=5", "write a JSON object"),
        (r#"{"order_id":"b"}"#, "order_id cannot be edited"),
        ("{}", "the object is empty"),
    ] {
        let output = bench.run(&["dlq", "redrive", "--edit", patch]).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
