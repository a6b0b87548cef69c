//! The AWS clients, built once at start.

use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

mod roots;

use crate::{
    config::Environment,
    gateway::secret::{Fetch, Secret},
    ledger::dynamodb::DynamoDbLedger,
    queue::sqs::SqsQueue,
};

/// Region, credentials and endpoints as AWS tools find them.
#[derive(Clone, Debug)]
pub struct Clients {
    sdk: SdkConfig,
}

impl Clients {
    /// Reads the environment and the credential chain.
    ///
    /// # Errors
    /// The certificate authorities cannot be used.
    pub async fn load(
        environment: &(impl Environment + Sync),
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let http = Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .tls_context(roots::trusted(environment)?)
            .build_https();
        let sdk = aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(http).load().await;
        Ok(Self { sdk })
    }

    /// The ledger in `table`.
    pub fn ledger(&self, table: &str) -> DynamoDbLedger {
        let config = DynamoDbLedger::configure(aws_sdk_dynamodb::config::Builder::from(&self.sdk));
        DynamoDbLedger::new(aws_sdk_dynamodb::Client::from_conf(config.build()), table)
    }

    /// The queue.
    pub fn queue(&self) -> SqsQueue {
        let config = SqsQueue::configure(aws_sdk_sqs::config::Builder::from(&self.sdk));
        SqsQueue::new(aws_sdk_sqs::Client::from_conf(config.build()))
    }

    /// The queue of a worker: receives go over connections of their own, so that long polls never hold those that
    /// acknowledgements need.
    #[cfg(feature = "worker")]
    pub fn receiving_queue(&self) -> SqsQueue {
        let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let config = SqsQueue::configure_receiver(aws_sdk_sqs::config::Builder::from(&self.sdk));
        let receiver = aws_sdk_sqs::Client::from_conf(config.http_client(http).build());
        self.queue().receiving_over(receiver)
    }

    /// A client for what is asked of queues besides messages.
    #[cfg(feature = "cli")]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.sdk)
    }

    /// How to read a secret from Secrets Manager, by ARN or name.
    pub fn secret(&self, id: &str) -> Fetch {
        let (client, id) = (aws_sdk_secretsmanager::Client::new(&self.sdk), id.to_owned());
        Box::new(move || {
            let call = client.get_secret_value().secret_id(&id);
            Box::pin(async move {
                let answer = call.send().await?;
                let text = answer.secret_string().ok_or("the secret holds no text")?;
                Ok(Secret::new(text.trim_end())?)
            })
        })
    }
}
