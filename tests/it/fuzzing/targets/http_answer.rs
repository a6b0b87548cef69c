//! An answer of the `http` provider: a charge is believed only where the answer says so and names it.

use charge_once::gateway::{
    Answer, IdempotencyKey, LookedUp, OneShotGateway, Operation, http::HttpGateway, secret::Credential,
};
use http::Uri;
use serde_json::Value;

use super::answer::{Given, WITHIN, assert_recordable, assert_sound, clock, order, run as wait};

/// The input is a status, a `Retry-After` and a body, see [`Given`].
pub(crate) fn run(data: &[u8]) {
    let Some(given) = Given::parse(data) else { return };
    let Some(transport) = given.transport() else { return };
    let url = Uri::from_static("http://127.0.0.1/charges");
    let gateway = HttpGateway::new(transport, url, Credential::fixed(None, clock()), "default", clock());
    let order = order();
    let key = IdempotencyKey::new("http:default", order.id(), 1, Operation::Charge);

    let charged = wait(gateway.charge(&order, &key, WITHIN));
    match &charged {
        Ok(answer) => assert_proven(answer, &given),
        Err(error) => assert_sound(error, &given),
    }
    match wait(gateway.find(&order, WITHIN)) {
        Ok(LookedUp::Charge(answer)) => assert_eq!(Ok(answer), charged.map_err(drop)),
        Ok(LookedUp::Nothing) => assert!(given.status == 404 || says(&given, "none")),
        Ok(LookedUp::Unclear) => assert!(charged.is_ok()),
        Err(error) => assert_sound(&error, &given),
    }
}

fn assert_proven(answer: &Answer, given: &Given) {
    assert!((200..300).contains(&given.status));
    match answer {
        Answer::Succeeded(receipt) => {
            assert!(says(given, "succeeded"));
            assert_recordable(receipt);
        }
        Answer::Processing => assert!(says(given, "processing")),
        Answer::Failed(code) => assert!(says(given, "failed") && code.as_str().len() <= 120),
    }
}

/// Whether the body is an object with this status. A depth or a number that the parser for values refuses, and the
/// gateway skips, leaves it open.
fn says(given: &Given, status: &str) -> bool {
    match serde_json::from_slice::<Value>(&given.body) {
        Ok(Value::Object(body)) => body.get("status").and_then(Value::as_str) == Some(status),
        Ok(_) => false,
        Err(_) => true,
    }
}
