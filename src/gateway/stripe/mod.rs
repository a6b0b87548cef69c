//! Stripe's PaymentIntents: a handle that makes at most one successful charge, for ever.
//!
//! An intent is created without confirming it (no money moves), stored, then confirmed. A declined intent could
//! still be confirmed by somebody, so it is cancelled before the decline is recorded.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    GatewayError, GatewayErrorKind, IdempotencyKey, Sighting, Transport, TwoPhaseGateway, secret::Credential,
};
use crate::{
    clock::Clock,
    decision::{Code, PoisonReason},
    order::Order,
};

pub mod amount;
mod answer;

/// The API version that the requests and answers here are written for.
pub const VERSION: &str = "2025-09-30.clover";

/// The PaymentIntents API of one account.
#[derive(Debug)]
pub struct StripeGateway {
    transport: Transport,
    url: Uri,
    credential: Credential,
    mode: &'static str,
    provider: String,
    clock: Clock,
}

/// The settings do not make a Stripe gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripeConfigError {
    /// There is no key.
    #[error("GATEWAY=stripe needs a key: set GATEWAY_SECRET_ARN (or GATEWAY_SECRET for local use)")]
    NoKey,
    /// Publishable keys cannot charge, and a secret that is JSON is not the key itself.
    #[error(
        "the Stripe key must be a secret or restricted key (sk_... or rk_...) as plain text, not as JSON"
    )]
    NotASecretKey,
}

impl StripeGateway {
    /// A gateway to the account that the credential belongs to.
    ///
    /// # Errors
    /// There is no key, or one that cannot charge.
    pub fn new(
        transport: Transport,
        url: Uri,
        credential: Credential,
        account: &str,
        clock: Clock,
    ) -> Result<Self, StripeConfigError> {
        if credential.is_none() {
            return Err(StripeConfigError::NoKey);
        }
        let mode = mode(&credential).ok_or(StripeConfigError::NotASecretKey)?;
        Ok(Self { transport, url, provider: format!("stripe:{account}:{mode}"), mode, credential, clock })
    }

    async fn call(
        &self,
        order: &Order,
        call: Call<'_>,
        within: Duration,
    ) -> Result<answer::Intent, GatewayError> {
        let unbuilt = |source: Box<dyn std::error::Error + Send + Sync>| GatewayError {
            source: Some(source),
            ..GatewayError::new(GatewayErrorKind::NotSent, "the request could not be built")
        };
        let base = self.url.to_string();
        let uri: Uri = format!("{}/v1/payment_intents{}", base.trim_end_matches('/'), call.path())
            .parse()
            .map_err(|error: http::uri::InvalidUri| unbuilt(error.into()))?;
        let mut request = Request::builder().method(call.method).uri(uri).header(VERSION_HEADER, VERSION);
        if let Some(key) = call.key {
            request = request
                .header(KEY_HEADER, key.as_str())
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        if let Some(bearer) = self.credential.bearer() {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        let request = request.body(Full::from(call.form)).map_err(|error| unbuilt(error.into()))?;
        let begun = Instant::now();
        if mode(&self.credential) != Some(self.mode) {
            // It is not what the records name, and may have been put there by mistake.
            self.credential.refused(within.saturating_sub(begun.elapsed())).await;
            let kind = GatewayErrorKind::AuthConfig { unauthenticated: true };
            return Err(GatewayError::new(kind, "the key that was read again is of another mode"));
        }
        let response: Response<Bytes> = self.transport.send(request, within).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.credential.refused(within.saturating_sub(begun.elapsed())).await;
        }
        answer::read(&response, order, call.handle, self.clock.now())
    }
}

/// A call of the API, but for what all calls have alike.
struct Call<'a> {
    method: Method,
    /// The intent it is about; none makes one.
    handle: Option<&'a str>,
    /// What is done with it.
    action: &'static str,
    key: Option<&'a IdempotencyKey>,
    form: String,
}

impl Call<'_> {
    fn path(&self) -> String {
        self.handle.map_or_else(String::new, |handle| format!("/{handle}{}", self.action))
    }
}

/// The key's mode, which is part of the record: an order of one mode is never settled by a key of the other. `None` if
/// the key cannot charge.
fn mode(credential: &Credential) -> Option<&'static str> {
    let is = |prefix: &str| credential.starts_with(prefix);
    let can_charge = !is("pk_") && credential.is_plain_token();
    can_charge.then(|| if is("sk_test_") || is("rk_test_") { "test" } else { "live" })
}

