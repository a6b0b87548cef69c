//! What can happen next.

use charge_once::ledger::{self, Intent};

use super::{
    ledger::{apply, begin, decline, pay, store},
    state::{Answer, Ask, Bounds, Handle, Lease, Request, Rules, State, Worker},
};

/// What happened, and to which delivery (0 for none).
pub(super) type Label = (&'static str, u8);

/// Collects every state that can follow `from`.
pub(super) struct Steps<'a> {
    from: &'a State,
    bounds: Bounds,
    rules: Rules,
    found: Vec<(Label, State)>,
}

pub(super) fn steps(from: &State, bounds: Bounds, rules: Rules) -> Vec<(Label, State)> {
    let mut steps = Steps { from, bounds, rules, found: Vec::new() };
    steps.surroundings();
    steps.network();
    for worker in 0..from.workers.len() {
        steps.worker(worker);
    }
    steps.found
}

impl Steps<'_> {
    fn add(&mut self, label: Label, change: impl FnOnce(&mut State)) {
        let mut next = self.from.clone();
        change(&mut next);
        self.found.push((label, next.ordered()));
    }

    fn surroundings(&mut self) {
        let (from, bounds) = (self.from, self.bounds);
        if from.key_losses < bounds.key_losses {
            self.add(("a day passes, the provider forgets its keys, the order is old", 0), |next| {
                next.key_losses += 1;
                next.keys = Default::default();
            });
        }
        let is_old = from.key_losses > 0;
        if is_old && from.record.is_some() && from.record_losses < bounds.record_losses {
            self.add(("the record disappears", 0), |next| {
                next.record_losses += 1;
                next.record = None;
            });
        }
        for (index, handle) in from.handles.iter().enumerate() {
            let is_open = matches!(handle, Some(Handle::Ready | Handle::Failed));
            if is_open && from.expiries < bounds.expiries {
                self.add(("the provider cancels a handle by itself", 0), |next| {
                    next.expiries += 1;
                    next.handles[index] = Some(Handle::Expired);
                });
            }
        }
        let declined = from.record.is_some_and(|record| record.state == ledger::State::Declined);
        if declined && from.new_attempts < bounds.new_attempts {
            self.add(("the producer asks again after the decline", 0), |next| {
                next.new_attempts += 1;
                next.attempt = next.record.map_or(1, |record| record.attempt + 1);
                next.message = true;
            });
        }
    }

    fn network(&mut self) {
        for (index, request) in self.from.net.iter().enumerate() {
            self.add(("a request is lost", request.from), |next| {
                next.net.remove(index);
            });
            for (label, changed, answer) in execute(self.from, request.ask) {
                let mut done = changed;
                done.net.remove(index);
                let waits = |worker: &Worker| matches!(worker, Worker::Waits(lease, ask) if lease.owner == request.from && *ask == request.ask);
                let waiting = done.workers.iter().position(waits);
                if let Some(worker) = waiting
                    && let Worker::Waits(lease, ask) = done.workers[worker]
                {
                    let mut answered = done.clone();
                    answered.workers[worker] = Worker::Knows(lease, ask, answer);
                    self.found.push(((label, request.from), answered.ordered()));
                }
                self.found.push(((unheard(label), request.from), done.ordered()));
            }
        }
    }

    fn worker(&mut self, index: usize) {
        match self.from.workers[index] {
            Worker::Idle => self.receive(index),
            Worker::Sends(lease, ask) => {
                self.stop(index, lease);
                self.add((sends(ask), lease.owner), |next| {
                    next.net.push(Request { ask, from: lease.owner });
                    next.workers[index] = Worker::Waits(lease, ask);
                });
            }
            Worker::Waits(lease, _) => self.stop(index, lease),
            Worker::Knows(lease, ask, answer) => {
                self.stop(index, lease);
                self.act(index, lease, ask, answer);
            }
        }
    }

    /// A crash, or no answer in time: either way the record stays as it is, and any other owner may take over.
    fn stop(&mut self, index: usize, lease: Lease) {
        let keep = self.rules.keep;
        self.add(("it gives up or dies", lease.owner), |next| {
            next.workers[index] = Worker::Idle;
            let mine = next.record.is_some_and(|record| record.owner == lease.owner);
            if !keep && mine {
                next.record = None;
            }
        });
    }

    fn receive(&mut self, index: usize) {
        let from = self.from;
        // Which of two idle workers receives does not matter.
        let is_first_idle = from.workers.iter().position(|worker| *worker == Worker::Idle) == Some(index);
        if !is_first_idle || !from.message || from.delivered >= self.bounds.deliveries + from.new_attempts {
            return;
        }
        let owner = from.delivered + 1;
        let may_create = !self.rules.age_guard || from.key_losses == 0;
        let begin = begin(owner, from.attempt, may_create);
        let intents = [Intent::Begin(begin.clone()), Intent::NewAttempt(begin.clone())];
        let claimed = intents.iter().find_map(|intent| apply(self.rules, intent, from.record));
        let held = Intent::HoldMissing { begin, reason: String::new() };
        if let Some(record) = claimed {
            let lease = Lease {
                owner,
                fence: record.fence,
                attempt: record.attempt,
                handle: record.handle,
                generation: record.generation,
            };
            let ask = match record.handle {
                Some(handle) => Ask::Inspect { handle },
                None => Ask::Create { key: key(&lease, 0) },
            };
            self.add(("begin: it owns the order", owner), |next| {
                next.delivered = owner;
                next.record = Some(record);
                next.workers[index] = Worker::Sends(lease, ask);
            });
        } else {
            let record = apply(self.rules, &held, from.record).or(from.record);
            self.add(("begin: the order is settled or held", owner), |next| {
                next.delivered = owner;
                next.record = record;
                next.message = false;
            });
        }
    }

    fn act(&mut self, index: usize, lease: Lease, ask: Ask, answer: Answer) {
        let owner = lease.owner;
        let handle = match (ask, answer) {
            (_, Answer::Made(new)) => return self.store(index, lease, new),
            (Ask::Create { .. }, Answer::Stands(_)) => return,
            (Ask::Commit { handle } | Ask::Inspect { handle } | Ask::Seal { handle }, Answer::Stands(_)) => {
                handle
            }
        };
        let Answer::Stands(status) = answer else { return };
        let sealing = matches!(ask, Ask::Seal { .. });
        match status {
            Handle::Paid => self.settle(index, "records the charge", owner, &pay(handle)),
            Handle::Sealed => self.settle(index, "records the decline", owner, &decline(handle)),
            Handle::Expired if sealing => {
                self.settle(index, "records the decline", owner, &decline(handle));
            }
            Handle::Expired => {
                self.go_on(index, "the handle has expired", lease, Ask::Create { key: key(&lease, 1) });
            }
            Handle::Ready => self.go_on(index, "the handle is ready", lease, Ask::Commit { handle }),
            Handle::Failed if self.rules.seal => {
                self.go_on(index, "the handle was declined", lease, Ask::Seal { handle });
            }
            Handle::Failed => self.settle(index, "records the decline unsealed", owner, &decline(handle)),
        }
    }

    fn go_on(&mut self, index: usize, label: &'static str, lease: Lease, ask: Ask) {
        self.add((label, lease.owner), |next| next.workers[index] = Worker::Sends(lease, ask));
    }

    /// T2 or T2b; refused, the handle is never charged.
    fn store(&mut self, index: usize, lease: Lease, handle: u8) {
        let stored = apply(self.rules, &store(&lease, handle), self.from.record);
        match stored {
            Some(record) => self.add(("stores the handle", lease.owner), |next| {
                next.record = Some(record);
                let lease = Lease { handle: Some(handle), generation: record.generation, ..lease };
                next.workers[index] = Worker::Sends(lease, Ask::Commit { handle });
            }),
            None => self.add(("may not store the handle", lease.owner), |next| {
                next.workers[index] = Worker::Idle;
            }),
        }
    }

    fn settle(&mut self, index: usize, label: &'static str, owner: u8, intent: &Intent) {
        let settled = apply(self.rules, intent, self.from.record);
        self.add((label, owner), |next| {
            next.workers[index] = Worker::Idle;
            if let Some(record) = settled {
                next.record = Some(record);
                next.message = false;
            }
        });
    }
}

