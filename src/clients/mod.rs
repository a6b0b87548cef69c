//! The AWS clients, built once at start.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig, environment::EnvironmentVariableCredentialsProvider};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, TlsContext, rustls_provider::CryptoMode},
};

mod lazy;
mod roots;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use secrecy::zeroize::Zeroizing;

#[cfg(feature = "s3")]
use crate::payload::{self, Payloads};
use crate::{
    clock::Clock,
    config::{Environment, SecretSource},
    gateway::secret::{Credential, Fetch, Secret},
    ledger::dynamodb::DynamoDbLedger,
    queue::sqs::SqsQueue,
    telemetry::ErrorChain,
};

/// What a person may say beside the environment, under the names that AWS tools have for it.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// `--region`
    pub region: Option<String>,
    /// `--profile`
    pub profile: Option<String>,
    /// `--endpoint-url`
    pub endpoint_url: Option<String>,
}

/// Region, credentials and endpoints as AWS tools find them.
#[derive(Clone, Debug)]
pub struct Clients {
    sdk: SdkConfig,
    #[cfg(feature = "worker")]
    tls: TlsContext,
    /// Whether S3 is another endpoint than Amazon's own. Those know no bucket in front of their name.
    #[cfg(feature = "s3")]
    s3_is_elsewhere: bool,
}

/// Why there are no clients.
pub type LoadError = Box<dyn std::error::Error + Send + Sync>;

fn https(tls: &TlsContext) -> SharedHttpClient {
    let builder = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).tls_context(tls.clone());
    lazy::Unchecked(builder.build_https()).into_shared()
}

/// Whether the credentials are in the environment, as in Lambda. Nothing that the chain asks precedes them there, and
/// building what it asks (an STS and an IMDS client) is a fifth of a cold start.
fn has_credentials(environment: &impl Environment) -> bool {
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.trim().is_empty());
    set("AWS_ACCESS_KEY_ID") && set("AWS_SECRET_ACCESS_KEY")
}

impl Clients {
    /// Reads the environment and the credential chain.
    ///
    /// # Errors
    /// The certificate authorities cannot be used.
    pub async fn load(environment: &(impl Environment + Sync)) -> Result<Self, LoadError> {
        Self::load_as(environment, Choice::default()).await
    }

    /// Reads what the choice leaves open from the environment and the credential chain.
    ///
    /// # Errors
    /// The certificate authorities cannot be used.
    pub async fn load_as(environment: &(impl Environment + Sync), choice: Choice) -> Result<Self, LoadError> {
        let tls = roots::trusted(environment, choice.endpoint_url.as_deref())?;
        #[cfg(feature = "s3")]
        let s3_is_elsewhere = choice.endpoint_url.is_some()
            || ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
                .into_iter()
                .any(|name| environment.get(name).is_some_and(|url| !url.is_empty()));
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(https(&tls));
        if choice.profile.is_none() && has_credentials(environment) {
            loader = loader.credentials_provider(EnvironmentVariableCredentialsProvider::new());
        }
        if let Some(region) = choice.region {
            loader = loader.region(Region::new(region));
        }
        if let Some(profile) = choice.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(url) = choice.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        Ok(Self {
            sdk: loader.load().await,
            #[cfg(feature = "worker")]
            tls,
            #[cfg(feature = "s3")]
            s3_is_elsewhere,
        })
    }

    /// Whether it is known which Region to ask.
    #[cfg(feature = "cli")]
    pub fn has_region(&self) -> bool {
        self.sdk.region().is_some()
    }

    /// Looks for credentials as every call would.
    ///
    /// # Errors
    /// There are none, or those that are named cannot be had.
    #[cfg(feature = "cli")]
    pub async fn signer(&self) -> Result<(), LoadError> {
        use aws_sdk_sqs::config::ProvideCredentials;
        let provider = self.sdk.credentials_provider().ok_or("no source of credentials is configured")?;
        match provider.provide_credentials().await {
            Ok(_found) => Ok(()),
            Err(error) => Err(ErrorChain(&error).to_string().into()),
        }
    }

    /// The ledger in `table`.
    pub fn ledger(&self, table: &str) -> DynamoDbLedger {
        let config = DynamoDbLedger::configure(aws_sdk_dynamodb::config::Builder::from(&self.sdk));
        DynamoDbLedger::new(aws_sdk_dynamodb::Client::from_conf(config.build()), table)
    }

