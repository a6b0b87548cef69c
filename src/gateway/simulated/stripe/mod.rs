//! Stripe's PaymentIntents as far as the two-phase protocol uses them: create, confirm, retrieve, cancel.
//!
//! Where it deviates from Stripe:
//! - captures are automatic, `requires_capture` does not exist; there is no search, list, update or `expand`;
//! - one account in test mode, one secret; API versions are accepted and not told apart;
//! - a request refused for its parameters (400, 404) leaves its key unused; at Stripe some of these are stored;
//! - a payment method is a token that says what it does; a customer is never looked up;
//! - an intent in `processing` cannot be cancelled;
//! - intents expire by themselves only where the script says so.

pub(super) mod errors;
pub(super) mod form;
mod intent;

use std::{collections::BTreeMap, time::Duration};

use http::StatusCode;
use serde_json::json;

use self::{
    errors::{bad, invalid, unexpected_state, unrecognized},
    form::Form,
    intent::{Intent, Status, decline},
};
use super::{
    bank::{Bank, Outcome},
    call::{Call, Operation},
    card::Card,
    course::{Executed, Twist},
    message::{Answer, Request, set},
};
use crate::clock::Timestamp;

/// The parameters that are understood, or accepted because they change nothing here. Any other is refused, as
/// at Stripe.
const CREATE: [&str; 14] = [
    "amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "confirmation_method",
    "currency",
    "customer",
    "description",
    "error_on_requires_action",
    "metadata",
    "off_session",
    "payment_method",
    "payment_method_types",
    "statement_descriptor_suffix",
];
const CONFIRM: [&str; 4] = ["error_on_requires_action", "off_session", "payment_method", "return_url"];
const CANCEL: [&str; 1] = ["cancellation_reason"];
const REASONS: [&str; 4] = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"];

/// The intents by identifier.
#[derive(Debug, Default)]
pub(super) struct Intents(BTreeMap<String, Intent>);

impl Intents {
    /// The order an intent was made for.
    pub(super) fn order_of(&self, id: &str) -> Option<&str> {
        self.0.get(id)?.order_id()
    }

    /// Follows charges that were decided, and cancels open intents that are older than `age`.
    pub(super) fn settle(&mut self, bank: &Bank, age: Option<Duration>, now: Timestamp) {
        for intent in self.0.values_mut() {
            intent.follow(bank);
            if age.is_some_and(|age| now.since(intent.created) >= age) && intent.status.is_open() {
                intent.status = Status::Canceled(Some("automatic".to_owned()));
            }
        }
    }

    /// Executes a call.
    pub(super) fn execute(
        &mut self,
        bank: &mut Bank,
        call: &Call,
        request: &Request,
        twist: &Twist,
        now: Timestamp,
    ) -> Executed {
        let form = Form::parse(&request.body);
        let result = match call.operation {
            Operation::Create => self.create(bank, &form, twist, now),
            Operation::Confirm => self.find(&call.intent).and_then(|it| confirm(it, bank, &form, twist, now)),
            Operation::Cancel => self.find(&call.intent).and_then(|it| cancel(it, &form)),
            Operation::Retrieve => self.find(&call.intent).map(|it| shown(it)),
            Operation::Charge | Operation::Find => Err(unrecognized()),
        };
        result.map_or_else(Executed::refused, Executed::done)
    }

    fn find(&mut self, id: &str) -> Result<&mut Intent, Answer> {
        let message = format!("No such payment_intent: '{id}'");
        self.0.get_mut(id).ok_or_else(|| invalid(StatusCode::NOT_FOUND, "resource_missing", &message))
    }

    fn create(
        &mut self,
        bank: &mut Bank,
        form: &Form,
        twist: &Twist,
        now: Timestamp,
    ) -> Result<Answer, Answer> {
        known(form, &CREATE)?;
        let amount =
            form.get("amount").and_then(|amount| amount.parse().ok()).filter(|amount: &i64| *amount > 0);
        let amount =
            amount.ok_or_else(|| bad("parameter_invalid_integer", "Invalid positive integer: amount"))?;
        let currency =
            form.get("currency").filter(|it| it.len() == 3 && it.bytes().all(|b| b.is_ascii_alphabetic()));
        let currency = currency.ok_or_else(|| bad("parameter_missing", "Invalid currency"))?;
        let payment_method = form.get("payment_method").map(str::to_owned);
        usable(payment_method.as_deref())?;
        let id = format!("pi_sim_{}", self.0.len().saturating_add(1));
        let status = if payment_method.is_some() {
            Status::RequiresConfirmation
        } else {
            Status::RequiresPaymentMethod
        };
        let intent = Intent {
            id: id.clone(),
            created: now,
            amount,
            currency: currency.to_ascii_lowercase(),
            customer: form.get("customer").map(str::to_owned),
            payment_method,
            metadata: form.map("metadata").map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            status,
            latest_charge: None,
            last_error: None,
        };
        let intent = self.0.entry(id).or_insert(intent);
        if form.is_true("confirm") { take(intent, bank, form, twist, now) } else { Ok(shown(intent)) }
    }
}

