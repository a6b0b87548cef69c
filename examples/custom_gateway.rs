//! Another step than a charge behind the same guarantees: a receipt is sent at most once for each order.
//!
//! `cargo run --all-features --example custom_gateway`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use charge_once::{
    backoff::Random,
    charge::{Delivery, Desk, LookUp, OneShotCharge, Rules, Step},
    clock::Clock,
    gateway::{Answer, GatewayError, IdempotencyKey, LookedUp, OneShotGateway, Receipt},
    ledger::memory::MemoryLedger,
    order::{Order, OrderRules},
};

/// Sends a receipt for an order. What it answers decides what is recorded, as with a charge: an error of kind
/// `Unknown` keeps the order in doubt, and the next delivery sends under the same key.
struct Receipts;

impl OneShotGateway for Receipts {
    fn provider(&self) -> &'static str {
        "receipts:default"
    }

    async fn charge(
        &self,
        order: &Order,
        key: &IdempotencyKey,
        _within: Duration,
    ) -> Result<Answer, GatewayError> {
        println!("sending the receipt of {}", order.id());
        Ok(Answer::Succeeded(Receipt { charge_id: key.as_str().to_owned(), request_id: None }))
    }

    async fn find(&self, _order: &Order, _within: Duration) -> Result<LookedUp, GatewayError> {
        Ok(LookedUp::Unclear)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (clock, seconds) = (Clock::system(), Duration::from_secs);
    let rules = Rules {
        lease: seconds(60),
        renews_lease: false,
        call_timeout: seconds(10),
        retention: seconds(180 * 86_400),
        epoch: None,
        ack_declined: false,
    };
    let desk = Desk { ledger: MemoryLedger::default(), rules, clock: clock.clone(), random: Random::System };
    let step = OneShotCharge { desk, gateway: Receipts, key_window: seconds(3600), look_up: LookUp::Off };
    let orders = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };
    let order = Order::parse(r#"{"order_id":"o-1","amount":49.90,"currency":"EUR"}"#, &orders)?;
    for _delivery in 0..2 {
        let deadline = clock.now().plus(seconds(30));
        let delivery = Delivery { message_id: None, receive_count: 1, sent_at: None, deadline };
        println!("{}", step.run(&order, &delivery).await.decision.reason());
    }
    Ok(())
}
