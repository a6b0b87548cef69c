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
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Answer, GatewayError, GatewayErrorKind, IdempotencyKey, LookedUp, OneShotGateway, Receipt, Transport,
    secret::Credential,
    transport::{is_not_the_providers, read_object, retry_after},
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
    #[serde(default)]
    order_id: Value,
    #[serde(default)]
    amount_minor: Value,
    #[serde(default)]
    currency: Value,
}

impl AnswerBody {
    /// Whether what a look-up found names another order, or another amount. None of it need be there.
    fn is_about_another(&self, order: &Order) -> bool {
        let named = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (!value.is_null()).then_some(text)
        };
        let (minor, currency) = (order.money().minor().to_string(), order.money().currency().code());
        named(&self.order_id).is_some_and(|id| id != order.id().as_str())
            || named(&self.amount_minor).is_some_and(|amount| amount != minor)
            || named(&self.currency).is_some_and(|code| !code.eq_ignore_ascii_case(currency))
    }
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
        let begun = Instant::now();
        let response = self.transport.send(request, within).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.credential.refused(within.saturating_sub(begun.elapsed())).await;
        }
        Ok(response)
    }

    /// A provider that quotes the request must not get the credential into logs and records.
    fn without_secret(&self, body: AnswerBody) -> AnswerBody {
        AnswerBody { code: body.code.filter(|code| !self.credential.is_in(code)), ..body }
    }

    fn judge(&self, response: &Response<Bytes>) -> Result<AnswerBody, GatewayError> {
        let status = response.status();
        let body = read_object(response.body()).map(|body| self.without_secret(body));
        if status.is_success() {
            return body.ok_or_else(|| {
                GatewayError::new(
                    GatewayErrorKind::Unknown { server_error: false },
                    format!("an answer {} that cannot be read", status.as_u16()),
                )
            });
        }
        let says_something = body.as_ref().is_some_and(|body| body.code.is_some() || body.status.is_some());
        let code = body.and_then(|body| body.code);
        let code =
            || code.as_deref().map_or_else(|| Code::new(&format!("http_{}", status.as_u16())), Code::foreign);
        let kind = match status {
            _ if is_not_the_providers(response) => GatewayErrorKind::Unknown { server_error: false },
            StatusCode::PAYMENT_REQUIRED => GatewayErrorKind::Declined(code()),
            StatusCode::BAD_REQUEST => GatewayErrorKind::Rejected(code()),
            // A wrong path in GATEWAY_URL, and an ingress without the provider behind it, look like this.
            StatusCode::NOT_FOUND if !says_something => GatewayErrorKind::Unknown { server_error: false },
            StatusCode::NOT_FOUND => GatewayErrorKind::Rejected(code()),
            // What the draft says of a key that was used with another payload.
            StatusCode::UNPROCESSABLE_ENTITY => GatewayErrorKind::KeyMismatch,
            StatusCode::CONFLICT => GatewayErrorKind::Conflict,
            StatusCode::TOO_MANY_REQUESTS => GatewayErrorKind::RateLimited,
            StatusCode::UNAUTHORIZED => GatewayErrorKind::AuthConfig { unauthenticated: true },
            StatusCode::FORBIDDEN => GatewayErrorKind::AuthConfig { unauthenticated: false },
            _ => GatewayErrorKind::Unknown { server_error: status.is_server_error() },
        };
        let retry_after = retry_after(response.headers(), self.clock.now());
        Err(GatewayError { retry_after, ..GatewayError::new(kind, format!("status {}", status.as_u16())) })
    }
}

