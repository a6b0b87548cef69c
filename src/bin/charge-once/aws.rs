//! The options that every AWS tool has, and what a person types where a setting is read.

use std::time::Duration;

use charge_once::{
    clients::{Choice, Clients, LoadError},
    config::ProcessEnvironment,
};

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
        Clients::load_as(&ProcessEnvironment, choice).await
    }
}

/// Which table the ledger is
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TableArg {
    /// The ledger's table
    #[arg(long, env = "LEDGER_TABLE", value_name = "NAME")]
    pub(crate) table: String,
}

/// Reads `500ms`, `30s`, `15m`, `20h` or `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    charge_once::redrive::duration(text)
        .ok_or_else(|| "write a duration such as 30s, 15m, 20h or 7d".to_owned())
}
