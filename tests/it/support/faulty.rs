//! A ledger that stops or fails at one write, and remembers every write.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use charge_once::{
    ledger::{Applied, Found, Intent, Ledger, LedgerError},
    order::OrderId,
};
use tokio::sync::Notify;

/// A write by its name in docs/ledger.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Begin,
    StoreHandle,
    Resend,
    Pay,
    Decline,
    Release,
    Hold,
    Other,
}

impl Write {
    fn of(intent: &Intent) -> Self {
        match intent {
            Intent::Begin(_) => Self::Begin,
            Intent::StoreHandle { .. } => Self::StoreHandle,
            Intent::Resend { .. } => Self::Resend,
            Intent::Pay { .. } => Self::Pay,
            Intent::Decline { .. } => Self::Decline,
            Intent::Release { .. } => Self::Release,
            Intent::Hold { .. } => Self::Hold,
            Intent::NewAttempt(_)
            | Intent::ReplaceHandle { .. }
            | Intent::Renew { .. }
            | Intent::Resolve(_)
            | Intent::HoldMissing { .. } => Self::Other,
        }
    }
}

/// What happens at the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not made until [`Faulty::go_on`]; a test that drops the work instead lets its process die here.
    StopBefore(Write),
    /// It is made, and its answer does not arrive until [`Faulty::go_on`].
    StopAfter(Write),
    /// The store does not answer, and did nothing.
    FailBefore(Write),
    /// The store does not answer, but did it.
    FailAfter(Write),
    /// It is made twice, the first answer being lost, as a client that retries does.
    Twice(Write),
}

pub(crate) struct Faulty<L> {
    ledger: L,
    fault: Fault,
    left: AtomicU32,
    reached: Notify,
    released: Notify,
    writes: Mutex<Vec<Write>>,
}

impl<L: Ledger> Faulty<L> {
    /// Meets the fault each time.
    pub(crate) fn always(ledger: L, fault: Fault) -> Self {
        let (reached, released) = (Notify::new(), Notify::new());
        let left = AtomicU32::new(u32::MAX);
        Self { ledger, fault, left, reached, released, writes: Mutex::default() }
    }

    /// Waits until the work has stopped.
    pub(crate) async fn stopped(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn go_on(&self) {
        self.left.store(0, Ordering::SeqCst);
        self.released.notify_one();
    }

    /// Every write so far, whether it was made or not.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }

    async fn stop(&self) {
        if self.left.load(Ordering::SeqCst) > 0 {
            self.reached.notify_one();
            self.released.notified().await;
        }
    }
}

fn silence() -> LedgerError {
    LedgerError { code: "ThrottlingException".to_owned(), source: "simulated".into() }
}

impl<L: Ledger> Ledger for Faulty<L> {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        let write = Write::of(intent);
        let meets = |fault: fn(Write) -> Fault| self.fault == fault(write);
        if meets(Fault::FailBefore) {
            self.writes.lock().unwrap().push(write);
            return Err(silence());
        }
        if meets(Fault::StopBefore) {
            self.stop().await;
        }
        if meets(Fault::Twice) {
            self.ledger.apply(order_id, intent).await?;
        }
        let applied = self.ledger.apply(order_id, intent).await?;
        self.writes.lock().unwrap().push(write);
        if meets(Fault::StopAfter) {
            self.stop().await;
        }
        if meets(Fault::FailAfter) { Err(silence()) } else { Ok(applied) }
    }

    async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
        self.ledger.get(order_id).await
    }
}
