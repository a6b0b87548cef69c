//! What Stripe's answers say about an intent, and what its errors prove.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Deserialize;

use super::amount;
use crate::{
    clock::Timestamp,
    decision::Code,
    gateway::{
        GatewayError, GatewayErrorKind, HandleStatus, Receipt, Sighting,
        transport::{is_not_the_providers, read_object, retry_after},
    },
    order::Order,
};

/// Longest id of an object; Stripe says that ids have at most 255 characters.
const LONGEST_ID: usize = 255;

/// An intent as far as it matters here.
#[derive(Debug)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) sighting: Sighting,
}

#[derive(Deserialize)]
struct IntentBody {
    id: String,
    status: String,
    amount: i64,
    currency: String,
    #[serde(default)]
    metadata: Metadata,
    latest_charge: Option<LatestCharge>,
    cancellation_reason: Option<String>,
    last_payment_error: Option<ErrorBody>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    order_id: Option<String>,
}

/// An identifier, or the whole charge where somebody expanded it.
#[derive(Deserialize)]
#[serde(untagged)]
enum LatestCharge {
    Id(String),
    Charge { id: String },
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    decline_code: Option<String>,
    message: Option<String>,
    payment_intent: Option<Box<IntentBody>>,
}

/// What Stripe writes where a setting is wrong and not an order: a key of the other mode, and a `GATEWAY_URL` with a
/// path. Both have the code and type of an order's own fault, or none.
const WRONG_SETTING: [&str; 2] = ["a similar object exists in", "Unrecognized request URL"];

impl ErrorBody {
    /// Whether Stripe's words are about a setting. The words are read and never kept.
    fn is_about_a_setting(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default();
        WRONG_SETTING.iter().any(|words| message.contains(words))
    }

    /// The most exact of the codes; never the message.
    fn code(&self) -> Option<Code> {
        self.decline_code.as_deref().or(self.code.as_deref()).or(self.kind.as_deref()).map(Code::foreign)
    }
}

/// Reads an answer about an intent of `order`: about `handle`, once there is one.
pub(super) fn read(
    response: &Response<Bytes>,
    order: &Order,
    handle: Option<&str>,
    now: Timestamp,
) -> Result<Intent, GatewayError> {
    let request_id = response
        .headers()
        .get("request-id")
        .and_then(|id| id.to_str().ok())
        .map(|id| Code::new(id).as_str().to_owned());
    if response.status().is_success() {
        let body: IntentBody = read_object(response.body()).ok_or_else(|| {
            GatewayError::new(
                GatewayErrorKind::Unknown { server_error: false },
                "an answer that cannot be read",
            )
        })?;
        let id = body.id.clone();
        let unclear =
            |context| Err(GatewayError::new(GatewayErrorKind::Unknown { server_error: false }, context));
        if handle.is_some_and(|handle| handle != id) {
            return unclear("an answer about another intent");
        }
        return match sighting(body, order, request_id) {
            Some(sighting) if is_name(&id) => Ok(Intent { id, sighting }),
            Some(_) => unclear("an intent whose id cannot be part of an address"),
            None => unclear("an intent in a state that this version does not know"),
        };
    }
    Err(error(response, order, handle, request_id, now))
}

/// Whether the id can be stored and asked for: as a handle it becomes part of the path of every later call.
fn is_name(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(plain)
}

