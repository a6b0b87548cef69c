//! The function of docs/your-own-lambda.md: each order gets one receipt instead of a charge.

use std::{process::ExitCode, time::Duration};

use charge_once::{
    charge::{LookUp, OneShotCharge},
    clients::Clients,
    config::Config,
    gateway::{Answer, GatewayError, IdempotencyKey, LookedUp, OneShotGateway, Receipt},
    lambda,
    ledger::dynamodb::DynamoDbLedger,
    order::Order,
    wiring::{self, StartError},
};

/// Sends a receipt for an order.
struct Receipts;

impl OneShotGateway for Receipts {
    fn provider(&self) -> &'static str {
        "receipts:default"
    }

    /// Your call goes here: under `key`, which is the same for every delivery of the order, and within `within`.
    async fn charge(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        within: Duration,
    ) -> Result<Answer, GatewayError> {
        let _your_call = (order.customer(), order.money(), key, within);
        Ok(Answer::Succeeded(Receipt { charge_id: format!("receipt-of-{}", order.id()), request_id: None }))
    }

    /// Whether a receipt was sent; asked only if `look_up` is on.
    async fn find(&self, _order: &Order, _within: Duration) -> Result<LookedUp, GatewayError> {
        Ok(LookedUp::Unclear)
    }
}

async fn step(
    config: &Config,
    clients: &Clients,
) -> Result<OneShotCharge<DynamoDbLedger, Receipts>, StartError> {
    let desk = wiring::desk(config, clients).await;
    Ok(OneShotCharge { desk, gateway: Receipts, key_window: config.key_window, look_up: LookUp::Off })
}

fn main() -> ExitCode {
    lambda::run(step)
}
