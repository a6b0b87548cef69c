//! The one-shot contract of the `http` gateway: one `POST` charges, one `GET` looks up.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    bank::{Attempted, Bank, Outcome, SimulatedCharge},
    call::Contract,
    card::Card,
    course::{Executed, Twist},
    message::{Answer, Request, set},
};
use crate::clock::Timestamp;

/// The body of a charge. Fields the contract does not name are allowed.
#[derive(Debug, Deserialize)]
struct ChargeBody {
    order_id: String,
    attempt: u32,
    amount_minor: i64,
    currency: String,
    payment_method: Option<String>,
}

impl ChargeBody {
    fn read(body: &[u8]) -> Result<Self, String> {
        let body: Self = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if body.amount_minor < 1 {
            return Err("amount_minor must be at least 1".into());
        }
        if body.currency.len() != 3 || !body.currency.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err("currency must be three letters".into());
        }
        Ok(body)
    }
}

/// Executes `POST`. Requests that are not understood are refused without using up their key.
pub(super) fn charge(bank: &mut Bank, request: &Request, twist: &Twist, now: Timestamp) -> Executed {
    let body = match ChargeBody::read(&request.body) {
        Ok(body) => body,
        Err(detail) => {
            return Executed::refused(problem(StatusCode::BAD_REQUEST, "invalid_request", &detail));
        }
    };
    let outcome = match (twist, Card::of(body.payment_method.as_deref().unwrap_or_default())) {
        (_, Card::Missing) => {
            let detail = "no such payment method";
            return Executed::refused(problem(StatusCode::BAD_REQUEST, "resource_missing", detail));
        }
        (Twist::Decline(code), _) => Outcome::Failed(code.clone()),
        (Twist::None, Card::Declines(code)) => Outcome::Failed(code),
        (Twist::None, Card::NeedsCustomer) => Outcome::Failed("authentication_required".into()),
        (Twist::Processing(settle), _) => Outcome::Processing(now.plus(*settle)),
        (Twist::None, Card::Good) => Outcome::Succeeded,
    };
    let charge = SimulatedCharge {
        order_id: body.order_id,
        attempt: body.attempt,
        amount_minor: body.amount_minor,
        currency: body.currency,
        charge_id: String::new(),
        gateway: Contract::Http,
    };
    Executed::done(answer(&bank.book(charge, outcome)))
}

/// Executes `GET ?order_id=...`: the newest charge of the order.
pub(super) fn find(bank: &Bank, request: &Request) -> Answer {
    let Some(order_id) = request.query_value("order_id") else {
        return problem(StatusCode::BAD_REQUEST, "invalid_request", "order_id is missing in the query");
    };
    match bank.newest(&order_id) {
        Some(attempted) => {
            let mut body = describe(attempted);
            set(&mut body, "attempt", json!(attempted.charge.attempt));
            Answer::json(StatusCode::OK, &body)
        }
        None => problem(StatusCode::NOT_FOUND, "not_found", "no charge for this order"),
    }
}

/// What a stored answer says when it is replayed. `processing` is not an end, so such an answer is brought up to
/// date; every other one is given again as it was.
pub(super) fn replay(bank: &Bank, stored: Answer) -> Answer {
    let was: Value = serde_json::from_slice(&stored.body).unwrap_or_default();
    let id =
        was.get("id").and_then(Value::as_str).filter(|_| was.get("status") == Some(&json!("processing")));
    id.and_then(|id| bank.by_id(id)).map_or(stored, answer)
}

/// An RFC 9457 problem.
pub(super) fn problem(status: StatusCode, code: &str, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "code": code, "detail": detail});
    Answer::text(status, "application/problem+json", body.to_string())
}

fn answer(attempted: &Attempted) -> Answer {
    Answer::json(StatusCode::OK, &describe(attempted))
}

fn describe(Attempted { charge, outcome }: &Attempted) -> Value {
    let mut body = json!({"id": charge.charge_id, "status": outcome.word()});
    if let Outcome::Failed(code) = outcome {
        set(&mut body, "code", json!(code));
    }
    body
}
