//! Log injection: whatever a producer or a provider writes, a line stays one line, says only what we say, and steers
//! no terminal.

use charge_once::{clock::Clock, local::environment::Provider};
use serde_json::{Value, json};

use super::{
    abuse,
    server::{Behaviour, Server},
};

/// Ends the line, begins a forged one, clears a terminal, turns its direction.
const FORGED: &str =
    "x\r\n{\"level\":\"ERROR\",\"decision\":\"ack\"}\u{1b}[2J\u{9b}31m\u{2028}\u{202e}\u{0}\"";

#[tokio::test(flavor = "multi_thread")]
async fn identifiers_and_bodies_forge_no_line() {
    let now = Clock::system().now().as_millis().to_string();
    let bodies = [
        FORGED.to_owned(),
        json!({"order_id": FORGED, "amount": 1, "currency": "EUR"}).to_string(),
        json!({"order_id": "o-1", "amount": FORGED, "currency": FORGED}).to_string(),
        json!({"order_id": "o-2", "amount": 1, "currency": "EUR", "customer": FORGED}).to_string(),
    ];
    let record = |(number, body): (usize, &String)| {
        json!({
            "messageId": format!("m-{number}{FORGED}"),
            "receiptHandle": FORGED,
            "body": body,
            "attributes": {"MessageGroupId": format!("g-{number}{FORGED}"), "SentTimestamp": now, "AWSTraceHeader": FORGED},
            "messageAttributes": {FORGED: {"dataType": "String", "stringValue": FORGED}},
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:eu-central-1:1:{}", FORGED.replace(':', "")),
        })
    };
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    let event = json!({ "Records": records }).to_string();
    let abused = abuse("forged lines in every identifier", Provider::Http, &[], event).await;
    assert_eq!((abused.decided("poison", ""), abused.kept()), (4, 4), "{:#?}", abused.invocation.log);
    assert_no_line_is_forged(&abused.invocation.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_s_words_forge_no_line() {
    for (status, body) in [
        (402, json!({"status": "failed", "code": FORGED, "message": FORGED})),
        (400, json!({"code": FORGED})),
        (200, json!({"id": FORGED, "status": "succeeded"})),
        (200, json!({"id": "c", "status": FORGED})),
        (500, json!(FORGED)),
    ] {
        let server = Server::start(Behaviour::answer(status, "application/json", &body.to_string())).await;
        let url = format!("{}/charges", server.url);
        let name = format!("provider forges lines with {status}");
        let abused =
            abuse(&name, Provider::Http, &[("GATEWAY_URL", &url)], super::event([super::order(1)])).await;
        assert_no_line_is_forged(&abused.invocation.log);
    }
}

fn assert_no_line_is_forged(log: &[String]) {
    assert!(!log.is_empty());
    for line in log {
        let steers = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{202e}');
        assert!(!line.chars().any(steers), "{line:?}");
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line.get("_aws").is_some() || line["level"] != "ERROR" || line["decision"] != "ack",
            "{line}"
        );
        assert!(line.is_object());
    }
}
