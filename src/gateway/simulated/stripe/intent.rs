//! A PaymentIntent and its states.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{
    bank::{Bank, Outcome, SimulatedCharge},
    call::Contract,
};
use crate::clock::Timestamp;

/// Stripe's statuses, without `requires_capture`: captures are always automatic here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    RequiresPaymentMethod,
    RequiresConfirmation,
    RequiresAction,
    Processing,
    Succeeded,
    /// With its `cancellation_reason`, if there is one.
    Canceled(Option<String>),
}

impl Status {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::RequiresPaymentMethod => "requires_payment_method",
            Self::RequiresConfirmation => "requires_confirmation",
            Self::RequiresAction => "requires_action",
            Self::Processing => "processing",
            Self::Succeeded => "succeeded",
            Self::Canceled(_) => "canceled",
        }
    }

    /// Whether the intent can still be confirmed or cancelled.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::RequiresPaymentMethod | Self::RequiresConfirmation | Self::RequiresAction => true,
            Self::Processing | Self::Succeeded | Self::Canceled(_) => false,
        }
    }
}

/// The handle: it makes at most one successful charge.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) created: Timestamp,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) customer: Option<String>,
    pub(super) payment_method: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) status: Status,
    pub(super) latest_charge: Option<String>,
    pub(super) last_error: Option<Value>,
}

impl Intent {
    pub(super) fn order_id(&self) -> Option<&str> {
        self.metadata.get("order_id").map(String::as_str)
    }

    /// Books a try to take the money and follows its outcome. Only for an intent that is open, which a
    /// succeeded one never is again: that is what makes it charge at most once.
    pub(super) fn book(&mut self, bank: &mut Bank, outcome: Outcome) {
        self.status = match outcome {
            Outcome::Succeeded => Status::Succeeded,
            Outcome::Processing(_) => Status::Processing,
            Outcome::Failed(_) => Status::RequiresPaymentMethod,
        };
        let charge = SimulatedCharge {
            order_id: self.order_id().unwrap_or_default().to_owned(),
            attempt: self.metadata.get("attempt").and_then(|attempt| attempt.parse().ok()).unwrap_or(1),
            amount_minor: self.amount,
            currency: self.currency.clone(),
            charge_id: String::new(),
            gateway: Contract::Stripe,
        };
        self.latest_charge = Some(bank.book(charge, outcome).charge.charge_id);
    }

    /// Follows a charge that was undecided and no longer is.
    pub(super) fn follow(&mut self, bank: &Bank) {
        if self.status != Status::Processing {
            return;
        }
        let charge = self.latest_charge.as_deref().and_then(|id| bank.by_id(id));
        match charge.map(|charge| &charge.outcome) {
            Some(Outcome::Succeeded) => self.status = Status::Succeeded,
            Some(Outcome::Failed(code)) => {
                self.status = Status::RequiresPaymentMethod;
                self.payment_method = None;
                self.last_error = Some(decline(code));
            }
            Some(Outcome::Processing(_)) | None => {}
        }
    }

    /// The object as Stripe shows it.
    pub(super) fn json(&self) -> Value {
        let reason = match &self.status {
            Status::Canceled(reason) => reason.as_deref(),
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::Processing
            | Status::Succeeded => None,
        };
        let succeeded = self.status == Status::Succeeded;
        let next_action = (self.status == Status::RequiresAction).then(|| json!({"type": "use_stripe_sdk"}));
        json!({
            "id": self.id,
            "object": "payment_intent",
            "amount": self.amount,
            "amount_received": if succeeded { self.amount } else { 0 },
            "cancellation_reason": reason,
            "capture_method": "automatic",
            "created": self.created.as_secs(),
            "currency": self.currency,
            "customer": self.customer,
            "last_payment_error": self.last_error,
            "latest_charge": self.latest_charge,
            "livemode": false,
            "metadata": self.metadata,
            "next_action": next_action,
            "payment_method": self.payment_method,
            "payment_method_types": ["card"],
            "status": self.status.word(),
        })
    }
}

/// The error of a declined charge, without the intent. Most reasons are `decline_code`s of the code
/// `card_declined`; a few are codes of their own.
pub(super) fn decline(reason: &str) -> Value {
    const OWN_CODES: [&str; 4] =
        ["authentication_required", "expired_card", "incorrect_cvc", "processing_error"];
    let code = if OWN_CODES.contains(&reason) { reason } else { "card_declined" };
    let decline_code = if reason == "card_declined" { "generic_decline" } else { reason };
    json!({
        "type": "card_error",
        "code": code,
        "decline_code": decline_code,
        "message": "Your card was declined.",
    })
}
