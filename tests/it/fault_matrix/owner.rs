//! One delivery at work: it runs until its next call and stands there until it is told what becomes of that call.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use charge_once::{
    backoff::Random,
    charge::{Desk, LookUp, OneShotCharge, Step, TwoPhaseCharge},
    clock::Timestamp,
    decision::Decision,
    gateway::{
        Transport,
        http::HttpGateway,
        secret::{Credential, Secret},
        simulated::{Operation, Request},
        stripe::StripeGateway,
    },
    ledger::{Applied, Found, Intent, Ledger, LedgerError},
    order::{Order, OrderId},
};
use http_body_util::BodyExt;

use super::world::{Fault, Scenario, World};
use crate::support::order::{HOUR, Hands, delivery, rules};

/// A call that an owner is about to make.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    Write(String),
    Request { what: String, charges: bool },
}

/// Where an owner stands.
#[derive(Default)]
struct Place {
    at: Option<Call>,
    verdict: Option<Fault>,
}

type Gate = Arc<Mutex<Place>>;

/// Stands at `call` until it is decided what becomes of it.
async fn stand(gate: &Gate, call: Call) -> Fault {
    poll_fn(|_| {
        let mut place = gate.lock().unwrap();
        match place.verdict.take() {
            Some(verdict) => Poll::Ready(verdict),
            None => {
                place.at = Some(call.clone());
                Poll::Pending
            }
        }
    })
    .await
}

/// A delivery at work.
pub(super) struct Owner {
    gate: Gate,
    work: Pin<Box<dyn Future<Output = Decision> + Send>>,
    pub(super) decision: Option<Decision>,
}

impl Owner {
    /// Begins a delivery whose clock stands still at `now`, and runs it to its first call.
    pub(super) async fn begin(
        world: &Arc<World>,
        scenario: Scenario,
        order: &Order,
        sent_at: Timestamp,
        hands: &Hands,
        seed: u64,
    ) -> Self {
        let gate = Gate::default();
        let ledger = Gated { world: Arc::clone(world), gate: Arc::clone(&gate) };
        let hands = hands.frozen();
        let (clock, order) = (hands.clock(), order.clone());
        let desk = Desk { ledger, rules: rules(), clock: clock.clone(), random: Random::seeded(seed) };
        let transport = transport(world, &gate);
        let credential = Credential::fixed(Some(Secret::new("sk_test_1").unwrap()), clock.clone());
        let url = http::Uri::from_static("http://127.0.0.1");
        let delivery = delivery(&hands, sent_at, 1);
        let work: Pin<Box<dyn Future<Output = Decision> + Send>> = if scenario.one_shot {
            let gateway = HttpGateway::new(transport, url, credential, "default", clock);
            let step = OneShotCharge { desk, gateway, key_window: 20 * HOUR, look_up: LookUp::Off };
            Box::pin(async move { step.run(&order, &delivery).await.decision })
        } else {
            let gateway = StripeGateway::new(transport, url, credential, "default", clock).unwrap();
            let step = TwoPhaseCharge { desk, gateway };
            Box::pin(async move { step.run(&order, &delivery).await.decision })
        };
        let mut owner = Self { gate, work, decision: None };
        owner.go_on().await;
        owner
    }

    /// The call it stands at; `None` if it has ended.
    pub(super) fn at(&self) -> Option<Call> {
        self.gate.lock().unwrap().at.clone()
    }

    /// Lets it make its call, and run to the next one unless it dies.
    pub(super) async fn step(&mut self, fault: Fault) {
        let dies = fault.ends_the_owner();
        self.gate.lock().unwrap().verdict = Some(fault);
        if dies {
            self.poll().await;
        } else {
            self.go_on().await;
        }
    }

    async fn poll(&mut self) {
        self.gate.lock().unwrap().at = None;
        let polled = poll_fn(|context| Poll::Ready(self.work.as_mut().poll(context))).await;
        if let Poll::Ready(decision) = polled {
            self.decision = Some(decision);
        }
    }

    async fn go_on(&mut self) {
        loop {
            self.poll().await;
            if self.decision.is_some() || self.at().is_some() {
                return;
            }
            // It waits before it repeats a call; no wait is longer than this.
            tokio::time::advance(Duration::from_secs(3)).await;
        }
    }
}

fn transport(world: &Arc<World>, gate: &Gate) -> Transport {
    let (world, gate) = (Arc::clone(world), Arc::clone(gate));
    Transport::from_fn(move |request| {
        let (world, gate) = (Arc::clone(&world), Arc::clone(&gate));
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
            let what = format!("{} {target}", head.method);
            let charges = operation(&what).is_some_and(Operation::charges);
            let mut request = Request::new(head.method, target);
            request.headers = head.headers;
            request.body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let fault = stand(&gate, Call::Request { what, charges }).await;
            match world.send(request, &fault).await {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    })
}

fn operation(what: &str) -> Option<Operation> {
    match what {
        "POST /" => Some(Operation::Charge),
        _ if what.ends_with("/confirm") => Some(Operation::Confirm),
        _ => None,
    }
}

/// The ledger as one owner sees it.
struct Gated {
    world: Arc<World>,
    gate: Gate,
}

impl Ledger for Gated {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        let name = format!("{intent:?}");
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        let fault = stand(&self.gate, Call::Write(name)).await;
        match self.world.write(order_id, intent, &fault).await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    async fn get(&self, _: &OrderId) -> Result<Found, LedgerError> {
        panic!("no decision about money rests on a read")
    }
}