/// Reads an answer; a success without a charge's name proves nothing.
fn answer(body: AnswerBody, request_id: Option<String>) -> Result<Answer, GatewayError> {
    match (body.status.as_deref(), body.id) {
        (Some("succeeded"), Some(id)) if !id.is_empty() => {
            Ok(Answer::Succeeded(Receipt { charge_id: Code::new(&id).as_str().to_owned(), request_id }))
        }
        (Some("processing"), _) => Ok(Answer::Processing),
        (Some("failed"), _) => Ok(Answer::Failed(Code::foreign(body.code.as_deref().unwrap_or("failed")))),
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

    async fn find(&self, order: &Order, within: Duration) -> Result<LookedUp, GatewayError> {
        let uri = with_order_id(&self.url, order)
            .ok_or_else(|| GatewayError::new(GatewayErrorKind::NotSent, "GATEWAY_URL takes no query"))?;
        let response = self.send(Method::GET, uri, None, Vec::new(), within).await?;
        if response.status() == StatusCode::NOT_FOUND && !is_not_the_providers(&response) {
            return Ok(LookedUp::Nothing);
        }
        let body = self.judge(&response)?;
        if body.status.as_deref() == Some("none") {
            return Ok(LookedUp::Nothing);
        }
        // An answer that does not name its attempt is of the only one there is, or of an unknown one.
        let of_this_attempt = body.attempt.unwrap_or(1) == order.attempt() && !body.is_about_another(order);
        match answer(body, request_id(&response))? {
            answer if of_this_attempt => Ok(LookedUp::Charge(answer)),
            Answer::Succeeded(_) | Answer::Processing | Answer::Failed(_) => Ok(LookedUp::Unclear),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Timestamp, order::OrderRules};

    /// A gateway whose provider always answers so.
    fn answering(
        status: u16,
        header: Option<(&'static str, &'static str)>,
        body: &'static str,
    ) -> HttpGateway {
        let transport = Transport::from_fn(move |_request| {
            let mut response = Response::builder().status(status);
            if let Some((name, value)) = header {
                response = response.header(name, value);
            }
            let response = response.body(Bytes::from_static(body.as_bytes())).unwrap();
            Box::pin(async move { Ok(response) })
        });
        let clock = Clock::from_fn(|| Timestamp::from_millis(1_800_000_000_000));
        let credential = Credential::fixed(None, clock.clone());
        HttpGateway::new(
            transport,
            Uri::from_static("http://127.0.0.1/charges"),
            credential,
            "default",
            clock,
        )
    }

    fn order(attempt: u32) -> Order {
        let body = format!(r#"{{"order_id":"o-1","amount":1,"currency":"EUR","attempt":{attempt}}}"#);
        Order::parse(&body, &OrderRules { default_currency: None, max_amount_minor: 1000 }).unwrap()
    }

    async fn charge(gateway: HttpGateway) -> Result<Answer, GatewayError> {
        let order = order(1);
        let key = IdempotencyKey::new("http:default", order.id(), 1, crate::gateway::Operation::Charge);
        gateway.charge(&order, &key, Duration::from_secs(1)).await
    }

    #[tokio::test]
    async fn each_status_proves_what_the_table_says() {
        let code = |text: &str| Code::new(text);
        let cases = [
            (400, GatewayErrorKind::Rejected(code("http_400"))),
            (401, GatewayErrorKind::AuthConfig { unauthenticated: true }),
            (402, GatewayErrorKind::Declined(code("http_402"))),
            (403, GatewayErrorKind::AuthConfig { unauthenticated: false }),
            (404, GatewayErrorKind::Unknown { server_error: false }),
            (408, GatewayErrorKind::Unknown { server_error: false }),
            (409, GatewayErrorKind::Conflict),
            (422, GatewayErrorKind::KeyMismatch),
            (424, GatewayErrorKind::Unknown { server_error: false }),
            (429, GatewayErrorKind::RateLimited),
            (302, GatewayErrorKind::Unknown { server_error: false }),
            (500, GatewayErrorKind::Unknown { server_error: true }),
            (503, GatewayErrorKind::Unknown { server_error: true }),
        ];
        for (status, kind) in cases {
            for body in ["", r#"{"error":"in words"}"#] {
                assert_eq!(charge(answering(status, None, body)).await.unwrap_err().kind, kind, "{status}");
            }
        }
    }

    #[tokio::test]
    async fn what_stands_before_the_provider_ends_no_order() {
        let texts = ["404 page not found", "default backend - 404", "<html>", "[]", r#""Bad Request""#];
        for (status, body) in [400, 402, 404, 422].into_iter().flat_map(|it| texts.map(|text| (it, text))) {
            let error = charge(answering(status, None, body)).await.unwrap_err();
            assert_eq!(error.kind, GatewayErrorKind::Unknown { server_error: false }, "{status} {body}");
        }
        let refused = charge(answering(404, None, r#"{"code":"no_such_method"}"#)).await.unwrap_err();
        assert_eq!(refused.kind, GatewayErrorKind::Rejected(Code::new("no_such_method")));
        let no_route = r#"{"message":"Not Found"}"#;
        let error = charge(answering(404, None, no_route)).await.unwrap_err();
        assert_eq!(error.kind, GatewayErrorKind::Unknown { server_error: false });
        for body in texts.into_iter().chain([no_route]) {
            let found = answering(404, None, body).find(&order(1), Duration::from_secs(1)).await;
            assert_eq!(found.unwrap_err().kind, GatewayErrorKind::Unknown { server_error: false }, "{body}");
        }
    }

    #[tokio::test]
    async fn retry_after_counts_whatever_the_status() {
        for (value, seconds) in [
            ("120", Some(120)),
            ("0", Some(1)),
            ("99999999999999999999999", Some(900)),
            ("Fri, 15 Jan 2027 08:01:30 GMT", Some(90)),
            ("soon", None),
        ] {
            for status in [429, 503] {
                let error = charge(answering(status, Some(("retry-after", value)), "")).await.unwrap_err();
                assert_eq!(error.retry_after, seconds.map(Duration::from_secs), "{status} {value}");
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_no_proof_proves_nothing() {
        for body in [
            "",
            "null",
            "[]",
            r#"["ch_1","succeeded"]"#,
            r#"{"status":"succeeded"}"#,
            r#"{"id":"c","status":"new"}"#,
        ] {
            let error = charge(answering(200, None, body)).await.unwrap_err();
            assert_eq!(error.kind, GatewayErrorKind::Unknown { server_error: false }, "{body}");
            assert!(!error.to_string().contains("ch_1"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_look_up_counts_for_the_attempt_it_names() {
        let find = |attempt, status, body| async move {
            answering(status, None, body).find(&order(attempt), Duration::from_secs(1)).await.unwrap()
        };
        let paid =
            || LookedUp::Charge(Answer::Succeeded(Receipt { charge_id: "c".into(), request_id: None }));
        assert_eq!(find(1, 200, r#"{"id":"c","status":"succeeded"}"#).await, paid());
        assert_eq!(find(2, 200, r#"{"id":"c","status":"succeeded","attempt":2}"#).await, paid());
        assert_eq!(find(2, 200, r#"{"id":"c","status":"failed"}"#).await, LookedUp::Unclear);
        assert_eq!(find(1, 200, r#"{"id":"c","status":"succeeded","attempt":2}"#).await, LookedUp::Unclear);
        for other in
            [r#""order_id":"o-2""#, r#""order_id":"O-1""#, r#""amount_minor":101"#, r#""currency":"USD""#]
        {
            let body = format!(r#"{{"id":"c","status":"succeeded",{other}}}"#).leak();
            assert_eq!(find(1, 200, body).await, LookedUp::Unclear, "{other}");
        }
        let whole =
            r#"{"id":"c","status":"succeeded","order_id":"o-1","amount_minor":"100","currency":"eur"}"#;
        assert_eq!(find(1, 200, whole).await, paid());
        assert_eq!(find(1, 404, "").await, LookedUp::Nothing);
        assert_eq!(find(1, 200, r#"{"status":"none"}"#).await, LookedUp::Nothing);
    }
}
