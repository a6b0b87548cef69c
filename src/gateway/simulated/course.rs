//! What a fault means for a request: how it is executed, and what of the answer arrives.

use std::time::Duration;

use http::StatusCode;

use super::{call::Contract, effect::Effect, message::Answer, refusal::Refusal};
use crate::clock::Timestamp;

/// The way a request goes.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) execution: Execution,
    pub(super) delivery: Delivery,
}

/// How a request is executed.
#[derive(Debug)]
pub(super) enum Execution {
    Never,
    /// At once; what is stored under the key may be something else than the truth.
    Now(Twist, Option<Stored>),
    /// At once, every key being forgotten before.
    ForgetKeys,
    /// After so much work.
    Work(Duration),
    /// Just before the nth request that follows, or when it is asked for.
    Late(Option<u32>),
}

/// What a fault changes about the execution itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    /// Nothing: the payment method decides.
    None,
    /// The issuer declines with this code.
    Decline(String),
    /// The charge is decided after this long.
    Processing(Duration),
}

/// An answer that is given, stored and replayed instead of the true one.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) answer: Answer,
    /// Whether the request is executed all the same.
    pub(super) executed: bool,
}

/// What arrives at the caller.
#[derive(Debug)]
pub(super) enum Delivery {
    Answer,
    Other(Answer),
    Reset,
    Hang,
    Truncated,
    Drip(Duration),
}

impl Course {
    /// The way of a request that meets `effect`.
    pub(super) fn of(effect: Option<Effect>, contract: Contract, now: Timestamp) -> Self {
        let plain = || Execution::Now(Twist::None, None);
        let refuse = |refusal: Refusal| (Execution::Never, Delivery::Other(refusal.answer(contract)));
        let (execution, delivery) = match effect {
            None => (plain(), Delivery::Answer),
            Some(Effect::Decline { code }) => (Execution::Now(Twist::Decline(code), None), Delivery::Answer),
            Some(Effect::Processing { settle_ms }) => {
                let twist = Twist::Processing(Duration::from_millis(settle_ms));
                (Execution::Now(twist, None), Delivery::Answer)
            }
            Some(Effect::Status { status, body, sticky, after_charge, should_retry }) => {
                let answer = Refusal::Scripted { status, body, should_retry }.answer(contract);
                status_course(answer, sticky, after_charge)
            }
            Some(Effect::Conflict {}) => refuse(Refusal::KeyInUse),
            Some(Effect::LockTimeout {}) => refuse(Refusal::LockTimeout),
            Some(Effect::RateLimit { retry_after, as_date }) => {
                refuse(Refusal::RateLimited { retry_after, date_from: as_date.then_some(now) })
            }
            Some(Effect::ResetBefore {}) => (Execution::Never, Delivery::Reset),
            Some(Effect::ResetAfter {}) => (plain(), Delivery::Reset),
            Some(Effect::HangBefore {}) => (Execution::Never, Delivery::Hang),
            Some(Effect::HangAfter {}) => (plain(), Delivery::Hang),
            Some(Effect::Truncated {}) => (plain(), Delivery::Truncated),
            Some(Effect::Drip { every_ms }) => (plain(), Delivery::Drip(Duration::from_millis(every_ms))),
            Some(Effect::Unparsable {}) => (plain(), Delivery::Other(unparsable())),
            Some(Effect::Delay { ms }) => (Execution::Work(Duration::from_millis(ms)), Delivery::Answer),
            Some(Effect::Late { after }) => (Execution::Late(after), Delivery::Hang),
            Some(Effect::ForgetKeys {}) => (Execution::ForgetKeys, Delivery::Answer),
        };
        Self { execution, delivery }
    }
}

fn status_course(answer: Answer, sticky: bool, executed: bool) -> (Execution, Delivery) {
    match (sticky, executed) {
        (true, _) => (Execution::Now(Twist::None, Some(Stored { answer, executed })), Delivery::Answer),
        (false, true) => (Execution::Now(Twist::None, None), Delivery::Other(answer)),
        (false, false) => (Execution::Never, Delivery::Other(answer)),
    }
}

fn unparsable() -> Answer {
    Answer::text(StatusCode::OK, "text/html", "<html>OK</html>".to_owned())
}

/// An executed request.
#[derive(Debug)]
pub(super) struct Executed {
    pub(super) answer: Answer,
    /// Whether execution began, so that the answer is stored under the key.
    pub(super) began: bool,
}

impl Executed {
    /// The request was executed; its answer is replayed.
    pub(super) fn done(answer: Answer) -> Self {
        Self { answer, began: true }
    }

    /// The request was refused before anything happened; its key stays unused.
    pub(super) fn refused(answer: Answer) -> Self {
        Self { answer, began: false }
    }
}
