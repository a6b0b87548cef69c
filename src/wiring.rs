//! Settings -> what both shells run on.

#[cfg(feature = "worker")]
use std::sync::Arc;

#[cfg(feature = "lambda")]
use crate::handler::Handler;
#[cfg(feature = "worker")]
use crate::worker::{Monitor, Worker, WorkerRules};
use crate::{
    backoff::Random,
    charge::{Delivery, Desk, OneShotCharge, Outcome, Step, TwoPhaseCharge},
    clients::Clients,
    clock::Clock,
    config::{Config, GatewayKind},
    gateway::{Transport, http::HttpGateway, stripe::StripeGateway},
    ledger::dynamodb::DynamoDbLedger,
    order::Order,
};
#[cfg(any(feature = "lambda", feature = "worker"))]
use crate::{
    batch::BatchRules, payload::Payloads, queue::sqs::SqsQueue, spans::Spans, telemetry,
    visibility::VisibilityRules,
};
#[cfg(feature = "cli")]
use crate::{charge::Sweep, clock::Timestamp, ledger::Entry, order::OrderId};

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

#[cfg(feature = "cli")]
impl Sweep for ConfiguredCharge {
    async fn sweep(&self, order_id: &OrderId, entry: &Entry, deadline: Timestamp) -> Outcome {
        match self {
            Self::OneShot(charge) => Box::pin(charge.sweep(order_id, entry, deadline)).await,
            Self::TwoPhase(charge) => Box::pin(charge.sweep(order_id, entry, deadline)).await,
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

/// What works on Lambda's events with this step, by this clock.
///
/// # Errors
/// The client of the collector of spans cannot be built.
#[cfg(feature = "lambda")]
pub fn handler<S>(
    config: Config,
    clients: &Clients,
    step: S,
    clock: Clock,
) -> Result<Handler<S, SqsQueue>, StartError> {
    Ok(Handler {
        step,
        queue: clients.queue(),
        payloads: payloads(&config, clients),
        spans: spans(&config)?,
        batch: batch_rules(&config),
        visibility: visibility_rules(&config),
        queue_url: config.queue_url,
        service: config.service,
        default_timeout: config.default_timeout,
        clock,
        random: Random::System,
        emit: telemetry::print_line,
    })
}

/// What works on a queue without Lambda, with this step and by this clock.
///
/// # Errors
/// The client of the collector of spans cannot be built.
#[cfg(feature = "worker")]
pub fn worker<S>(
    config: Config,
    clients: &Clients,
    step: S,
    rules: WorkerRules,
    clock: Clock,
) -> Result<Worker<S, SqsQueue>, StartError> {
    Ok(Worker {
        step,
        queue: Arc::new(clients.receiving_queue()),
        payloads: payloads(&config, clients),
        spans: spans(&config)?,
        rules,
        batch: batch_rules(&config),
        visibility: visibility_rules(&config),
        service: config.service,
        monitor: Arc::new(Monitor::new(clock.clone())),
        clock,
        random: Random::System,
        emit: telemetry::print_line,
    })
}

/// Where bodies are read that were too large for a message; no client is made if no bucket is named.
#[cfg(any(feature = "lambda", feature = "worker"))]
#[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "nothing can be read"))]
fn payloads(config: &Config, clients: &Clients) -> Payloads {
    #[cfg(feature = "s3")]
    if !config.payload_buckets.is_empty() {
        return clients.payloads(config.payload_buckets.clone());
    }
    Payloads::none()
}

/// Where the records' spans go.
#[cfg(any(feature = "lambda", feature = "worker"))]
#[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "nothing is sent"))]
fn spans(config: &Config) -> Result<Spans, StartError> {
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
        // What is wrong with the table, the first order tells.
        drop(ledger.warm().await);
    }
    Desk { ledger, rules: config.rules.clone(), clock: Clock::system(), random: Random::System }
}

/// How a batch runs.
#[cfg(any(feature = "lambda", feature = "worker"))]
fn batch_rules(config: &Config) -> BatchRules {
    BatchRules {
        concurrency: config.concurrency,
        time_to_begin: config.time_to_begin(),
        order: config.order,
        move_poison_to: config.move_poison_to.clone(),
    }
}

/// How long failed messages wait.
#[cfg(any(feature = "lambda", feature = "worker"))]
fn visibility_rules(config: &Config) -> VisibilityRules {
    VisibilityRules { backoff: config.backoff, max_receive_count: config.max_receive_count }
}