fn confirm(
    intent: &mut Intent,
    bank: &mut Bank,
    form: &Form,
    twist: &Twist,
    now: Timestamp,
) -> Result<Answer, Answer> {
    known(form, &CONFIRM)?;
    usable(form.get("payment_method"))?;
    if !intent.status.is_open() {
        return Ok(unexpected_state(intent, "confirm"));
    }
    if let Some(payment_method) = form.get("payment_method") {
        intent.payment_method = Some(payment_method.to_owned());
    }
    take(intent, bank, form, twist, now)
}

/// Tries to take the money for an open intent.
fn take(
    intent: &mut Intent,
    bank: &mut Bank,
    form: &Form,
    twist: &Twist,
    now: Timestamp,
) -> Result<Answer, Answer> {
    let Some(payment_method) = intent.payment_method.as_deref() else {
        return Ok(unexpected_state(intent, "confirm without a payment method"));
    };
    let card = Card::of(payment_method);
    let absent = form.is_true("off_session") || form.is_true("error_on_requires_action");
    let refused = match (twist, card) {
        (Twist::Processing(settle), _) => {
            intent.book(bank, Outcome::Processing(now.plus(*settle)));
            None
        }
        (Twist::Decline(code), _) => Some(code.clone()),
        (Twist::None, Card::Declines(code)) => Some(code),
        (Twist::None, Card::NeedsCustomer) if absent => Some("authentication_required".to_owned()),
        (Twist::None, Card::NeedsCustomer) => {
            intent.status = Status::RequiresAction;
            None
        }
        (Twist::None, Card::Good | Card::Missing) => {
            intent.last_error = None;
            intent.book(bank, Outcome::Succeeded);
            None
        }
    };
    Ok(match refused {
        Some(code) => declined(intent, bank, code),
        None => shown(intent),
    })
}

/// The issuer said no: the intent is open again and has lost its payment method.
fn declined(intent: &mut Intent, bank: &mut Bank, code: String) -> Answer {
    let mut error = decline(&code);
    intent.last_error = Some(error.clone());
    intent.payment_method = None;
    intent.book(bank, Outcome::Failed(code));
    set(&mut error, "charge", json!(intent.latest_charge));
    set(&mut error, "payment_intent", intent.json());
    Answer::json(StatusCode::PAYMENT_REQUIRED, &json!({ "error": error }))
}

fn cancel(intent: &mut Intent, form: &Form) -> Result<Answer, Answer> {
    known(form, &CANCEL)?;
    let reason = form.get("cancellation_reason");
    if reason.is_some_and(|reason| !REASONS.contains(&reason)) {
        return Err(bad("parameter_invalid_enum", "Invalid cancellation_reason"));
    }
    if !intent.status.is_open() {
        return Ok(unexpected_state(intent, "cancel"));
    }
    intent.status = Status::Canceled(reason.map(str::to_owned));
    Ok(shown(intent))
}

fn shown(intent: &Intent) -> Answer {
    Answer::json(StatusCode::OK, &intent.json())
}

fn known(form: &Form, names: &[&str]) -> Result<(), Answer> {
    let unknown = form.names().find(|name| !names.contains(name));
    unknown
        .map_or(Ok(()), |name| Err(bad("parameter_unknown", &format!("Received unknown parameter: {name}"))))
}

fn usable(payment_method: Option<&str>) -> Result<(), Answer> {
    match payment_method.map(Card::of) {
        Some(Card::Missing) => Err(bad("resource_missing", "No such PaymentMethod")),
        Some(Card::Good | Card::Declines(_) | Card::NeedsCustomer) | None => Ok(()),
    }
}
