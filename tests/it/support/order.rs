//! Orders, deliveries and a clock that only the test moves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use charge_once::{
    charge::{Delivery, Rules},
    clock::{Clock, Timestamp},
    order::{Order, OrderRules},
};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A clock that only the test moves.
#[derive(Clone)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Default for Hands {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(1_800_000_000_000)))
    }
}

impl Hands {
    pub(crate) fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::from_fn(move || hands.now())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    /// Other hands that stand where these are now.
    pub(crate) fn frozen(&self) -> Self {
        Self(Arc::new(AtomicI64::new(self.now().as_millis())))
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

/// An order of 49.90 EUR paid with `payment_method`.
pub(crate) fn order(order_id: &str, payment_method: &str) -> Order {
    let body = format!(
        r#"{{"order_id":"{order_id}","amount":49.90,"currency":"EUR","payment_method":"{payment_method}"}}"#
    );
    let rules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };
    Order::parse(&body, &rules).unwrap()
}

/// The settings as they are by default.
pub(crate) fn rules() -> Rules {
    Rules {
        lease: Duration::from_secs(60),
        renews_lease: false,
        call_timeout: Duration::from_secs(10),
        retention: 180 * 24 * HOUR,
        epoch: None,
        ack_declined: false,
    }
}

/// A delivery of a message that reached the queue at `sent_at`, to an invocation that may run for half a minute.
pub(crate) fn delivery(hands: &Hands, sent_at: Timestamp, receive_count: u32) -> Delivery {
    Delivery {
        message_id: None,
        receive_count,
        sent_at: Some(sent_at),
        deadline: hands.now().plus(Duration::from_secs(30)),
    }
}
