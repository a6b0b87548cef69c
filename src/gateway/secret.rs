//! The provider's credential: never printed, wiped when dropped.

use std::fmt;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// A credential that can be sent and not shown.
#[derive(Clone)]
pub struct Secret {
    value: SecretString,
    header: HeaderValue,
}

/// The credential holds characters that no HTTP header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway secret is empty or holds characters that an HTTP header cannot carry (a line break at its end?)")]
pub struct SecretError;

impl Secret {
    /// Takes the credential as the provider gave it.
    ///
    /// # Errors
    /// It cannot be sent as a bearer token.
    pub fn new(value: &str) -> Result<Self, SecretError> {
        if value.is_empty() {
            return Err(SecretError);
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {value}")).map_err(|_invalid| SecretError)?;
        header.set_sensitive(true);
        Ok(Self { value: value.into(), header })
    }

    /// The value of the `Authorization` header.
    pub(super) fn bearer(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether the credential starts with `prefix`, as test and live keys of a provider do.
    pub fn starts_with(&self, prefix: &str) -> bool {
        self.value.expose_secret().starts_with(prefix)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}
