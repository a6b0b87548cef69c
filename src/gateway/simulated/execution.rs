//! One request on its way through the provider: key, execution, storage, and what arrives.

use super::{
    call::{Call, Contract, Operation},
    course::{Course, Delivery, Executed, Execution, Stored, Twist},
    http_contract,
    keys::Admission,
    message::{Answer, Pending, Reply, Request, Ticket},
    provider::{Late, Provider},
    refusal::Refusal,
};

impl Provider {
    /// Sends a request on its way.
    pub(super) fn play(&mut self, request: &Request, call: Call, course: Course) -> Reply {
        let contract = call.contract;
        let answer = match course.execution {
            Execution::Never => None,
            Execution::Now(twist, stored) => Some(self.perform(request, &call, &twist, stored)),
            Execution::ForgetKeys => {
                self.keys.forget();
                Some(self.perform(request, &call, &Twist::None, None))
            }
            Execution::Work(time) => match self.admit(&call) {
                Ok(()) => {
                    return Reply::Delayed(
                        time,
                        Ticket(Box::new(Pending { request: request.clone(), call })),
                    );
                }
                Err(answer) => Some(answer),
            },
            Execution::Late(after) => {
                self.late.push(Late { request: request.clone(), call, after });
                None
            }
        };
        let finished = |answer| self.finished(request, contract, answer);
        match (course.delivery, answer) {
            (Delivery::Other(other), _) => Reply::Answer(finished(other)),
            (Delivery::Answer, Some(answer)) => Reply::Answer(finished(answer)),
            (Delivery::Truncated, Some(answer)) => Reply::Truncated(finished(answer)),
            (Delivery::Drip(pause), Some(answer)) => Reply::Drip(finished(answer), pause),
            (Delivery::Reset, _) => Reply::Reset,
            (Delivery::Hang, _) | (Delivery::Answer | Delivery::Truncated | Delivery::Drip(_), None) => {
                Reply::Hang
            }
        }
    }

    pub(super) fn perform(
        &mut self,
        request: &Request,
        call: &Call,
        twist: &Twist,
        stored: Option<Stored>,
    ) -> Answer {
        match self.admit(call) {
            Ok(()) => self.execute(request, call, twist, stored),
            Err(answer) => answer,
        }
    }

    /// Takes the key, or says what to answer without executing.
    fn admit(&mut self, call: &Call) -> Result<(), Answer> {
        let Some(key) = &call.key else {
            // The draft leaves it to the resource whether a key is required; a charge without one is a mistake.
            let required = call.operation == Operation::Charge;
            return if required { Err(Refusal::KeyMissing.answer(call.contract)) } else { Ok(()) };
        };
        let retention = self.director.script.key_retention();
        match self.keys.admit(key, &call.parameters, self.clock.now(), retention) {
            Admission::New => Ok(()),
            Admission::InUse => Err(Refusal::KeyInUse.answer(call.contract)),
            Admission::OtherParameters => Err(Refusal::KeyMismatch.answer(call.contract)),
            Admission::Replay(stored) => Err(match call.contract {
                Contract::Http => http_contract::replay(&self.bank, stored),
                Contract::Stripe => stored.with_header("idempotent-replayed", "true"),
            }),
        }
    }

    /// Executes an admitted request, and stores its answer or the one to be stored in its place.
    pub(super) fn execute(
        &mut self,
        request: &Request,
        call: &Call,
        twist: &Twist,
        stored: Option<Stored>,
    ) -> Answer {
        let executed = match stored {
            None => self.run(request, call, twist),
            Some(Stored { answer, executed }) => {
                if executed {
                    self.run(request, call, twist);
                }
                Executed::done(answer)
            }
        };
        if let Some(key) = &call.key {
            if executed.began {
                self.keys.remember(key, &executed.answer);
            } else {
                self.keys.release(key);
            }
        }
        executed.answer
    }

    fn run(&mut self, request: &Request, call: &Call, twist: &Twist) -> Executed {
        let now = self.clock.now();
        match call.operation {
            Operation::Charge => http_contract::charge(&mut self.bank, request, twist, now),
            Operation::Find => Executed::done(http_contract::find(&self.bank, request)),
            Operation::Create | Operation::Confirm | Operation::Retrieve | Operation::Cancel => {
                self.intents.execute(&mut self.bank, call, request, twist, now)
            }
        }
    }
}
