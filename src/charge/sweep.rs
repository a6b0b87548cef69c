//! Settles what a delivery left in doubt, without a message: asks the provider and writes down the answer.
//!
//! The sweeper never moves money. Nobody waits for it, and the record does not hold what a charge needs; where a
//! delivery would prepare, commit or send, it lets go and leaves the order to the next delivery. What it does
//! beyond asking is what makes an answer final: it seals a handle that was declined.

use std::future::Future;

use super::{
    Delivery, LookUp, OneShotCharge, Outcome, TwoPhaseCharge,
    desk::Work,
    one_shot::Doubted,
    phase::{Armed, Commit, Phase},
    tenure::Tenure,
};
use crate::{
    clock::Timestamp,
    decision::{Code, Decision, RetryAfter, RetryReason},
    gateway::{LookedUp, OneShotGateway, TwoPhaseGateway},
    ledger::{Entry, Lease, Ledger, Left, State},
    money::{Currency, Money},
    order::{Order, OrderId},
};

/// The reason of an order that only a delivery can bring further.
const WAITS_FOR_DELIVERY: &str = "WAITS_FOR_DELIVERY";

/// Settles a record with the provider.
pub trait Sweep: Send + Sync {
    /// What the provider says of the order is written down; [`Decision::Ack`] if it was charged,
    /// [`Decision::Poison`] if it is declined or held now, [`Decision::Retry`] if it stays in doubt.
    fn sweep(
        &self,
        order_id: &OrderId,
        entry: &Entry,
        deadline: Timestamp,
    ) -> impl Future<Output = Outcome> + Send;
}

impl<L: Ledger, G: TwoPhaseGateway> Sweep for TwoPhaseCharge<L, G> {
    async fn sweep(&self, order_id: &OrderId, entry: &Entry, deadline: Timestamp) -> Outcome {
        let Some((order, delivery)) = remembered(order_id, entry, self.gateway.provider(), deadline) else {
            return left_alone();
        };
        let tenure = Tenure::default();
        let mut work = Work::new(&order, &delivery, &tenure);
        let decision = match &entry.handle {
            Some(_) => self.ask(&mut work, entry).await,
            None => Decision::retry(waits()),
        };
        Outcome { decision, facts: work.facts }
    }
}

impl<L: Ledger, G: TwoPhaseGateway> TwoPhaseCharge<L, G> {
    async fn ask(&self, work: &mut Work<'_>, entry: &Entry) -> Decision {
        let lease = match self.desk.reclaim(work, entry).await {
            Ok(lease) => lease,
            Err(decision) => return decision,
        };
        let Some(handle) = lease.entry().handle.clone() else {
            return let_go(&self.desk, work, lease).await;
        };
        let mut phase = Phase::Inspect(Armed { lease, handle }, Commit::None);
        loop {
            phase = match phase {
                Phase::Inspect(armed, commit) => self.inspect(work, armed, commit).await,
                Phase::Settle(armed, seen, commit) => self.settle(work, armed, seen, commit).await,
                Phase::Seal(armed, code) => self.seal(work, armed, code).await,
                Phase::Prepare { lease, .. } | Phase::Commit(Armed { lease, .. }, _) => {
                    return let_go(&self.desk, work, lease).await;
                }
                Phase::End(decision) => return decision,
            };
        }
    }
}

impl<L: Ledger, G: OneShotGateway> Sweep for OneShotCharge<L, G> {
    async fn sweep(&self, order_id: &OrderId, entry: &Entry, deadline: Timestamp) -> Outcome {
        let Some((order, delivery)) = remembered(order_id, entry, self.gateway.provider(), deadline) else {
            return left_alone();
        };
        let tenure = Tenure::default();
        let mut work = Work::new(&order, &delivery, &tenure);
        let key_age = entry.first_sent_at.map(|sent| self.desk.clock.now().since(sent));
        let key_lives = key_age.is_some_and(|age| age < self.key_window);
        let decision = match (entry.state, self.look_up) {
            // Inside the window the next delivery sends the same key again, which settles it without a doubt.
            (State::Sent, LookUp::Off) if key_lives => Decision::retry(waits()),
            (State::Sent, LookUp::Off | LookUp::On | LookUp::ThenCharge) => {
                self.find(&mut work, entry, key_lives).await
            }
            (State::Claimed | State::Prepared | State::Paid | State::Declined | State::Held, _) => {
                Decision::retry(waits())
            }
        };
        Outcome { decision, facts: work.facts }
    }
}

impl<L: Ledger, G: OneShotGateway> OneShotCharge<L, G> {
    async fn find(&self, work: &mut Work<'_>, entry: &Entry, key_lives: bool) -> Decision {
        let lease = match self.desk.reclaim(work, entry).await {
            Ok(lease) => lease,
            Err(decision) => return decision,
        };
        if self.desk.is_restored(&lease) {
            return self.settle_by_look_up(work, lease, Doubted::Restored).await;
        }
        if !key_lives {
            return self.settle_by_look_up(work, lease, Doubted::Expired { may_charge: false }).await;
        }
        let Some(within) = self.desk.budget(work) else {
            return let_go(&self.desk, work, lease).await;
        };
        let found = self.desk.asked(work, self.gateway.find(work.order, within)).await;
        match found {
            Ok(LookedUp::Charge(answer)) => self.settle(work, lease, answer).await,
            Ok(LookedUp::Nothing | LookedUp::Unclear) => let_go(&self.desk, work, lease).await,
            Err(error) => self.desk.give_back(work, lease, Left::Doubt, &error).await,
        }
    }
}

/// The order and a delivery that stands for the missing message; `None` if the record is not this gateway's.
fn remembered(
    order_id: &OrderId,
    entry: &Entry,
    provider: &str,
    deadline: Timestamp,
) -> Option<(Order, Delivery)> {
    if entry.provider != provider {
        return None;
    }
    let money = Money::recorded(entry.amount_minor, Currency::parse(&entry.currency)?)?;
    let order = Order::recorded(order_id.clone(), money, entry.attempt);
    let delivery = Delivery { message_id: None, receive_count: entry.receive_count, sent_at: None, deadline };
    Some((order, delivery))
}

async fn let_go<L: Ledger>(desk: &super::Desk<L>, work: &mut Work<'_>, lease: Lease) -> Decision {
    desk.release(work, lease, Left::Doubt, waits(), RetryAfter::Backoff).await
}

fn waits() -> RetryReason {
    RetryReason::Gateway(Code::new(WAITS_FOR_DELIVERY))
}

/// A record of another provider, account or mode: this gateway's answer would prove nothing.
fn left_alone() -> Outcome {
    Outcome::of(Decision::retry(RetryReason::Gateway(Code::new("OTHER_PROVIDER"))))
}
