//! The answers that have nothing to do with a payment, in the words of either contract.

use std::time::{Duration, UNIX_EPOCH};

use http::StatusCode;

use super::{call::Contract, http_contract::problem, message::Answer, stripe::errors as stripe};
use crate::clock::Timestamp;

/// Why a request is answered without looking at it closely.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Unauthorized,
    NoSuchCall,
    KeyMissing,
    KeyInUse,
    KeyMismatch,
    LockTimeout,
    RateLimited {
        /// Seconds.
        retry_after: Option<u32>,
        /// The present, where `Retry-After` is to be a date.
        date_from: Option<Timestamp>,
    },
    /// What a script asks for.
    Scripted {
        status: u16,
        body: Option<String>,
        should_retry: Option<bool>,
    },
}

impl Refusal {
    pub(super) fn answer(self, contract: Contract) -> Answer {
        let say = |status, kind, code, message| match contract {
            Contract::Http => problem(status, code, message),
            Contract::Stripe => stripe::error(status, kind, code, message),
        };
        const INVALID: &str = "invalid_request_error";
        match self {
            Self::Unauthorized => say(StatusCode::UNAUTHORIZED, INVALID, "api_key_invalid", "wrong secret"),
            Self::NoSuchCall => match contract {
                Contract::Http => {
                    problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "use GET or POST")
                }
                Contract::Stripe => stripe::unrecognized(),
            },
            Self::KeyMissing => {
                say(StatusCode::BAD_REQUEST, INVALID, "idempotency_key_missing", "Idempotency-Key is missing")
            }
            Self::KeyInUse => {
                let message = "another request with this key is in progress";
                say(StatusCode::CONFLICT, INVALID, "idempotency_key_in_use", message)
            }
            Self::KeyMismatch => {
                let status = match contract {
                    Contract::Http => StatusCode::UNPROCESSABLE_ENTITY,
                    Contract::Stripe => StatusCode::BAD_REQUEST,
                };
                let message =
                    "keys can only be used with the parameters and endpoint they were first used with";
                say(status, "idempotency_error", "idempotency_key_reused", message)
            }
            Self::LockTimeout => say(
                StatusCode::TOO_MANY_REQUESTS,
                INVALID,
                "lock_timeout",
                "the object is locked by another request",
            ),
            Self::RateLimited { retry_after, date_from } => {
                let answer = say(StatusCode::TOO_MANY_REQUESTS, INVALID, "rate_limit", "too many requests");
                let value = retry_after.map(|seconds| wait(seconds, date_from));
                with(answer, "retry-after", value.as_deref())
            }
            Self::Scripted { status, body, should_retry } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let answer = match body {
                    Some(body) => Answer::text(status, "application/json", body),
                    None => say(status, "api_error", "simulated", "the fault script says so"),
                };
                let value = should_retry.map(|retry| if retry { "true" } else { "false" });
                with(answer, "stripe-should-retry", value)
            }
        }
    }
}

fn with(answer: Answer, name: &'static str, value: Option<&str>) -> Answer {
    match value {
        Some(value) => answer.with_header(name, value),
        None => answer,
    }
}

/// The value of `Retry-After`: seconds, or the date they end.
fn wait(seconds: u32, now: Option<Timestamp>) -> String {
    let date = now.and_then(|now| {
        let later = now.plus(Duration::from_secs(seconds.into()));
        let since_epoch = Duration::from_secs(u64::try_from(later.as_secs()).ok()?);
        UNIX_EPOCH.checked_add(since_epoch).map(httpdate::fmt_http_date)
    });
    date.unwrap_or_else(|| seconds.to_string())
}