fn error(
    response: &Response<Bytes>,
    order: &Order,
    handle: Option<&str>,
    request_id: Option<String>,
    now: Timestamp,
) -> GatewayError {
    let status = response.status();
    let body = read_object::<ErrorAnswer>(response.body()).map(|answer| answer.error);
    let kind = body.as_ref().and_then(|body| body.kind.as_deref()).unwrap_or_default();
    let code = body.as_ref().and_then(ErrorBody::code);
    let named = body.as_ref().and_then(|body| body.code.as_deref()).unwrap_or_default();
    let proof = || code.clone().unwrap_or_else(|| Code::new(&format!("http_{}", status.as_u16())));
    let proves = match (status, kind, named) {
        _ if is_not_the_providers(response) => GatewayErrorKind::Unknown { server_error: false },
        (StatusCode::UNAUTHORIZED, ..) => GatewayErrorKind::AuthConfig { unauthenticated: true },
        (StatusCode::FORBIDDEN, ..) => GatewayErrorKind::AuthConfig { unauthenticated: false },
        (StatusCode::BAD_REQUEST, "idempotency_error", _) => GatewayErrorKind::KeyMismatch,
        (StatusCode::PAYMENT_REQUIRED, ..) | (_, "card_error", _) => GatewayErrorKind::Declined(proof()),
        (StatusCode::CONFLICT, ..) => GatewayErrorKind::Conflict,
        (StatusCode::TOO_MANY_REQUESTS, _, "lock_timeout") => GatewayErrorKind::Lock,
        (StatusCode::TOO_MANY_REQUESTS, ..) => GatewayErrorKind::RateLimited,
        // The key belongs to another mode than the objects it names: a setting is wrong, not an order.
        (
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND,
            _,
            "livemode_mismatch" | "testmode_charges_only",
        ) => GatewayErrorKind::AuthConfig { unauthenticated: false },
        (StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND, ..)
            if body.as_ref().is_some_and(ErrorBody::is_about_a_setting) =>
        {
            GatewayErrorKind::AuthConfig { unauthenticated: false }
        }
        (StatusCode::NOT_FOUND, ..) => GatewayErrorKind::NotFound,
        (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, ..) => {
            GatewayErrorKind::Rejected(proof())
        }
        _ => GatewayErrorKind::Unknown { server_error: status.is_server_error() },
    };
    let context = match &code {
        Some(code) => format!("status {}, {code}", status.as_u16()),
        None => format!("status {}", status.as_u16()),
    };
    let seen = body
        .and_then(|body| body.payment_intent)
        .filter(|intent| handle == Some(intent.id.as_str()))
        .and_then(|intent| sighting(*intent, order, request_id));
    let retry_after = retry_after(response.headers(), now);
    GatewayError { retry_after, sighting: seen.map(Box::new), ..GatewayError::new(proves, context) }
}

/// `None` for a status that is not known here: nothing is concluded from it.
fn sighting(body: IntentBody, order: &Order, request_id: Option<String>) -> Option<Sighting> {
    let money = order.money();
    let is_ours = Some(body.amount) == amount::on_the_wire(money)
        && body.currency.eq_ignore_ascii_case(money.currency().code())
        && body.metadata.order_id.as_deref() == Some(order.id().as_str());
    let charge = body.latest_charge.map(|charge| match charge {
        LatestCharge::Id(id) | LatestCharge::Charge { id } => id,
    });
    let status = match body.status.as_str() {
        "succeeded" => HandleStatus::Succeeded(Receipt {
            charge_id: Code::new(charge.as_deref().unwrap_or(&body.id)).as_str().to_owned(),
            request_id,
        }),
        "requires_confirmation" => HandleStatus::Ready { untouched: charge.is_none() },
        "processing" => HandleStatus::Processing,
        "requires_payment_method" => {
            let code = body.last_payment_error.as_ref().and_then(ErrorBody::code);
            HandleStatus::Failed(code.unwrap_or_else(|| Code::new("requires_payment_method")))
        }
        "requires_action" => HandleStatus::Failed(Code::new("authentication_required")),
        // Only manual capture gets there, which is never asked for: somebody else changed the intent.
        "requires_capture" => HandleStatus::Processing,
        "canceled" => match body.cancellation_reason.as_deref() {
            Some("automatic" | "expired") => HandleStatus::Expired,
            Some("abandoned") => HandleStatus::Sealed(
                body.last_payment_error
                    .as_ref()
                    .and_then(ErrorBody::code)
                    .unwrap_or_else(|| Code::new("canceled")),
            ),
            reason => {
                HandleStatus::Sealed(Code::foreign(&format!("canceled_{}", reason.unwrap_or("by_somebody"))))
            }
        },
        _ => return None,
    };
    Some(Sighting { is_ours, status })
}
