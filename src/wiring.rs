//! Settings -> what both shells run on.

use crate::{
    backoff::Random,
    batch::BatchRules,
    charge::{Delivery, Desk, OneShotCharge, Outcome, Step, TwoPhaseCharge},
    clients::Clients,
    clock::Clock,
    config::{Config, GatewayKind},
    gateway::{Transport, http::HttpGateway, stripe::StripeGateway},
    ledger::dynamodb::DynamoDbLedger,
    order::Order,
    payload::Payloads,
    spans::Spans,
    visibility::VisibilityRules,
};

/// Why a shell cannot start.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;

/// The charge step that the settings ask for.
#[derive(Debug)]
pub enum ConfiguredCharge {
    /// `GATEWAY=http`
    OneShot(OneShotCharge<DynamoDbLedger, HttpGateway>),
    /// `GATEWAY=stripe`
    TwoPhase(TwoPhaseCharge<DynamoDbLedger, StripeGateway>),
}

impl Step for ConfiguredCharge {
    async fn run(&self, order: &Order, delivery: &Delivery) -> Outcome {
        match self {
            Self::OneShot(charge) => charge.run(order, delivery).await,
            Self::TwoPhase(charge) => charge.run(order, delivery).await,
        }
    }
}

impl ConfiguredCharge {
    /// Reads the credential, opens the ledger and builds the step.
    ///
    /// # Errors
    /// The credential cannot be read, or the gateway's client cannot be built.
    pub async fn build(config: &Config, clients: &Clients) -> Result<Self, StartError> {
        Self::by_clock(config, clients, Clock::system()).await
    }

    /// The same by another clock than the machine's.
    ///
    /// # Errors
    /// The credential cannot be read, or the gateway's client cannot be built.
    pub async fn by_clock(config: &Config, clients: &Clients, clock: Clock) -> Result<Self, StartError> {
        // Side by side, because each opens a connection.
        let (credential, desk) = tokio::join!(clients.credential(&config.secret), desk(config, clients));
        let (credential, desk) = (credential?, Desk { clock: clock.clone(), ..desk });
        let transport = Transport::new()?;
        Ok(match config.gateway.clone() {
            GatewayKind::Http { url } => Self::OneShot(OneShotCharge {
                desk,
                gateway: HttpGateway::new(transport, url, credential, &config.account, clock),
                key_window: config.key_window,
                look_up: config.look_up,
            }),
            GatewayKind::Stripe { url } => Self::TwoPhase(TwoPhaseCharge {
                desk,
                gateway: StripeGateway::new(transport, url, credential, &config.account, clock)?,
            }),
        })
    }
}

/// Where bodies are read that were too large for a message; no client is made if no bucket is named.
#[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "nothing can be read"))]
pub fn payloads(config: &Config, clients: &Clients) -> Payloads {
    #[cfg(feature = "s3")]
    if !config.payload_buckets.is_empty() {
        return clients.payloads(config.payload_buckets.clone());
    }
    Payloads::none()
}

/// Where the records' spans go.
///
/// # Errors
/// The collector's client cannot be built.
#[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "nothing is sent"))]
pub fn spans(config: &Config) -> Result<Spans, StartError> {
    #[cfg(feature = "otel")]
    if let Some(collector) = &config.collector {
        return Ok(Spans::to(collector, &config.service, Transport::new()?)?);
    }
    Ok(Spans::off())
}

/// What every charge, or another gateway's step, keeps its orders with: the ledger's table and the rules.
pub async fn desk(config: &Config, clients: &Clients) -> Desk<DynamoDbLedger> {
    let ledger = clients.ledger(&config.ledger_table);
    if config.connects_early {
        ledger.warm().await;
    }
    Desk { ledger, rules: config.rules.clone(), clock: Clock::system(), random: Random::System }
}

/// How a batch runs.
pub fn batch_rules(config: &Config) -> BatchRules {
    BatchRules {
        concurrency: config.concurrency,
        time_to_begin: config.time_to_begin(),
        order: config.order,
        move_poison_to: config.move_poison_to.clone(),
    }
}

/// How long failed messages wait.
pub fn visibility_rules(config: &Config) -> VisibilityRules {
    VisibilityRules { backoff: config.backoff, max_receive_count: config.max_receive_count }
}
