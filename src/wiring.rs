//! Settings -> what both shells run on.

use crate::{
    backoff::Random,
    batch::BatchRules,
    charge::{Delivery, Desk, OneShotCharge, Outcome, Step, TwoPhaseCharge},
    clients::Clients,
    clock::Clock,
    config::{Config, Environment, GatewayKind},
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

/// When the connection to the ledger is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// While the process starts, so that the first order does not wait for it.
    Early,
    /// With the first order: nothing is gained by opening it before an order that waits already.
    WithTheFirstOrder,
}

impl Connect {
    /// Lambda starts a function on demand for an event that waits; with provisioned concurrency ahead of events.
    pub fn suits(environment: &impl Environment) -> Self {
        let on_demand =
            environment.get("AWS_LAMBDA_INITIALIZATION_TYPE").is_some_and(|kind| kind == "on-demand");
        if on_demand { Self::WithTheFirstOrder } else { Self::Early }
    }
}

impl ConfiguredCharge {
    /// Reads the credential, opens the ledger and builds the step.
    ///
    /// # Errors
    /// The credential cannot be read, or the gateway's client cannot be built.
    pub async fn build(config: &Config, clients: &Clients, connect: Connect) -> Result<Self, StartError> {
        let ledger = clients.ledger(&config.ledger_table);
        let opening = async {
            if connect == Connect::Early {
                ledger.warm().await;
            }
        };
        // Side by side, because each opens a connection.
        let (credential, ()) = tokio::join!(clients.credential(&config.secret), opening);
        let credential = credential?;
        let (transport, clock) = (Transport::new()?, Clock::system());
        let desk = Desk { ledger, rules: config.rules.clone(), clock: clock.clone(), random: Random::System };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_opened_ahead_unless_an_event_waits() {
        let of = |kind: Option<&str>| {
            let kind = kind.map(str::to_owned);
            Connect::suits(&move |_name: &str| kind.clone())
        };
        assert_eq!(of(Some("on-demand")), Connect::WithTheFirstOrder);
        assert_eq!(of(Some("provisioned-concurrency")), Connect::Early);
        assert_eq!(of(None), Connect::Early);
    }
}