const VERSION_HEADER: HeaderName = HeaderName::from_static("stripe-version");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl TwoPhaseGateway for StripeGateway {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn accept(&self, order: &Order) -> Result<(), PoisonReason> {
        if order.payment_method().is_none() {
            return Err(PoisonReason::PaymentMethodMissing);
        }
        amount::on_the_wire(order.money()).map(drop).ok_or(PoisonReason::AmountNotRepresentable)
    }

    async fn prepare(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        within: Duration,
    ) -> Result<String, GatewayError> {
        let amount = amount::on_the_wire(order.money())
            .ok_or_else(|| GatewayError::new(GatewayErrorKind::NotSent, "the amount cannot be expressed"))?;
        let (amount, attempt) = (amount.to_string(), order.attempt().to_string());
        let currency = order.money().currency().code().to_ascii_lowercase();
        let mut fields = vec![
            ("amount", amount.as_str()),
            ("currency", &currency),
            ("payment_method_types[]", "card"),
            ("metadata[order_id]", order.id().as_str()),
            ("metadata[attempt]", &attempt),
        ];
        fields.extend(order.customer().map(|customer| ("customer", customer)));
        fields.extend(order.payment_method().map(|method| ("payment_method", method)));
        let form = form(&fields);
        let call = Call { method: Method::POST, handle: None, action: "", key: Some(key), form };
        let intent = self.call(order, call, within).await.map_err(|error| {
            // Not the intent is missing, which does not exist yet, but something that the order names.
            let missing = error.kind == GatewayErrorKind::NotFound;
            let kind =
                if missing { GatewayErrorKind::Rejected(Code::new("resource_missing")) } else { error.kind };
            GatewayError { kind, ..error }
        })?;
        match intent.sighting.is_ours {
            true => Ok(intent.id),
            false => {
                Err(GatewayError::new(GatewayErrorKind::KeyMismatch, "the key belongs to another intent"))
            }
        }
    }

    async fn commit(
        &self,
        order: &Order,
        handle: &str,
        key: &IdempotencyKey,
        within: Duration,
    ) -> Result<Sighting, GatewayError> {
        let form = form(&[("off_session", "true"), ("error_on_requires_action", "true")]);
        let handle = Some(handle);
        let call = Call { method: Method::POST, handle, action: "/confirm", key: Some(key), form };
        Ok(self.call(order, call, within).await?.sighting)
    }

    async fn inspect(&self, order: &Order, handle: &str, within: Duration) -> Result<Sighting, GatewayError> {
        let call =
            Call { method: Method::GET, handle: Some(handle), action: "", key: None, form: String::new() };
        Ok(self.call(order, call, within).await?.sighting)
    }

    async fn seal(
        &self,
        order: &Order,
        handle: &str,
        key: &IdempotencyKey,
        within: Duration,
    ) -> Result<Sighting, GatewayError> {
        let form = form(&[("cancellation_reason", "abandoned")]);
        let handle = Some(handle);
        let call = Call { method: Method::POST, handle, action: "/cancel", key: Some(key), form };
        Ok(self.call(order, call, within).await?.sighting)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::{
        gateway::secret::{Fetch, Secret},
        order::OrderRules,
    };

    fn provider(key: Option<&str>) -> Result<String, StripeConfigError> {
        let credential = Credential::fixed(key.map(|key| Secret::new(key).unwrap()), Clock::system());
        let url = Uri::from_static("https://api.stripe.com");
        let transport = Transport::from_fn(|_request| unreachable!("nothing is sent"));
        StripeGateway::new(transport, url, credential, "acct_1", Clock::system())
            .map(|gateway| gateway.provider)
    }

    #[test]
    fn the_mode_of_the_key_is_part_of_the_provider() {
        assert_eq!(provider(Some("sk_test_1")).unwrap(), "stripe:acct_1:test");
        assert_eq!(provider(Some("rk_live_1")).unwrap(), "stripe:acct_1:live");
    }

    #[tokio::test]
    async fn a_key_of_another_mode_is_never_sent() {
        let sent = Arc::new(AtomicUsize::new(0));
        let transport = Transport::from_fn({
            let sent = Arc::clone(&sent);
            move |_request| {
                sent.fetch_add(1, Ordering::Relaxed);
                Box::pin(async { Ok(Response::builder().status(401).body(Bytes::new()).unwrap()) })
            }
        });
        let fetch: Fetch = Box::new(|| Box::pin(async { Ok(Secret::new("sk_live_2")?) }));
        let credential = Credential::renewable(Secret::new("sk_test_1").unwrap(), fetch, Clock::system());
        let url = Uri::from_static("https://api.stripe.com");
        let gateway = StripeGateway::new(transport, url, credential, "acct_1", Clock::system()).unwrap();
        let rules = OrderRules { default_currency: None, max_amount_minor: 100 };
        let order = Order::parse(r#"{"order_id":"o-1","amount":1,"currency":"EUR"}"#, &rules).unwrap();
        for _ in 0..2 {
            let error = gateway.inspect(&order, "pi_1", Duration::from_secs(1)).await.unwrap_err();
            assert_eq!(error.kind, GatewayErrorKind::AuthConfig { unauthenticated: true });
            assert_eq!(sent.load(Ordering::Relaxed), 1, "the live key that was read again stays here");
        }
    }

    #[tokio::test]
    async fn an_id_that_cannot_be_part_of_an_address_is_no_handle() {
        let rules = OrderRules { default_currency: None, max_amount_minor: 100 };
        let order = Order::parse(r#"{"order_id":"o-1","amount":1,"currency":"EUR"}"#, &rules).unwrap();
        let long = "p".repeat(256);
        for (id, is_handle) in
            [("pi_1", true), ("", false), ("pi 1", false), ("../accounts?", false), (long.as_str(), false)]
        {
            let body = format!(
                r#"{{"id":"{id}","status":"requires_confirmation","amount":100,"currency":"eur","metadata":{{"order_id":"o-1"}}}}"#
            );
            let transport = Transport::from_fn(move |_request| {
                let answer = Response::new(Bytes::from(body.clone()));
                Box::pin(async move { Ok(answer) })
            });
            let credential = Credential::fixed(Some(Secret::new("sk_test_1").unwrap()), Clock::system());
            let url = Uri::from_static("https://api.stripe.com");
            let gateway = StripeGateway::new(transport, url, credential, "a", Clock::system()).unwrap();
            let create = crate::gateway::Operation::Create { generation: 0 };
            let key = IdempotencyKey::new("stripe:a:test", order.id(), 1, create);
            let prepared = gateway.prepare(&order, &key, Duration::from_secs(1)).await;
            assert_eq!(prepared.is_ok_and(|handle| handle == id), is_handle, "{id}");
        }
    }

    #[tokio::test]
    async fn an_answer_about_another_intent_proves_nothing() {
        let rules = OrderRules { default_currency: None, max_amount_minor: 100 };
        let order = Order::parse(r#"{"order_id":"o-1","amount":1,"currency":"EUR"}"#, &rules).unwrap();
        let intent = r#"{"id":"pi_2","status":"succeeded","amount":100,"currency":"eur","metadata":{"order_id":"o-1"}}"#;
        let refusal = format!(r#"{{"error":{{"type":"invalid_request_error","payment_intent":{intent}}}}}"#);
        for (status, body) in [(200, intent.to_owned()), (400, refusal)] {
            let transport = Transport::from_fn(move |_request| {
                let answer = Response::builder().status(status).body(Bytes::from(body.clone())).unwrap();
                Box::pin(async move { Ok(answer) })
            });
            let credential = Credential::fixed(Some(Secret::new("sk_test_1").unwrap()), Clock::system());
            let url = Uri::from_static("https://api.stripe.com");
            let gateway = StripeGateway::new(transport, url, credential, "a", Clock::system()).unwrap();
            let seen = |id| gateway.inspect(&order, id, Duration::from_secs(1));
            let error = seen("pi_1").await.unwrap_err();
            assert!(error.sighting.is_none(), "{status}");
            let ours = seen("pi_2").await;
            assert!(ours.is_ok() || ours.is_err_and(|error| error.sighting.is_some()), "{status}");
        }
    }

    #[test]
    fn what_cannot_be_a_secret_key_is_refused() {
        assert_eq!(provider(None), Err(StripeConfigError::NoKey));
        for key in ["pk_live_1", r#"{"key":"sk_live_1"}"#, "Bearer sk_live_1"] {
            assert_eq!(provider(Some(key)), Err(StripeConfigError::NotASecretKey), "{key}");
        }
    }
}
