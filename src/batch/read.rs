//! What is in a record: the order, or the outcome that the record has without one.

use std::time::Duration;

use super::Batch;
use crate::{
    charge::{Facts, Health, Outcome},
    decision::{Decision, PoisonReason, RetryAfter, RetryReason},
    envelope::{Envelope, EnvelopeError, S3Pointer},
    order::{Order, OrderRules, may_be_a_card},
    payload::{PayloadError, PayloadFault},
    record::Record,
    telemetry::ErrorChain,
};

/// A record with what was read from its body.
pub(super) struct Parsed {
    pub(super) record: Record,
    pub(super) order: Result<Order, Box<Outcome>>,
}

impl<S: Sync, Q: Sync> Batch<'_, S, Q> {
    pub(super) async fn read(&self, mut record: Record) -> Parsed {
        let order = match &record.body {
            Ok(body) => match Envelope::open(body) {
                Ok(Envelope::Order(text)) => parse(&text, &self.rules.order),
                Ok(Envelope::S3Pointer(pointer)) => self.follow(&pointer).await,
                Err(error) => Err(poison(PoisonReason::Envelope(error))),
            },
            Err(error) => Err(poison(PoisonReason::Record(*error))),
        };
        // The order is read, and ten thousand bodies are as large as the event.
        if let (Ok(body), None) = (&mut record.body, &self.rules.move_poison_to) {
            *body = String::new();
        }
        Parsed { record, order }
    }

    /// Reads the order from the object that the body points to.
    async fn follow(&self, pointer: &S3Pointer) -> Result<Order, Box<Outcome>> {
        let text = self.payloads.text(pointer, self.time_to_read()).await.map_err(not_read)?;
        let reason = match Envelope::open(&text).map_err(PoisonReason::Envelope) {
            Ok(Envelope::Order(order)) => return parse(&order, &self.rules.order),
            // One step only: a circle of pointers would never end.
            Ok(Envelope::S3Pointer(_)) => PoisonReason::PayloadUnusable(PayloadFault::PointsOn),
            Err(reason) => reason,
        };
        Err(poison(reason))
    }

    /// What comes later than this could not be begun any more.
    fn time_to_read(&self) -> Duration {
        self.deadline.minus(self.rules.time_to_begin).since(self.clock.now())
    }
}

pub(super) fn parse(text: &str, rules: &OrderRules) -> Result<Order, Box<Outcome>> {
    Order::parse(text, rules).map_err(|error| {
        let mut outcome = poison(PoisonReason::Order(error));
        // Where a rule is broken the fields may be mixed up, too.
        outcome.facts.named = Order::named_in(text).filter(|id| !may_be_a_card(id.as_str()));
        outcome
    })
}

fn poison(reason: PoisonReason) -> Box<Outcome> {
    Box::new(Outcome::of(Decision::Poison(reason)))
}

fn not_read(error: PayloadError) -> Box<Outcome> {
    match error {
        PayloadError::NotAllowed => poison(PoisonReason::Envelope(EnvelopeError::S3PointerNotAllowed)),
        PayloadError::Unusable(fault) => poison(PoisonReason::PayloadUnusable(fault)),
        PayloadError::NoTime => Box::new(Outcome::of(Decision::Retry {
            after: RetryAfter::Immediately,
            reason: RetryReason::NotStartedDeadline,
        })),
        PayloadError::Unavailable(_) => {
            let facts = Facts {
                error: Some(ErrorChain(&error).to_string()),
                health: Health::Failing,
                ..Facts::default()
            };
            Box::new(Outcome { decision: Decision::retry(RetryReason::Payload), facts })
        }
    }
}
