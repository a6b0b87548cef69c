//! The environment of the function in local mode: the one wiring between the deployed binary and its stand-ins.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::local::runtime_api::FUNCTION_NAME;

/// Which of the provider's two contracts the function speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// One call that charges.
    #[default]
    Http,
    /// Stripe's two-phase PaymentIntents.
    Stripe,
}

/// Where the stand-ins listen.
#[derive(Debug)]
pub struct Endpoints<'a> {
    /// The Runtime API.
    pub runtime: SocketAddr,
    /// The URL of the embedded DynamoDB.
    pub dynamodb: &'a str,
    /// The URL of the SQS endpoint.
    pub sqs: &'a str,
    /// The URL of the simulated provider.
    pub provider: &'a str,
    /// Which of the provider's contracts is spoken.
    pub contract: Provider,
    /// The ledger's table.
    pub table: &'a str,
}

/// Every variable of the function's process; nothing is inherited.
pub fn environment(endpoints: &Endpoints<'_>) -> BTreeMap<String, String> {
    let base = endpoints.provider.trim_end_matches('/');
    let (gateway, gateway_url) = match endpoints.contract {
        Provider::Http => ("http", format!("{base}/charges")),
        Provider::Stripe => ("stripe", base.to_owned()),
    };
    let runtime = endpoints.runtime.to_string();
    [
        ("LEDGER_TABLE", endpoints.table),
        ("GATEWAY", gateway),
        ("GATEWAY_URL", &gateway_url),
        ("GATEWAY_SECRET", "sk_test_local"),
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoints.dynamodb),
        ("AWS_ENDPOINT_URL_SQS", endpoints.sqs),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_LAMBDA_RUNTIME_API", &runtime),
        ("AWS_LAMBDA_FUNCTION_NAME", FUNCTION_NAME),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}
