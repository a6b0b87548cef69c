//! An HTTP client that makes its connector when the first request needs it.
//!
//! The SDK has each new client check its HTTP client, and the check makes a connector, reads every certificate for
//! it, and throws it away. What it could find shows in the first request, which is made while the function starts.

use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};

/// The client inside, without the check.
#[derive(Debug)]
pub(super) struct Unchecked(pub(super) SharedHttpClient);

impl Unchecked {
    pub(super) fn into_shared(self) -> SharedHttpClient {
        SharedHttpClient::new(self)
    }
}

impl HttpClient for Unchecked {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }
}
