//! A stand-in for the payment provider: every card is good.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use super::http::{Request, Response, Server};

/// What is remembered of an intent, as its answers show it.
type Intents = HashMap<String, Value>;

/// Both contracts behind one port: `POST /charges`, and Stripe's PaymentIntents. Each call takes `delay` longer.
pub(crate) fn start(delay: Duration) -> io::Result<Server> {
    let intents = Mutex::new(Intents::new());
    Server::start(move |request| {
        std::thread::sleep(delay);
        Some(answer(&request, &mut intents.lock().unwrap_or_else(PoisonError::into_inner)))
    })
}

fn answer(request: &Request, intents: &mut Intents) -> Response {
    let path = request.line.split_once(' ').map_or("", |(_method, path)| path);
    let intent = match path.strip_prefix("/v1/payment_intents") {
        None => json!({ "id": "ch_1", "status": "succeeded" }),
        Some("") => {
            let id = format!("pi_{}", intents.len());
            let intent = create(&id, &request.body);
            intents.insert(id, intent.clone());
            intent
        }
        Some(rest) => {
            let id = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
            let mut intent = intents.get(id).cloned().unwrap_or_default();
            if rest.ends_with("/confirm") {
                intent["status"] = "succeeded".into();
                intent["latest_charge"] = "ch_1".into();
                intents.insert(id.to_owned(), intent.clone());
            }
            intent
        }
    };
    Response::json(200, intent.to_string())
}

fn create(id: &str, form: &[u8]) -> Value {
    let fields: HashMap<_, _> = form_urlencoded::parse(form).collect();
    let field = |name: &str| fields.get(name).map_or("", |value| &**value);
    json!({
        "id": id,
        "object": "payment_intent",
        "status": "requires_confirmation",
        "amount": field("amount").parse::<i64>().unwrap_or(0),
        "currency": field("currency"),
        "metadata": { "order_id": field("metadata[order_id]") },
    })
}
