//! Where every order ended: the provider's charges, the ledger and the dead-letter queue, joined.
//!
//! An order is charged (once, and the ledger says PAID), or its message lies in the dead-letter queue and nobody
//! paid. Anything else is a fault: charged twice, or lost.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{gateway::simulated::SimulatedCharge, generate::Generated, local::dynamodb::Row};

/// Who knows what became of the orders. charge-once's own function is judged by both; a function of somebody's own may
/// call another provider, or keep its orders elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Books {
    /// The provider's charges and the ledger, which must agree.
    Both,
    /// The provider only: the ledger has no order.
    Provider,
    /// The ledger only: nothing was charged at the simulated provider. What was done twice cannot be seen.
    Ledger,
    /// Neither: what becomes of an order that leaves the queue cannot be seen.
    Nobody,
}

impl Books {
    /// Those that somebody's own function has written in.
    pub fn of_foreign(charges: &[SimulatedCharge], ledger: &[Row]) -> Self {
        match (charges, ledger.iter().any(|row| order_id(row).is_some())) {
            ([_, ..], true) => Self::Both,
            ([_, ..], false) => Self::Provider,
            ([], true) => Self::Ledger,
            ([], false) => Self::Nobody,
        }
    }

    /// Their name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "provider and ledger",
            Self::Provider => "provider",
            Self::Ledger => "ledger",
            Self::Nobody => "nobody",
        }
    }
}

/// What is joined.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Who is asked.
    pub books: Books,
    /// Every message that was sent, in order.
    pub sent: &'a [Generated],
    /// The charges that moved money, in the order they were made.
    pub charges: &'a [SimulatedCharge],
    /// The ledger's rows.
    pub ledger: &'a [Row],
    /// The bodies in the dead-letter queue.
    pub dead: &'a [String],
}

/// Where every order ended. Each is in exactly one of the counts or lists, except that `out_of_order` names orders
/// that are also elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Different orders.
    pub orders: usize,
    /// Charged once, with the amount and currency that the ledger calls PAID; where only one of them is asked, by that.
    pub charged: usize,
    /// DECLINED in the ledger, never charged.
    pub declined: usize,
    /// HELD in the ledger for a person, with a message in the dead-letter queue.
    pub held: usize,
    /// In the dead-letter queue without a final state: its receives ran out.
    pub unsettled: usize,
    /// Left the queue, and nobody knows what became of it; only with [`Books::Nobody`].
    pub unseen: usize,
    /// Messages without a usable order that lie in the dead-letter queue.
    pub poison: usize,
    /// Orders, and messages without one, that are nowhere, or whose money and ledger row contradict each other.
    pub lost: Vec<String>,
    /// Orders charged more than once.
    pub double: Vec<String>,
    /// Orders charged before an earlier one of their group; only looked for where order matters.
    pub out_of_order: Vec<String>,
}

impl Audit {
    /// Joins the evidence; `in_order` tells that each group's orders have to be charged in the order sent.
    pub fn of(evidence: &Evidence<'_>, in_order: bool) -> Self {
        let mut audit = Self::default();
        let dead: BTreeSet<&str> = evidence.dead.iter().map(String::as_str).collect();
        let rows = evidence.ledger.iter().filter_map(|row| Some((order_id(row)?, row))).collect();
        let charges = by_order(evidence.charges);
        for message in first_of_each(evidence.sent) {
            let is_dead = dead.contains(message.body.as_str());
            match &message.order_id {
                Some(order_id) => audit.place(order_id, &charges, &rows, is_dead, evidence.books),
                None if is_dead => audit.poison = audit.poison.saturating_add(1),
                None if evidence.books == Books::Nobody => audit.unseen = audit.unseen.saturating_add(1),
                None => audit.lost.push(message.body.clone()),
            }
        }
        if in_order {
            audit.out_of_order = out_of_order(evidence);
        }
        audit
    }

    /// No order is lost, charged twice or out of order.
    pub fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.double.is_empty() && self.out_of_order.is_empty()
    }

    fn place(
        &mut self,
        order_id: &str,
        charges: &BTreeMap<&str, Vec<&SimulatedCharge>>,
        rows: &BTreeMap<&str, &Row>,
        is_dead: bool,
        books: Books,
    ) {
        self.orders = self.orders.saturating_add(1);
        let charges = charges.get(order_id).map(Vec::as_slice).unwrap_or_default();
        let row = rows.get(order_id);
        let state = row.and_then(|row| row.get("state")).and_then(Value::as_str).unwrap_or_default();
        let count = match (books, charges, state) {
            (_, [_, _, ..], _) => return self.double.push(order_id.to_owned()),
            (Books::Both, [charge], "PAID") if row.is_some_and(|row| agree(charge, row)) => &mut self.charged,
            (Books::Provider, [_], _) | (Books::Ledger, [], "PAID") => &mut self.charged,
            (_, [], "DECLINED") => &mut self.declined,
            (_, _, "HELD") if is_dead => &mut self.held,
            (_, _, "PAID" | "DECLINED") => return self.lost.push(order_id.to_owned()),
            _ if is_dead => &mut self.unsettled,
            (Books::Nobody, _, _) => &mut self.unseen,
            _ => return self.lost.push(order_id.to_owned()),
        };
        *count = count.saturating_add(1);
    }
}

/// Each message once, however often it was sent.
fn first_of_each(sent: &[Generated]) -> impl Iterator<Item = &Generated> {
    let mut seen = BTreeSet::new();
    sent.iter().filter(move |message| seen.insert(message.body.as_str()))
}

fn by_order(charges: &[SimulatedCharge]) -> BTreeMap<&str, Vec<&SimulatedCharge>> {
    let mut by_order = BTreeMap::<_, Vec<_>>::new();
    for charge in charges {
        by_order.entry(charge.order_id.as_str()).or_default().push(charge);
    }
    by_order
}

/// The order a row is about.
fn order_id(row: &Row) -> Option<&str> {
    row.get("pk")?.as_str()?.strip_prefix("order#")
}

fn agree(charge: &SimulatedCharge, row: &Row) -> bool {
    let currency = row.get("currency").and_then(Value::as_str);
    row.get("amount_minor").and_then(Value::as_i64) == Some(charge.amount_minor)
        && currency.is_some_and(|currency| currency.eq_ignore_ascii_case(&charge.currency))
}

fn out_of_order(evidence: &Evidence<'_>) -> Vec<String> {
    let first = first_of_each(evidence.sent).enumerate();
    let sent: BTreeMap<&str, (usize, &str)> = first
        .filter_map(|(position, message)| Some((message.order_id.as_deref()?, (position, &*message.group))))
        .collect();
    let mut latest = BTreeMap::<&str, usize>::new();
    let mut early = Vec::new();
    for charge in evidence.charges {
        let Some((position, group)) = sent.get(charge.order_id.as_str()) else { continue };
        let latest = latest.entry(group).or_default();
        if position < latest {
            early.push(charge.order_id.clone());
        }
        *latest = (*latest).max(*position);
    }
    early
}

#[cfg(test)]
mod tests;