    /// The queue. Its client is made when it is first used: a Lambda function whose orders all succeed never does.
    pub fn queue(&self) -> SqsQueue {
        let sdk = self.sdk.clone();
        SqsQueue::made_by(move || {
            let config = SqsQueue::configure(aws_sdk_sqs::config::Builder::from(&sdk));
            aws_sdk_sqs::Client::from_conf(config.build())
        })
    }

    /// The queue of a worker: receives go over connections of their own, so that long polls never hold those that
    /// acknowledgements need.
    #[cfg(feature = "worker")]
    pub fn receiving_queue(&self) -> SqsQueue {
        let config = SqsQueue::configure_receiver(aws_sdk_sqs::config::Builder::from(&self.sdk));
        let receiver = aws_sdk_sqs::Client::from_conf(config.http_client(https(&self.tls)).build());
        self.queue().receiving_over(receiver)
    }

    /// The buckets that hold bodies which were too large for a message.
    #[cfg(feature = "s3")]
    pub fn payloads(&self, buckets: Vec<String>) -> Payloads {
        let config = payload::s3::configure(aws_sdk_s3::config::Builder::from(&self.sdk));
        let config = config.force_path_style(self.s3_is_elsewhere).build();
        Payloads::new(buckets, payload::s3::fetch(aws_sdk_s3::Client::from_conf(config)))
    }

    /// A client for what is asked of queues besides messages.
    #[cfg(feature = "cli")]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.sdk)
    }

    /// What reads any resource. Its handlers ask other services, so one call may take seconds.
    #[cfg(feature = "cli")]
    pub fn cloud_control(&self) -> aws_sdk_cloudcontrol::Client {
        use aws_sdk_cloudcontrol::config::timeout::TimeoutConfig;
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(3))
            .operation_attempt_timeout(Duration::from_secs(15))
            .operation_timeout(Duration::from_secs(40))
            .build();
        let config = aws_sdk_cloudcontrol::config::Builder::from(&self.sdk).timeout_config(timeouts);
        aws_sdk_cloudcontrol::Client::from_conf(config.build())
    }

    /// The provider's credential from where the settings say it is.
    ///
    /// # Errors
    /// Secrets Manager does not give it.
    pub async fn credential(&self, source: &SecretSource) -> Result<Credential, LoadError> {
        Ok(match source {
            SecretSource::None => Credential::fixed(None, Clock::system()),
            SecretSource::Given(secret) => Credential::fixed(Some(secret.clone()), Clock::system()),
            SecretSource::SecretsManager(id) => {
                let fetch = self.secret(id);
                let secret =
                    fetch().await.map_err(|error| format!("GATEWAY_SECRET_ARN: {}", ErrorChain(&*error)))?;
                Credential::renewable(secret, fetch, Clock::system())
            }
        })
    }

    /// How to read a secret from Secrets Manager, by ARN or name.
    pub fn secret(&self, id: &str) -> Fetch {
        use aws_sdk_secretsmanager::config::{Builder, timeout::TimeoutConfig};
        // An order waits for it after a 401: without a bound it would wait until its deadline and stay in doubt.
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(1))
            .operation_attempt_timeout(Duration::from_secs(2))
            .operation_timeout(Duration::from_secs(5))
            .build();
        let config = Builder::from(&self.sdk).timeout_config(timeouts).build();
        let (client, id) = (aws_sdk_secretsmanager::Client::from_conf(config), id.to_owned());
        Box::new(move || {
            let call = client.get_secret_value().secret_id(&id);
            Box::pin(async move {
                let answer = call.send().await?;
                let text = Zeroizing::new(answer.secret_string.ok_or("the secret holds no text")?);
                Ok(Secret::new(text.trim_end())?)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provided(key: &str, secret: &str) -> bool {
        has_credentials(&|name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some(key.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn the_chain_is_left_out_only_if_the_environment_has_both_parts() {
        assert!(provided("AKIDEXAMPLE", "secret"));
        assert!(!provided("AKIDEXAMPLE", " "));
        assert!(!provided("", "secret"));
        // Managed Instances and containers name a place to ask instead.
        let name_only = |name: &str| (name == "AWS_CONTAINER_CREDENTIALS_FULL_URI").then(String::new);
        assert!(!has_credentials(&name_only));
    }
}
