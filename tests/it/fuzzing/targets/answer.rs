//! What both kinds of provider have in common here: an answer made of the input, and what an error may say.

use std::{error::Error, future::Future, time::Duration};

use bytes::Bytes;
use charge_once::{
    clock::{Clock, Timestamp},
    gateway::{GatewayError, GatewayErrorKind, Receipt, Transport},
    order::{Order, OrderRules},
};
use http::{Response, header};

/// Long enough for every answer here, which is there at once.
pub(super) const WITHIN: Duration = Duration::from_secs(1);

/// A status, a `Retry-After` and a body: the first line, the second, and the rest of the input.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) status: u16,
    retry_after: Vec<u8>,
    pub(super) body: Bytes,
}

impl Given {
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let mut lines = data.splitn(3, |byte| *byte == b'\n');
        let status = std::str::from_utf8(lines.next()?).ok()?.parse().ok()?;
        let (retry_after, body) = (lines.next()?.to_owned(), Bytes::copy_from_slice(lines.next()?));
        (100..1000).contains(&status).then_some(Self { status, retry_after, body })
    }

    /// A transport whose every answer is this one.
    pub(super) fn transport(&self) -> Option<Transport> {
        let given = self.clone();
        given.response()?;
        Some(Transport::from_fn(move |_request| {
            let response = given.response().expect("it could be built before");
            Box::pin(async move { Ok(response) })
        }))
    }

    fn response(&self) -> Option<Response<Bytes>> {
        let mut response = Response::builder().status(self.status);
        if !self.retry_after.is_empty() {
            response = response.header(header::RETRY_AFTER, self.retry_after.as_slice());
        }
        response.body(self.body.clone()).ok()
    }
}

/// An instant at which everything here happens.
pub(super) fn clock() -> Clock {
    Clock::from_fn(|| Timestamp::from_millis(1_800_000_000_000))
}

/// The order that all answers are about.
pub(super) fn order() -> Order {
    let body = r#"{"order_id":"o-1","amount":49.90,"currency":"EUR","payment_method":"pm_1"}"#;
    let rules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };
    Order::parse(body, &rules).expect("a valid order")
}

/// Runs a call to its end.
pub(super) fn run<T>(call: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(call))
}

/// An error says a status and a code, never the provider's own sentence, and its pause is one that can be waited.
pub(super) fn assert_sound(error: &GatewayError, given: &Given) {
    let text = error.to_string();
    assert!(text.len() < 400 && !text.chars().any(char::is_control), "{text:?}");
    assert!(error.source().is_none(), "the parser's error may quote what the provider sent");
    let bounds = Duration::from_secs(1)..=Duration::from_secs(900);
    assert!(error.retry_after.is_none_or(|pause| bounds.contains(&pause)));
    let rate_limited = error.kind == GatewayErrorKind::RateLimited;
    assert!(!rate_limited || given.status == 429);
    assert_ne!(error.kind, GatewayErrorKind::NotSent, "what was answered was sent");
    let refused = matches!(error.kind, GatewayErrorKind::AuthConfig { unauthenticated: true });
    assert_eq!(refused, given.status == 401);
}

/// What is recorded of a charge can be written to the ledger and the log.
pub(super) fn assert_recordable(receipt: &Receipt) {
    for name in [Some(&receipt.charge_id), receipt.request_id.as_ref()].into_iter().flatten() {
        assert!(!name.is_empty() && name.len() <= 120 && name.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
