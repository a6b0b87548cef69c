//! What DynamoDB and SQS can answer. Without a ledger nothing is sent; without a queue the answer is the same.

use std::time::Duration;

use charge_once::local::environment::Provider;

use super::{
    abuse, event, order,
    server::{Behaviour, Server},
};

const JSON: &str = "application/x-amz-json-1.0";

fn refusal(status: u16, code: &str) -> Behaviour {
    Behaviour::answer(
        status,
        JSON,
        &format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"m"}}"#),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_ledger_nothing_is_sent_to_the_provider() {
    let slow = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    for (name, behaviour, reason) in [
        ("throttles", refusal(400, "ThrottlingException"), "STORE_"),
        ("has no capacity", refusal(400, "ProvisionedThroughputExceededException"), "STORE_"),
        ("answers an error that nobody knows", refusal(418, "TeapotException"), "STORE_"),
        ("answers 500", refusal(500, "InternalServerError"), "STORE_"),
        ("denies access", refusal(400, "AccessDeniedException"), "STORE_"),
        ("answers garbage", Behaviour::answer(200, JSON, "\u{fffd}\u{1}[[[{"), "STORE_"),
        ("answers HTML", Behaviour::answer(200, "text/html", "<html>"), "STORE_"),
        ("never answers", Behaviour::Silent, "STORE_"),
        ("drips a byte every 200 ms", Behaviour::Drip(slow, Duration::from_millis(200)), "STORE_"),
    ] {
        let server = Server::start(behaviour).await;
        let settings = [("AWS_ENDPOINT_URL_DYNAMODB", server.url.as_str())];
        let abused = abuse(&format!("DynamoDB {name}"), Provider::Http, &settings, event([order(1)])).await;
        abused.assert_one("retry", reason);
        abused.assert_log_is_whole();
        abused.assert_logged("\"error\":");
        assert_eq!(abused.stack.provider().requests().len(), 0, "{name}: sent without a record of it");
    }
}

/// Eight failures: the breaker leaves the rest alone, and every record stays in the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_down_opens_the_breaker() {
    let server = Server::start(refusal(400, "ThrottlingException")).await;
    let settings = [("AWS_ENDPOINT_URL_DYNAMODB", server.url.as_str()), ("CONCURRENCY", "2")];
    let abused =
        abuse("DynamoDB throttles 100 records", Provider::Http, &settings, event((0..100).map(order))).await;
    assert_eq!((abused.kept(), abused.stack.provider().requests().len()), (100, 0));
    assert!(abused.decided("retry", "NOT_STARTED:BREAKER") >= 90);
    abused.assert_logged("the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_refuses_every_visibility_change_alters_no_decision() {
    for (name, behaviour) in [
        ("fails every change", refusal(500, "InternalFailure")),
        ("denies every change", refusal(403, "AccessDenied")),
        ("answers garbage", Behaviour::answer(200, JSON, "}{")),
        ("never answers", Behaviour::Silent),
    ] {
        let server = Server::start(behaviour).await;
        let settings = [("AWS_ENDPOINT_URL_SQS", server.url.as_str()), ("AWS_LAMBDA_FUNCTION_TIMEOUT", "8")];
        let bodies = ["no order".to_owned(), order(1)];
        let abused = abuse(&format!("SQS {name}"), Provider::Http, &settings, event(bodies)).await;
        assert_eq!((abused.decided("poison", "BODY_NOT_JSON"), abused.decided("ack", "CHARGED")), (1, 1));
        assert_eq!((abused.kept(), abused.stack.charges().len()), (1, 1), "{name}");
        abused.assert_logged("visibility change");
        abused.assert_logged("\"VisibilityChangeFailed\":1");
    }
}
