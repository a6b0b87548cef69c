//! What local mode found: as tables for a person, as one JSON document for a program.

mod tables;
mod tally;

use std::fmt;

use charge_once::{
    gateway::simulated::SimulatedCharge,
    local::{audit::Books, dynamodb::Row, runtime_api::InvocationOutcome, stack::Invocation},
};
use serde_json::{Value, json};

use tally::Tally;

/// One event and what the function did with it.
pub(crate) struct Delivery {
    pub(crate) name: String,
    pub(crate) event: Vec<u8>,
    pub(crate) invocation: Invocation,
}

/// Everything that happened.
pub(crate) struct Report {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) charges: Vec<SimulatedCharge>,
    pub(crate) ledger: Vec<Row>,
    /// Who knows what became of the orders.
    pub(crate) books: Books,
}

impl Report {
    /// Every event was answered and no order was charged twice.
    pub(crate) fn is_clean(&self) -> bool {
        let tally = self.tally();
        tally.failed == 0 && tally.double_charges == 0
    }

    fn tally(&self) -> Tally {
        Tally::of(self)
    }

    /// The whole report as one document.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "events": self.deliveries.iter().map(Delivery::to_json).collect::<Vec<_>>(),
            "charges": self.charges,
            "ledger": self.ledger,
            "summary": self.tally().to_json(),
        })
    }
}

/// The end of the report, after what was shown of each delivery.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", tables::Ledger(&self.ledger))?;
        writeln!(f, "\n{}", self.tally())
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tables::Delivered(self).fmt(f)
    }
}

impl Delivery {
    fn to_json(&self) -> Value {
        let visibility: Vec<Value> = self
            .invocation
            .visibility
            .iter()
            .map(|change| {
                json!({
                    "queue_url": change.queue_url,
                    "receipt_handle": change.receipt_handle,
                    "seconds": change.seconds,
                })
            })
            .collect();
        let (response, error) = match &self.invocation.outcome {
            InvocationOutcome::Response(answer) => {
                let text = || String::from_utf8_lossy(answer).into_owned().into();
                (serde_json::from_slice(answer).unwrap_or_else(|_| text()), Value::Null)
            }
            InvocationOutcome::Error(error) => (Value::Null, error.error_message.clone().into()),
            InvocationOutcome::Crashed => (Value::Null, "crashed".into()),
            InvocationOutcome::TimedOut => (Value::Null, "timed out".into()),
        };
        json!({
            "name": self.name,
            "response": response,
            "error": error,
            "records": self.invocation.records.iter().map(|record| record.fields()).collect::<Vec<_>>(),
            "visibility": visibility,
            "charges": self.invocation.charges,
        })
    }
}
