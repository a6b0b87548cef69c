//! Which certificate authorities the AWS clients trust.
//!
//! Reading the system's 140 certificates was three quarters of the instructions of a cold start, and AWS's own
//! endpoints use five: those of Amazon Trust Services (<https://www.amazontrust.com/repository/>). So these are
//! built in, and the system's are read only where something else may answer.

use aws_smithy_http_client::tls::{TlsContext, TrustStore};

use crate::config::Environment;

/// The roots of Amazon Trust Services, which expire between 2037 and 2040.
const AMAZON: &[u8] = include_bytes!("amazon-roots.pem");
/// Partitions whose endpoints may have certificates of others.
const OTHER_ISSUERS: [&str; 4] = ["cn-", "us-iso", "eu-iso", "eusc-"];
/// Variables by which operators bring their own authorities.
const OWN_AUTHORITIES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Variables that send calls to another endpoint.
const ENDPOINTS: [&str; 5] = [
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_SQS",
    "AWS_ENDPOINT_URL_SECRETS_MANAGER",
];

/// The authorities for this environment, and for an endpoint that was named beside it.
///
/// # Errors
/// `AWS_CA_BUNDLE` names a file that cannot be read, or the certificates cannot be used.
pub(super) fn trusted(
    environment: &impl Environment,
    endpoint: Option<&str>,
) -> Result<TlsContext, Box<dyn std::error::Error + Send + Sync>> {
    let store = match environment.get("AWS_CA_BUNDLE").filter(|path| !path.is_empty()) {
        Some(path) => {
            let bundle =
                std::fs::read(&path).map_err(|error| format!("AWS_CA_BUNDLE cannot be read: {error}"))?;
            TrustStore::default().with_pem_certificate(bundle)
        }
        None if needs_system_roots(environment, endpoint) => TrustStore::default(),
        None => TrustStore::empty().with_pem_certificate(AMAZON),
    };
    Ok(TlsContext::builder().with_trust_store(store).build()?)
}

fn needs_system_roots(environment: &impl Environment, endpoint: Option<&str>) -> bool {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or_default();
    OWN_AUTHORITIES.into_iter().any(|name| set(name).is_some())
        || ENDPOINTS
            .into_iter()
            .filter_map(set)
            .chain(endpoint.map(str::to_owned))
            .any(|url| !url.starts_with("http://"))
        || OTHER_ISSUERS.into_iter().any(|prefix| region.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(variables: &[(&str, &str)]) -> bool {
        let get = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        needs_system_roots(&get, None)
    }

    #[test]
    fn the_system_is_asked_only_where_others_may_answer() {
        assert!(!needs(&[("AWS_REGION", "eu-west-1")]));
        assert!(!needs(&[("AWS_REGION", "us-gov-west-1"), ("AWS_ENDPOINT_URL", "")]));
        assert!(!needs(&[("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:8000")]));
        assert!(needs(&[("AWS_REGION", "cn-north-1")]));
        assert!(needs(&[("AWS_ENDPOINT_URL_SQS", "https://vpce.example")]));
        assert!(needs(&[("SSL_CERT_FILE", "/etc/ssl/own.pem")]));
    }

    #[test]
    fn the_built_in_roots_can_be_used() {
        assert!(trusted(&|_: &str| None, None).is_ok());
        let missing = |name: &str| (name == "AWS_CA_BUNDLE").then(|| "/nonexistent".to_owned());
        assert!(trusted(&missing, None).unwrap_err().to_string().starts_with("AWS_CA_BUNDLE cannot be read"));
    }
}
