//! An answer of Stripe: an intent is ours only with our order, amount and currency, and its name is one that can
//! stand in an address and a record.

use charge_once::gateway::{
    GatewayErrorKind, HandleStatus, IdempotencyKey, Operation, Sighting, TwoPhaseGateway,
    secret::{Credential, Secret},
    stripe::StripeGateway,
};
use http::Uri;
use serde_json::Value;

use super::answer::{Given, WITHIN, assert_recordable, assert_sound, clock, order, run as wait};

/// The input is a status, a `Retry-After` and a body, see [`Given`].
pub(crate) fn run(data: &[u8]) {
    let Some(given) = Given::parse(data) else { return };
    let Some(transport) = given.transport() else { return };
    let secret = Secret::new("sk_test_1").expect("a key");
    let url = Uri::from_static("http://127.0.0.1");
    let credential = Credential::fixed(Some(secret), clock());
    let gateway =
        StripeGateway::new(transport, url, credential, "a", clock()).expect("a key that can charge");
    let order = order();
    let key = |operation| IdempotencyKey::new(gateway.provider(), order.id(), 1, operation);

    match wait(gateway.prepare(&order, &key(Operation::Create { generation: 0 }), WITHIN)) {
        Ok(handle) => assert_usable(&handle),
        Err(error) => {
            assert_sound(&error, &given);
            assert_ne!(error.kind, GatewayErrorKind::NotFound, "there was nothing to be found yet");
        }
    }
    let calls = [
        wait(gateway.commit(&order, "pi_1", &key(Operation::Commit { fence: 1 }), WITHIN)),
        wait(gateway.inspect(&order, "pi_1", WITHIN)),
        wait(gateway.seal(&order, "pi_1", &key(Operation::Seal { generation: 0, fence: 1 }), WITHIN)),
    ];
    for call in calls {
        match call {
            Ok(sighting) => {
                assert!((200..300).contains(&given.status));
                assert_proven(&sighting, &given);
            }
            Err(error) => {
                assert_sound(&error, &given);
                error.sighting.iter().for_each(|sighting| assert_proven(sighting, &given));
            }
        }
    }
}

/// It is stored, and it becomes part of an address.
fn assert_usable(handle: &str) {
    assert!((1..=255).contains(&handle.len()), "{}", handle.len());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    assert!(handle.bytes().all(plain), "{handle:?}");
}

fn assert_proven(sighting: &Sighting, given: &Given) {
    if let HandleStatus::Succeeded(receipt) = &sighting.status {
        assert_recordable(receipt);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&given.body) else { return };
    let intent = if given.status < 300 { &body } else { &body["error"]["payment_intent"] };
    let ours = intent["amount"].as_i64() == Some(4990)
        && intent["currency"].as_str().is_some_and(|code| code.eq_ignore_ascii_case("EUR"))
        && intent["metadata"]["order_id"].as_str() == Some("o-1");
    assert!(!sighting.is_ours || ours, "{sighting:?}");
}
