//! Stripe's error bodies.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    super::message::{Answer, set},
    intent::Intent,
};

/// The intent is not in a state that allows the action.
pub(super) fn unexpected_state(intent: &Intent, action: &str) -> Answer {
    let message = format!(
        "You cannot {action} this PaymentIntent because it has a status of {}.",
        intent.status.word()
    );
    let mut error = error_value("invalid_request_error", "payment_intent_unexpected_state", &message);
    set(&mut error, "payment_intent", intent.json());
    Answer::json(StatusCode::BAD_REQUEST, &json!({ "error": error }))
}

/// A parameter that cannot be used.
pub(super) fn bad(code: &str, message: &str) -> Answer {
    invalid(StatusCode::BAD_REQUEST, code, message)
}

/// A request that cannot be executed.
pub(super) fn invalid(status: StatusCode, code: &str, message: &str) -> Answer {
    error(status, "invalid_request_error", code, message)
}

/// The answer to a call that does not exist.
pub(in super::super) fn unrecognized() -> Answer {
    invalid(StatusCode::NOT_FOUND, "url_invalid", "Unrecognized request URL")
}

/// An error without an intent.
pub(in super::super) fn error(status: StatusCode, kind: &str, code: &str, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": error_value(kind, code, message) }))
}

fn error_value(kind: &str, code: &str, message: &str) -> Value {
    json!({"type": kind, "code": code, "message": message})
}
