//! What a provider can answer. Where a charge may have been made nothing is concluded, and the message stays.

use std::time::Duration;

use charge_once::local::environment::Provider;

use super::{
    abuse, event, order,
    server::{Behaviour, Server},
};

const CHARGED: &str = r#"{"id":"ch_1","status":"succeeded"}"#;
const SLOW: &str = "HTTP/1.1 200 OK\r\ncontent-length: 34\r\n\r\n{\"id\":\"ch_1\",\"status\":\"succeeded\"}";

fn behaviours() -> Vec<(&'static str, Behaviour, &'static str)> {
    let html = "<!DOCTYPE html><html><body><h1>502</h1> card 4242 4242 4242 4242</body></html>";
    vec![
        ("never answers", Behaviour::Silent, "no answer in time"),
        ("drips a byte every 50 ms", Behaviour::Drip(SLOW, Duration::from_millis(50)), "no answer in time"),
        ("sends 1 GiB", Behaviour::Endless, "could not be read to its end"),
        (
            "promises more than it sends",
            Behaviour::answer_of_length(9_999, 200, "application/json", CHARGED),
            "could not be read",
        ),
        (
            "sends more than it promised",
            Behaviour::answer_of_length(10, 200, "application/json", CHARGED),
            "cannot be read",
        ),
        (
            "sends a length that is none",
            Behaviour::Raw("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}".into()),
            "the connection broke",
        ),
        ("redirects", Behaviour::answer(307, "text/plain", ""), "status 307"),
        ("answers 200 with HTML", Behaviour::answer(200, "text/html", html), "cannot be read"),
        ("answers 502 with HTML", Behaviour::answer(502, "text/html", html), "status 502"),
        ("does not speak HTTP", Behaviour::Raw("SSH-2.0-OpenSSH_9.6\r\n".into()), "the connection broke"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_answers_nonsense_leaves_the_order_in_doubt() {
    for (name, behaviour, logged) in behaviours() {
        let server = Server::start(behaviour).await;
        let url = format!("{}/charges", server.url);
        let settings = [("GATEWAY_URL", url.as_str()), ("CHARGE_TIMEOUT", "500ms")];
        let abused = abuse(&format!("provider {name}"), Provider::Http, &settings, event([order(1)])).await;
        abused.assert_one("retry", "GATEWAY:UNKNOWN");
        abused.assert_logged(logged);
        abused.assert_log_is_whole();
        assert!(
            !abused.invocation.log.iter().any(|line| line.contains("4242 4242")),
            "{name}: the provider's own text in {:#?}",
            abused.invocation.log
        );
        assert_eq!(abused.stack.ledger().unwrap()[0]["state"], "SENT", "{name}: the doubt is on record");
    }
}

/// The same before a handle exists: nothing can have been charged, and the record says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_stripe_that_answers_nonsense_has_no_handle_that_could_be_charged() {
    for (name, behaviour, _) in behaviours() {
        let server = Server::start(behaviour).await;
        let settings = [("GATEWAY_URL", server.url.as_str()), ("CHARGE_TIMEOUT", "500ms")];
        let abused = abuse(&format!("Stripe {name}"), Provider::Stripe, &settings, event([order(1)])).await;
        abused.assert_one("retry", "GATEWAY:UNKNOWN");
        abused.assert_log_is_whole();
        assert_eq!(abused.stack.ledger().unwrap()[0]["state"], "CLAIMED", "{name}");
    }
}
