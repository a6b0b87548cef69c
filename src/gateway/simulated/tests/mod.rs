//! The claims of the simulated provider, one by one.

mod faults;
mod http_contract;
mod sockets;
mod stripe;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use http::Method;
use serde_json::{Value, json};

use super::{Answer, Provider, Reply, Request, Script};
use crate::clock::{Clock, Timestamp};

/// A clock the test moves.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicI64>);

impl Hands {
    fn clock(&self) -> Clock {
        let millis = Arc::clone(&self.0);
        Clock::from_fn(move || Timestamp::from_millis(millis.load(Ordering::SeqCst)))
    }

    fn forward(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

const HOUR: i64 = 3_600_000;

fn provider(script: Script) -> Provider {
    Provider::new(Hands::default().clock(), script)
}

/// A charge of the `http` contract, its key being `key-` and the order.
fn charge(order_id: &str, payment_method: &str) -> Request {
    let body = json!({
        "order_id": order_id, "attempt": 1, "amount_minor": 4990, "currency": "EUR",
        "customer": "c-1", "payment_method": payment_method,
    });
    Request::new(Method::POST, "/charges").with_key(&format!("key-{order_id}")).with_body(body.to_string())
}

fn find(order_id: &str) -> Request {
    Request::new(Method::GET, &format!("/charges?order_id={order_id}"))
}

/// A form posted below `/v1/payment_intents`.
fn post(path: &str, key: &str, form: &str) -> Request {
    Request::new(Method::POST, &format!("/v1/payment_intents{path}")).with_key(key).with_body(form.to_owned())
}

fn get(intent: &str) -> Request {
    Request::new(Method::GET, &format!("/v1/payment_intents/{intent}"))
}

/// The fields of an intent for an order.
fn intent_form(order_id: &str, payment_method: &str) -> String {
    format!(
        "amount=4990&currency=eur&payment_method={payment_method}&payment_method_types[]=card\
         &metadata[order_id]={order_id}&metadata[attempt]=2"
    )
}

fn answer(provider: &mut Provider, request: &Request) -> Answer {
    let Reply::Answer(answer) = provider.handle(request) else { panic!("no plain answer") };
    answer
}

/// Status and body of a plain answer.
fn ask(provider: &mut Provider, request: &Request) -> (u16, Value) {
    let answer = answer(provider, request);
    (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// Creates an intent and gives its identifier.
fn created(provider: &mut Provider, order_id: &str, payment_method: &str) -> String {
    let form = intent_form(order_id, payment_method);
    let (status, body) = ask(provider, &post("", &format!("create-{order_id}"), &form));
    assert_eq!(status, 200, "{body}");
    body["id"].as_str().unwrap().to_owned()
}

fn charged(provider: &mut Provider) -> Vec<String> {
    provider.charges().into_iter().map(|charge| charge.order_id).collect()
}
