//! The provider as a state machine: a request goes in, a [`Reply`] comes out, nothing waits.

use std::time::Duration;

use super::{
    bank::{Bank, SimulatedCharge},
    call::{Call, Contract, Operation, contract},
    course::{Course, Twist},
    director::Director,
    keys::KeyStore,
    message::{Answer, Pending, Reply, Request, Ticket},
    refusal::Refusal,
    script::Script,
    stripe::Intents,
};
use crate::clock::{Clock, Timestamp};

/// A request the provider has received, for looking back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The idempotency key, unquoted.
    pub idempotency_key: Option<String>,
    /// The order; for a call on a Stripe intent the one in its metadata.
    pub order_id: Option<String>,
    /// What was asked for; `None` where no contract knows the request.
    pub operation: Option<Operation>,
}

/// A request that is still under way.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) request: Request,
    pub(super) call: Call,
    /// Which of the requests that follow it comes before; `None` waits for [`Provider::deliver_late`].
    pub(super) after: Option<u32>,
}

/// A payment provider that speaks both contracts and fails as its [`Script`] says.
///
/// Both contracts share one clock, one key store and one list of charges. The steps of a request: it is logged;
/// late requests whose turn has come are executed; a wrong secret is refused; the script is asked; the key is
/// taken or its stored answer replayed; the request is executed; the answer is stored, and spoilt where the
/// script says so.
#[derive(Debug)]
pub struct Provider {
    pub(super) clock: Clock,
    pub(super) director: Director,
    secret: Option<String>,
    pub(super) keys: KeyStore,
    pub(super) bank: Bank,
    pub(super) intents: Intents,
    pub(super) late: Vec<Late>,
    log: Vec<LoggedRequest>,
}

impl Provider {
    /// A provider without charges. `clock` decides when keys are forgotten, charges settle and intents expire.
    pub fn new(clock: Clock, script: Script) -> Self {
        Self {
            clock,
            director: Director::new(script),
            secret: None,
            keys: KeyStore::default(),
            bank: Bank::default(),
            intents: Intents::default(),
            late: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Receives a request.
    pub fn handle(&mut self, request: &Request) -> Reply {
        let call = self.understand(request);
        self.log(request, call.as_ref());
        self.deliver_due();
        self.settle();
        if self.is_stranger(request) {
            return self.refuse(request, Refusal::Unauthorized);
        }
        let Some(call) = call else { return self.refuse(request, Refusal::NoSuchCall) };
        let effect = self.director.next(call.order_id.as_deref(), call.operation);
        let course = Course::of(effect, call.contract, self.clock.now());
        self.play(request, call, course)
    }

    /// Executes a delayed request and says what to answer to a caller who still waits.
    pub fn finish(&mut self, ticket: Ticket) -> Answer {
        let Pending { request, call } = *ticket.0;
        self.settle();
        let answer = self.execute(&request, &call, &Twist::None, None);
        self.finished(&request, call.contract, answer)
    }

    /// Executes every late request now; how many there were.
    pub fn deliver_late(&mut self) -> usize {
        let late = std::mem::take(&mut self.late);
        late.iter().for_each(|Late { request, call, .. }| self.deliver(request, call));
        late.len()
    }

    /// Decides every charge in `processing` now: it succeeds, or fails with this code.
    pub fn settle_processing(&mut self, decided: Result<(), String>) {
        self.bank.settle_all(&decided);
        self.settle();
    }

    /// Forgets every idempotency key that has an answer.
    pub fn forget_keys(&mut self) {
        self.keys.forget();
    }

    /// Replaces the script. Counts and chance begin anew; late requests stay under way.
    pub fn set_script(&mut self, script: Script) {
        self.director = Director::new(script);
    }

    /// Requires `Authorization: Bearer` with this secret from now on, or none.
    pub fn require_secret(&mut self, secret: Option<&str>) {
        self.secret = secret.map(str::to_owned);
    }

    /// The charges that moved money, in the order they were made. A charge whose time to settle has come counts.
    pub fn charges(&mut self) -> Vec<SimulatedCharge> {
        self.settle();
        self.bank.succeeded()
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> &[LoggedRequest] {
        &self.log
    }

    /// How long a request is under way before it arrives.
    pub(super) fn latency(&self) -> Duration {
        self.director.script.latency()
    }

    fn understand(&self, request: &Request) -> Option<Call> {
        let mut call = Call::of(request)?;
        if !call.intent.is_empty() {
            call.order_id = self.intents.order_of(&call.intent).map(str::to_owned);
        }
        Some(call)
    }

    fn log(&mut self, request: &Request, call: Option<&Call>) {
        self.log.push(LoggedRequest {
            method: request.method.to_string(),
            path: request.path.clone(),
            idempotency_key: request.idempotency_key(),
            order_id: call.and_then(|call| call.order_id.clone()),
            operation: call.map(|call| call.operation),
        });
    }

    fn refuse(&self, request: &Request, refusal: Refusal) -> Reply {
        let contract = contract(request);
        Reply::Answer(self.finished(request, contract, refusal.answer(contract)))
    }

    fn is_stranger(&self, request: &Request) -> bool {
        let given = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        self.secret.is_some() && given != self.secret.as_deref()
    }

    /// Adds what stands on every answer of a contract.
    pub(super) fn finished(&self, request: &Request, contract: Contract, mut answer: Answer) -> Answer {
        if contract == Contract::Http {
            return answer;
        }
        for name in ["idempotency-key", "stripe-version"] {
            if let Some(value) = request.header(name) {
                answer = answer.with_header(name, value);
            }
        }
        answer.with_header("request-id", &format!("req_sim_{}", self.log.len()))
    }

    fn deliver_due(&mut self) {
        for late in &mut self.late {
            late.after = late.after.map(|requests| requests.saturating_sub(1));
        }
        let (due, waiting) = std::mem::take(&mut self.late).into_iter().partition(|it| it.after == Some(0));
        self.late = waiting;
        let due: Vec<Late> = due;
        due.iter().for_each(|Late { request, call, .. }| self.deliver(request, call));
    }

    fn deliver(&mut self, request: &Request, call: &Call) {
        self.settle();
        self.perform(request, call, &Twist::None, None);
    }

    /// Brings everything that time decides up to the present.
    fn settle(&mut self) {
        let now: Timestamp = self.clock.now();
        self.bank.settle(now);
        self.intents.settle(&self.bank, self.director.script.intents_expire_after(), now);
    }
}
