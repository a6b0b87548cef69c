//! The ledger and the provider that all owners of a run share, and what can go wrong with a call to each.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use charge_once::{
    gateway::{
        GatewayError, GatewayErrorKind,
        simulated::{Effect, Operation, Provider, Reply, Request, Rule, Script},
    },
    ledger::{Applied, Entry, Found, Intent, Ledger, LedgerError, memory::MemoryLedger},
    order::OrderId,
};
use http::Response;

use crate::support::order::Hands;

/// How the customer's card behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Card {
    Good,
    Declining,
    /// Declines the first time and would pay later: a charge that arrives late must not be made after the
    /// decline is recorded.
    DecliningOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) one_shot: bool,
    pub(super) card: Card,
}

/// What becomes of a call. A crash is a call after which its owner is gone.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    /// The owner dies, the call is not made.
    CrashBefore,
    /// The call is made, the owner dies.
    CrashAfter,
    /// The call arrives just before the second call after it; its owner is dead, or has been told nothing.
    Late {
        dead: bool,
    },
    /// Not made, and the caller is told nothing.
    LostBefore,
    /// Made, and the caller is told nothing.
    LostAfter,
    /// The provider cannot be reached.
    NotSent,
    /// The provider misbehaves.
    Provider(Effect),
}

impl Fault {
    pub(super) fn ends_the_owner(&self) -> bool {
        match self {
            Self::CrashBefore | Self::CrashAfter | Self::Late { dead: true } => true,
            Self::None
            | Self::Late { dead: false }
            | Self::LostBefore
            | Self::LostAfter
            | Self::NotSent
            | Self::Provider(_) => false,
        }
    }

    /// Every fault of a write to the ledger.
    pub(super) fn of_the_ledger() -> Vec<Self> {
        let late = [true, false].map(|dead| Self::Late { dead });
        [vec![Self::CrashBefore, Self::CrashAfter, Self::LostBefore, Self::LostAfter], late.to_vec()].concat()
    }

    /// Every fault of a call to the provider. A one-shot provider rests on its keys, so it may neither forget them
    /// early nor replay an answer that says nothing.
    pub(super) fn of_the_provider(scenario: Scenario, charges: bool) -> Vec<Self> {
        let status = |status, sticky, after_charge| Effect::Status {
            status,
            body: None,
            sticky,
            after_charge,
            should_retry: None,
        };
        let mut effects = vec![
            Effect::Truncated {},
            Effect::Unparsable {},
            status(500, false, false),
            status(503, false, true),
            status(401, false, false),
            Effect::Conflict {},
            Effect::LockTimeout {},
            Effect::RateLimit { retry_after: Some(7), as_date: false },
        ];
        if !scenario.one_shot {
            effects.extend([status(500, true, false), status(500, true, true), Effect::ForgetKeys {}]);
        }
        // The simulated provider lets every charge in processing succeed.
        if charges && scenario.card == Card::Good {
            effects.push(Effect::processing());
        }
        let provider = effects.into_iter().map(Self::Provider);
        Self::of_the_ledger().into_iter().chain([Self::NotSent]).chain(provider).collect()
    }
}

/// Something that arrives late.
enum Late {
    Write(OrderId, Box<Intent>),
    Request(Box<Request>),
}

/// What all owners share.
pub(super) struct World {
    scenario: Scenario,
    ledger: MemoryLedger,
    provider: Mutex<Provider>,
    /// With the number of calls that still come before.
    late: Mutex<VecDeque<(usize, Late)>>,
    /// The provider's time.
    pub(super) hands: Hands,
}

impl World {
    pub(super) fn new(scenario: Scenario) -> Arc<Self> {
        let hands = Hands::default();
        let provider = Mutex::new(Provider::new(hands.clock(), Script::default()));
        let (ledger, late) = (MemoryLedger::default(), Mutex::default());
        Arc::new(Self { scenario, ledger, provider, late, hands })
    }

    pub(super) fn provider(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap()
    }

    pub(super) async fn entry(&self, order_id: &OrderId) -> Option<Entry> {
        match self.ledger.get(order_id).await.unwrap() {
            Found::Entry(entry) => Some(*entry),
            Found::Nothing | Found::Unreadable => None,
        }
    }