fn key(lease: &Lease, ahead: u8) -> u8 {
    (lease.attempt - 1) * 2 + (lease.generation + ahead).min(1)
}

fn sends(ask: Ask) -> &'static str {
    match ask {
        Ask::Create { .. } => "asks for a handle",
        Ask::Commit { .. } => "commits the handle",
        Ask::Inspect { .. } => "asks how the handle stands",
        Ask::Seal { .. } => "seals the handle",
    }
}

const MADE: &str = "the provider makes a handle";
const REPLAYED: &str = "the provider answers the handle it made before";
const CHARGES: &str = "the provider CHARGES";
const DECLINES: &str = "the provider declines";
const SEALS: &str = "the provider seals";
const SAYS: &str = "the provider says how the handle stands";

fn unheard(label: &'static str) -> &'static str {
    match label {
        MADE => "the provider makes a handle, unheard",
        REPLAYED => "the provider answers the handle it made before, unheard",
        CHARGES => "the provider CHARGES, unheard",
        DECLINES => "the provider declines, unheard",
        SEALS => "the provider seals, unheard",
        _ => "the provider answers, unheard",
    }
}

/// What the provider may do with a request.
fn execute(from: &State, ask: Ask) -> Vec<(&'static str, State, Answer)> {
    let mut next = from.clone();
    let seen = |handle: u8| from.handles[usize::from(handle)].unwrap();
    let become_ = |handle: u8, status| {
        let mut next = from.clone();
        next.handles[usize::from(handle)] = Some(status);
        next
    };
    match ask {
        Ask::Create { key } => match from.keys[usize::from(key)] {
            Some(handle) => vec![(REPLAYED, next, Answer::Made(handle))],
            None => {
                let Some(free) = from.handles.iter().position(Option::is_none) else { return Vec::new() };
                let handle = u8::try_from(free).unwrap();
                next.handles[free] = Some(Handle::Ready);
                next.keys[usize::from(key)] = Some(handle);
                vec![(MADE, next, Answer::Made(handle))]
            }
        },
        Ask::Commit { handle } if matches!(seen(handle), Handle::Ready | Handle::Failed) => vec![
            (CHARGES, become_(handle, Handle::Paid), Answer::Stands(Handle::Paid)),
            (DECLINES, become_(handle, Handle::Failed), Answer::Stands(Handle::Failed)),
        ],
        Ask::Seal { handle } if matches!(seen(handle), Handle::Ready | Handle::Failed) => {
            vec![(SEALS, become_(handle, Handle::Sealed), Answer::Stands(Handle::Sealed))]
        }
        Ask::Commit { handle } | Ask::Seal { handle } | Ask::Inspect { handle } => {
            vec![(SAYS, next, Answer::Stands(seen(handle)))]
        }
    }
}
