//! Which call a request is: what a fault rule can match and what an idempotency key is bound to.

use http::Method;
use serde::{Deserialize, Serialize};

use super::{message::Request, stripe::form::Form};

/// The contract a request speaks, told by its path: `/v1/...` is Stripe's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    /// The one-shot contract of the `http` gateway.
    Http,
    /// Stripe's PaymentIntents.
    Stripe,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// http: `POST` to any path.
    Charge,
    /// http: `GET ?order_id=...`.
    Find,
    /// Stripe: `POST /v1/payment_intents`.
    Create,
    /// Stripe: `POST /v1/payment_intents/{id}/confirm`.
    Confirm,
    /// Stripe: `GET /v1/payment_intents/{id}`.
    Retrieve,
    /// Stripe: `POST /v1/payment_intents/{id}/cancel`.
    Cancel,
}

impl Operation {
    /// Whether the operation can move money, and so be declined.
    pub fn charges(self) -> bool {
        match self {
            Self::Charge | Self::Confirm => true,
            Self::Find | Self::Create | Self::Retrieve | Self::Cancel => false,
        }
    }
}

/// A request that was understood.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) contract: Contract,
    pub(super) operation: Operation,
    /// The intent named in the path; empty where there is none.
    pub(super) intent: String,
    /// The order, as far as the request itself says it.
    pub(super) order_id: Option<String>,
    /// The key, on operations that change something.
    pub(super) key: Option<String>,
    /// What must be equal when a key is used again.
    pub(super) parameters: Vec<u8>,
}

impl Call {
    /// Understands a request; `None` where the contract knows no such call.
    pub(super) fn of(request: &Request) -> Option<Self> {
        match contract(request) {
            Contract::Http => Self::http(request),
            Contract::Stripe => Self::stripe(request),
        }
    }

    fn http(request: &Request) -> Option<Self> {
        let operation = match request.method {
            Method::POST => Operation::Charge,
            Method::GET => Operation::Find,
            _ => return None,
        };
        let in_body = || serde_json::from_slice::<OrderOnly>(&request.body).ok().map(|body| body.order_id);
        Some(Self {
            contract: Contract::Http,
            operation,
            intent: String::new(),
            order_id: if operation == Operation::Find { request.query_value("order_id") } else { in_body() },
            key: request.idempotency_key().filter(|_| operation == Operation::Charge),
            parameters: fingerprint(request, &request.body),
        })
    }

    fn stripe(request: &Request) -> Option<Self> {
        let mut rest = request.path.strip_prefix("/v1/payment_intents")?.split('/').skip(1);
        let (intent, action, end) = (rest.next().unwrap_or(""), rest.next(), rest.next());
        let posted = request.method == Method::POST;
        let operation = match (posted, intent.is_empty(), action, end) {
            (true, true, None, None) => Operation::Create,
            (true, false, Some("confirm"), None) => Operation::Confirm,
            (true, false, Some("cancel"), None) => Operation::Cancel,
            (false, false, None, None) if request.method == Method::GET => Operation::Retrieve,
            _ => return None,
        };
        let form = Form::parse(&request.body);
        Some(Self {
            contract: Contract::Stripe,
            operation,
            intent: intent.to_owned(),
            order_id: form.get("metadata[order_id]").map(str::to_owned),
            key: request.idempotency_key().filter(|_| posted),
            parameters: fingerprint(request, &form.canonical()),
        })
    }
}

/// The contract that answers a request, also one it does not understand.
pub(super) fn contract(request: &Request) -> Contract {
    if request.path.starts_with("/v1/") { Contract::Stripe } else { Contract::Http }
}

/// A key is bound to its endpoint as well as to the parameters.
fn fingerprint(request: &Request, parameters: &[u8]) -> Vec<u8> {
    [request.method.as_str().as_bytes(), request.path.as_bytes(), parameters].join(&0)
}

#[derive(Deserialize)]
struct OrderOnly {
    order_id: String,
}
