//! The `http` gateway: any provider that takes a charge in one idempotent POST.
//!
//! ```text
//! POST {GATEWAY_URL}
//! Idempotency-Key: "co1-..."            a structured-field string, as the IETF draft says
//! Authorization: Bearer ...             if a secret is set
//! {"order_id","attempt","amount_minor","currency","customer","payment_method"}
//!
//! 2xx {"id": "...", "status": "succeeded" | "processing" | "failed", "code"?: "..."}
//!
//! GET {GATEWAY_URL}?order_id=...        the same answer with "attempt"?, or 404
//! ```

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use serde::{Deserialize, Serialize};

use super::{
    Answer, GatewayError, GatewayErrorKind, IdempotencyKey, OneShotGateway, Receipt, Transport,
    secret::Credential,
    transport::{read_object, retry_after},
};
use crate::{clock::Clock, decision::Code, order::Order};

/// A provider behind one URL.
#[derive(Debug)]
pub struct HttpGateway {
    transport: Transport,
    url: Uri,
    credential: Credential,
    provider: String,
    clock: Clock,
}

#[derive(Serialize)]
struct ChargeBody<'a> {
    order_id: &'a str,
    attempt: u32,
    amount_minor: i64,
    currency: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_method: Option<&'a str>,
}

#[derive(Deserialize)]
struct AnswerBody {
    id: Option<String>,
    status: Option<String>,
    code: Option<String>,
    attempt: Option<u32>,
}

impl HttpGateway {
    /// A gateway at `url`. `account` tells this account's records from those of another.
    pub fn new(transport: Transport, url: Uri, credential: Credential, account: &str, clock: Clock) -> Self {
        Self { transport, url, credential, provider: format!("http:{account}"), clock }
    }

    async fn send(
        &self,
        method: Method,
        uri: Uri,
        key: Option<&IdempotencyKey>,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Response<Bytes>, GatewayError> {
        let mut request =
            Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
        if let Some(key) = key {
            request = request
                .header("idempotency-key", format!("\"{}\"", key.as_str()))
                .header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(bearer) = self.credential.bearer() {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        let request = request.body(Full::from(body)).map_err(|error| GatewayError {
            source: Some(Box::new(error)),
            ..GatewayError::new(GatewayErrorKind::NotSent, "the request could not be built")
        })?;
        let response = self.transport.send(request, within).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.credential.refused().await;
        }
        Ok(response)
    }

    fn judge(&self, response: &Response<Bytes>) -> Result<AnswerBody, GatewayError> {
        let status = response.status();
        let body: Option<AnswerBody> = read_object(response.body());
        if status.is_success() {
            return body.ok_or_else(|| {
                GatewayError::new(
                    GatewayErrorKind::Unknown { server_error: false },
                    format!("an answer {} that cannot be read", status.as_u16()),
                )
            });
        }
        let code = body.and_then(|body| body.code);
        let code =
            || code.as_deref().map_or_else(|| Code::new(&format!("http_{}", status.as_u16())), Code::new);
        let kind = match status {
            StatusCode::PAYMENT_REQUIRED => GatewayErrorKind::Declined(code()),
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => GatewayErrorKind::Rejected(code()),
            // What the draft says of a key that was used with another payload.
            StatusCode::UNPROCESSABLE_ENTITY => GatewayErrorKind::KeyMismatch,
            StatusCode::CONFLICT => GatewayErrorKind::Conflict,
            StatusCode::TOO_MANY_REQUESTS => GatewayErrorKind::RateLimited {
                retry_after: retry_after(response.headers(), self.clock.now()),
            },
            StatusCode::UNAUTHORIZED => GatewayErrorKind::AuthConfig { unauthenticated: true },
            StatusCode::FORBIDDEN => GatewayErrorKind::AuthConfig { unauthenticated: false },
            _ => GatewayErrorKind::Unknown { server_error: status.is_server_error() },
        };
        Err(GatewayError::new(kind, format!("status {}", status.as_u16())))
    }
}

/// Reads an answer; a success without a charge's name proves nothing.
fn answer(body: AnswerBody, request_id: Option<String>) -> Result<Answer, GatewayError> {
    match (body.status.as_deref(), body.id) {
        (Some("succeeded"), Some(id)) if !id.is_empty() => {
            Ok(Answer::Succeeded(Receipt { charge_id: Code::new(&id).as_str().to_owned(), request_id }))
        }
        (Some("processing"), _) => Ok(Answer::Processing),
        (Some("failed"), _) => Ok(Answer::Failed(Code::new(body.code.as_deref().unwrap_or("failed")))),
        _ => Err(GatewayError::new(
            GatewayErrorKind::Unknown { server_error: false },
            "an answer without a known `status` and an `id`",
        )),
    }
}

fn request_id(response: &Response<Bytes>) -> Option<String> {
    let id = ["request-id", "x-request-id"].into_iter().find_map(|name| response.headers().get(name))?;
    Some(Code::new(id.to_str().ok()?).as_str().to_owned())
}

impl OneShotGateway for HttpGateway {
    fn provider(&self) -> &str {
        &self.provider
    }

    async fn charge(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        within: Duration,
    ) -> Result<Answer, GatewayError> {
        let body = ChargeBody {
            order_id: order.id().as_str(),
            attempt: order.attempt(),
            amount_minor: order.money().minor(),
            currency: order.money().currency().code(),
            customer: order.customer(),
            payment_method: order.payment_method(),
        };
        let body = serde_json::to_vec(&body).map_err(|error| GatewayError {
            source: Some(Box::new(error)),
            ..GatewayError::new(GatewayErrorKind::NotSent, "the request could not be built")
        })?;
        let response = self.send(Method::POST, self.url.clone(), Some(key), body, within).await?;
        answer(self.judge(&response)?, request_id(&response))
    }

    async fn find(&self, order: &Order, within: Duration) -> Result<Option<Answer>, GatewayError> {
        let uri = with_order_id(&self.url, order)
            .ok_or_else(|| GatewayError::new(GatewayErrorKind::NotSent, "GATEWAY_URL takes no query"))?;
        let response = self.send(Method::GET, uri, None, Vec::new(), within).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = self.judge(&response)?;
        let of_this_attempt = body.attempt.is_none_or(|attempt| attempt == order.attempt());
        match body.status.as_deref() {
            Some("none") => Ok(None),
            Some(_) if !of_this_attempt => Ok(None),
            _ => answer(body, request_id(&response)).map(Some),
        }
    }
}

/// `order_id` needs no escaping: its alphabet is that of a query.
fn with_order_id(url: &Uri, order: &Order) -> Option<Uri> {
    let mut parts = url.clone().into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", |path| path.as_str());
    let separator = if path.contains('?') { '&' } else { '?' };
    parts.path_and_query = Some(format!("{path}{separator}order_id={}", order.id()).parse().ok()?);
    Uri::from_parts(parts).ok()
}