    /// A write as the ledger's client makes it; `None` if its caller hears nothing any more.
    pub(super) async fn write(
        &self,
        order_id: &OrderId,
        intent: &Intent,
        fault: &Fault,
    ) -> Option<Result<Applied, LedgerError>> {
        self.deliver_due().await;
        let silence = || Err(LedgerError { code: "Timeout".to_owned(), source: "simulated".into() });
        match fault {
            Fault::Late { dead } => {
                let write = Late::Write(order_id.clone(), Box::new(intent.clone()));
                self.late.lock().unwrap().push_back((2, write));
                (!dead).then(silence)
            }
            Fault::LostBefore => Some(silence()),
            Fault::LostAfter => self.ledger.apply(order_id, intent).await.ok().map(|_| silence()),
            Fault::CrashAfter => {
                self.ledger.apply(order_id, intent).await.unwrap();
                None
            }
            Fault::CrashBefore => None,
            Fault::None | Fault::NotSent | Fault::Provider(_) => {
                Some(self.ledger.apply(order_id, intent).await)
            }
        }
    }

    /// A request as the transport sends it; `None` if its caller hears nothing any more.
    pub(super) async fn send(
        &self,
        request: Request,
        fault: &Fault,
    ) -> Option<Result<Response<Bytes>, GatewayError>> {
        self.deliver_due().await;
        let error = |kind| Err(GatewayError::new(kind, "simulated"));
        let silence = || error(GatewayErrorKind::Unknown { server_error: false });
        match fault {
            Fault::NotSent => Some(error(GatewayErrorKind::NotSent)),
            Fault::LostBefore => Some(silence()),
            Fault::Late { dead } => {
                self.late.lock().unwrap().push_back((2, Late::Request(Box::new(request))));
                (!dead).then(silence)
            }
            Fault::CrashBefore => None,
            Fault::CrashAfter => {
                self.handle(&request, None);
                None
            }
            Fault::LostAfter => {
                self.handle(&request, None);
                Some(silence())
            }
            Fault::None => Some(self.handle(&request, None).map_or_else(silence, Ok)),
            Fault::Provider(effect) => Some(self.handle(&request, Some(effect)).map_or_else(silence, Ok)),
        }
    }

    /// The provider's answer, if one arrives.
    fn handle(&self, request: &Request, effect: Option<&Effect>) -> Option<Response<Bytes>> {
        let mut provider = self.provider();
        let once = self.scenario.card == Card::DecliningOnce && !tried(&provider);
        let decline = once.then(Effect::decline);
        let rules = effect.cloned().or(decline).map(Rule::always);
        provider.set_script(Script::of(rules));
        match provider.handle(request) {
            Reply::Answer(answer) => {
                let mut response = Response::builder().status(answer.status);
                response.headers_mut()?.extend((*answer.headers).clone());
                response.body(answer.body).ok()
            }
            Reply::Truncated(_) | Reply::Drip(..) | Reply::Reset | Reply::Hang | Reply::Delayed(..) => None,
        }
    }

    async fn deliver_due(&self) {
        let due: Vec<Late> = {
            let mut late = self.late.lock().unwrap();
            late.iter_mut().for_each(|(calls, _)| *calls -= 1);
            let count = late.iter().take_while(|(calls, _)| *calls == 0).count();
            late.drain(..count).map(|(_, it)| it).collect()
        };
        self.deliver(due).await;
    }

    /// Lets everything arrive that is still under way.
    pub(super) async fn deliver_late(&self) {
        let due: Vec<Late> = self.late.lock().unwrap().drain(..).map(|(_, it)| it).collect();
        self.deliver(due).await;
    }

    async fn deliver(&self, late: Vec<Late>) {
        for late in late {
            match late {
                Late::Write(order_id, intent) => {
                    self.ledger.apply(&order_id, &intent).await.unwrap();
                }
                Late::Request(request) => {
                    let mut provider = self.provider();
                    provider.set_script(Script::default());
                    provider.handle(&request);
                }
            }
        }
    }
}

/// Whether a charge has been tried that arrived in time.
fn tried(provider: &Provider) -> bool {
    provider.requests().iter().any(|request| request.operation.is_some_and(Operation::charges))
}
