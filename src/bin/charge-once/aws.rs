//! The options that every AWS tool has, and what a person types where a setting is read.

use std::time::Duration;

use charge_once::{
    clients::{Choice, Clients, LoadError},
    clock::parse_duration,
    config::ProcessEnvironment,
};
use clap::builder::NonEmptyStringValueParser;

/// Which account, Region and endpoint; what is not given is found as AWS tools find it
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "AWS")]
pub(crate) struct AwsArgs {
    /// The Region
    #[arg(long, global = true)]
    region: Option<String>,
    /// The profile of the shared configuration
    #[arg(long, global = true)]
    profile: Option<String>,
    /// Another endpoint for every service; `AWS_ENDPOINT_URL_SQS` and `AWS_ENDPOINT_URL_DYNAMODB` name one each
    #[arg(long, global = true, value_name = "URL")]
    endpoint_url: Option<String>,
}

impl AwsArgs {
    pub(crate) async fn clients(&self) -> Result<Clients, LoadError> {
        let choice = Choice {
            region: self.region.clone(),
            profile: self.profile.clone(),
            endpoint_url: self.endpoint_url.clone(),
        };
        let clients = Clients::load_as(&ProcessEnvironment, choice).await?;
        ready(&clients).await?;
        Ok(clients)
    }
}

/// Says before the first call what every call would fail of, and what to do about it.
pub(crate) async fn ready(clients: &Clients) -> Result<(), LoadError> {
    if !clients.has_region() {
        return Err("no Region: give --region, or set AWS_REGION or a Region in the profile".into());
    }
    match clients.signer().await {
        Ok(()) => Ok(()),
        Err(error) => Err(format!(
            "no credentials: give --profile, sign in (`aws sso login`), or set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY; an emulator takes any: {error}"
        )
        .into()),
    }
}

/// Which table the ledger is
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TableArg {
    /// The ledger's table
    #[arg(long, env = "LEDGER_TABLE", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) table: String,
}

/// Reads `500ms`, `30s`, `15m`, `20h` or `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a duration such as 30s, 15m, 20h or 7d".to_owned())
}

/// Reads a queue's URL: SQS takes nothing else, and a name or an ARN would fail much later.
pub(crate) fn queue_url(text: &str) -> Result<String, &'static str> {
    let uri: http::Uri = text.parse().map_err(|_| NOT_A_URL)?;
    let is_url = matches!(uri.scheme_str(), Some("https" | "http")) && uri.path().len() > 1;
    if is_url { Ok(text.to_owned()) } else { Err(NOT_A_URL) }
}

const NOT_A_URL: &str =
    "write the queue's URL, such as https://sqs.eu-central-1.amazonaws.com/111122223333/orders";
