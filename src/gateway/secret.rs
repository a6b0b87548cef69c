//! The provider's credential: never printed, wiped when dropped, read again after the provider refused it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError, RwLock},
    time::Duration,
};

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

use crate::{
    clock::{Clock, Timestamp},
    telemetry::ErrorChain,
};

/// A refused credential is read again at most this often; the read at start does not count, because the key may have
/// been rotated a moment later.
const RENEW_EVERY: Duration = Duration::from_secs(300);

/// A credential that can be sent and not shown.
#[derive(Clone)]
pub struct Secret(SecretString);

/// The credential holds characters that no HTTP header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is empty or holds characters that an HTTP header cannot carry (a line break at its end?)")]
pub struct SecretError;

impl Secret {
    /// Takes the credential as the provider gave it.
    ///
    /// # Errors
    /// It cannot be sent as a bearer token.
    pub fn new(value: &str) -> Result<Self, SecretError> {
        let sendable = !value.is_empty() && HeaderValue::from_str(value).is_ok();
        if sendable { Ok(Self(value.into())) } else { Err(SecretError) }
    }

    fn bearer(&self) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!("Bearer {}", self.0.expose_secret()));
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// Reads the credential from where it is kept.
pub type Fetch = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Secret, Box<dyn std::error::Error + Send + Sync>>> + Send>>
        + Send
        + Sync,
>;

/// The credential in use.
pub struct Credential {
    current: RwLock<Option<Secret>>,
    fetch: Option<Fetch>,
    clock: Clock,
    renewed_at: Mutex<Option<Timestamp>>,
}

impl Credential {
    /// A credential that stays as it is; `None` sends none.
    pub fn fixed(secret: Option<Secret>, clock: Clock) -> Self {
        Self { current: RwLock::new(secret), fetch: None, renewed_at: Mutex::default(), clock }
    }

    /// A credential that was read with `fetch` and is read again after it was refused.
    pub fn renewable(secret: Secret, fetch: Fetch, clock: Clock) -> Self {
        Self { fetch: Some(fetch), ..Self::fixed(Some(secret), clock) }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.current.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether the credential starts with `prefix`, as test and live keys of a provider do.
    pub fn starts_with(&self, prefix: &str) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|secret| secret.0.expose_secret().starts_with(prefix))
    }

    /// Whether a text from outside quotes the credential.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|secret| text.contains(secret.0.expose_secret()))
    }

    /// Whether the credential is made of letters, digits, `_` and `-` alone, as keys are and JSON is not.
    pub fn is_plain_token(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|secret| secret.0.expose_secret().bytes().all(plain))
    }

    /// The value of the `Authorization` header.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.bearer()
    }

    /// The provider refused the credential: it may have been rotated. Reads it again, at most every five minutes and
    /// `within` what is left, because the order that met the refusal still has to be put on record. What is cut short
    /// does not count.
    pub(super) async fn refused(&self, within: Duration) {
        let Some(fetch) = &self.fetch else { return };
        {
            let mut renewed_at = self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.clock.now();
            if renewed_at.is_some_and(|last| now.since(last) < RENEW_EVERY) {
                return;
            }
            *renewed_at = Some(now);
        }
        match tokio::time::timeout(within, fetch()).await {
            Ok(Ok(secret)) => *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(secret),
            Ok(Err(error)) => {
                tracing::error!(error = %ErrorChain(&*error), "the gateway secret could not be read again");
            }
            Err(_elapsed) => *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) = None,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("sk_live_hush").unwrap();
        let credential = Credential::fixed(Some(secret.clone()), Clock::system());
        assert_eq!(format!("{secret:?} {credential:?}"), "Secret(redacted) Credential(redacted)");
        assert!(credential.bearer().unwrap().is_sensitive());
        for bad in ["", "a\n", "\u{7f}"] {
            assert!(Secret::new(bad).is_err());
        }
    }

    #[tokio::test]
    async fn a_refused_secret_is_read_again_at_most_every_five_minutes() {
        let now = Arc::new(AtomicI64::new(0));
        let clock = Clock::from_fn({
            let now = Arc::clone(&now);
            move || Timestamp::from_millis(now.load(Ordering::Relaxed))
        });
        let reads = Arc::new(AtomicUsize::new(0));
        let fetch: Fetch = Box::new({
            let reads = Arc::clone(&reads);
            move || {
                let read = reads.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move { Ok(Secret::new(&format!("new-{read}"))?) })
            }
        });
        let credential = Credential::renewable(Secret::new("old").unwrap(), fetch, clock);
        for (at, expected) in [(0, "Bearer new-0"), (299_000, "Bearer new-0"), (300_000, "Bearer new-1")] {
            now.store(at, Ordering::Relaxed);
            credential.refused(RENEW_EVERY).await;
            assert_eq!(credential.bearer().unwrap(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reading_again_takes_no_longer_than_is_left() {
        let slow: Fetch = Box::new(|| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(Secret::new("new")?)
            })
        });
        let clock = Clock::from_fn(|| Timestamp::from_millis(0));
        let credential = Credential::renewable(Secret::new("old").unwrap(), slow, clock);
        credential.refused(Duration::from_secs(1)).await;
        assert_eq!(credential.bearer().unwrap(), "Bearer old");
        // The read that was cut short does not stand in the way of the next one.
        credential.refused(Duration::from_secs(6)).await;
        assert_eq!(credential.bearer().unwrap(), "Bearer new");
    }
}
