//! The money: every charge that was tried, and what became of it.

use serde::Serialize;

use super::call::Contract;
use crate::clock::Timestamp;

/// A charge that moved money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SimulatedCharge {
    /// The order (Stripe: `metadata[order_id]`), empty where the request named none.
    pub order_id: String,
    /// The attempt (Stripe: `metadata[attempt]`), 1 where the request named none.
    pub attempt: u32,
    /// The amount as it was sent, in the provider's minor units.
    pub amount_minor: i64,
    /// The currency in capitals.
    pub currency: String,
    /// The proof: unique at this provider.
    pub charge_id: String,
    /// The contract it came by.
    pub gateway: Contract,
}

/// What became of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    /// Undecided; succeeds at this instant, or when it is settled by hand.
    Processing(Timestamp),
    /// Declined with this code.
    Failed(String),
}

impl Outcome {
    /// The word of the `http` contract.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Processing(_) => "processing",
            Self::Failed(_) => "failed",
        }
    }
}

/// A charge and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Attempted {
    pub(super) charge: SimulatedCharge,
    pub(super) outcome: Outcome,
}

/// All charges, in the order they were tried.
#[derive(Debug, Default)]
pub(super) struct Bank(Vec<Attempted>);

impl Bank {
    /// Books a charge and gives it its identifier.
    pub(super) fn book(&mut self, mut charge: SimulatedCharge, outcome: Outcome) -> Attempted {
        charge.charge_id = format!("ch_sim_{}", self.0.len().saturating_add(1));
        charge.currency.make_ascii_uppercase();
        let attempted = Attempted { charge, outcome };
        self.0.push(attempted.clone());
        attempted
    }

    /// The charges that moved money.
    pub(super) fn succeeded(&self) -> Vec<SimulatedCharge> {
        let moved = self.0.iter().filter(|attempted| attempted.outcome == Outcome::Succeeded);
        moved.map(|attempted| attempted.charge.clone()).collect()
    }

    /// The charge with this identifier.
    pub(super) fn by_id(&self, id: &str) -> Option<&Attempted> {
        self.0.iter().find(|attempted| attempted.charge.charge_id == id)
    }

    /// The newest charge of an order that came by the `http` contract.
    pub(super) fn newest(&self, order_id: &str) -> Option<&Attempted> {
        let mut newest_first = self.0.iter().rev();
        newest_first.find(|it| it.charge.gateway == Contract::Http && it.charge.order_id == order_id)
    }

    /// Lets undecided charges succeed whose time has come.
    pub(super) fn settle(&mut self, now: Timestamp) {
        for attempted in &mut self.0 {
            if matches!(attempted.outcome, Outcome::Processing(due) if due <= now) {
                attempted.outcome = Outcome::Succeeded;
            }
        }
    }

    /// Decides every undecided charge at once: success, or failure with this code.
    pub(super) fn settle_all(&mut self, decided: &Result<(), String>) {
        for attempted in &mut self.0 {
            if matches!(attempted.outcome, Outcome::Processing(_)) {
                attempted.outcome = match decided {
                    Ok(()) => Outcome::Succeeded,
                    Err(code) => Outcome::Failed(code.clone()),
                };
            }
        }
    }
}
