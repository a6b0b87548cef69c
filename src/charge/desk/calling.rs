//! Calls: how long one may take, how long it took, and whether it is made once more.

use std::{future::Future, time::Duration};

use super::{Desk, Work};
use crate::{
    charge::{Call, Whom},
    deadline::STOP_SENDING,
    gateway::GatewayError,
    ledger::Ledger,
};

/// How often one call is repeated in this process.
const RESENDS: u32 = 2;
/// The shortest and the longest wait before that.
const RESEND_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1500));
/// The same before a commit that was not answered is made once more.
const COMMIT_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3));

/// How often a call was repeated.
#[derive(Default)]
pub(in crate::charge) struct Resends(u32);

impl Resends {
    /// Waits and says `true` if the call should be made again: the answer allows it, it was not repeated too often,
    /// and there is time.
    pub(in crate::charge) async fn again<L: Ledger>(
        &mut self,
        desk: &Desk<L>,
        work: &Work<'_>,
        error: &GatewayError,
    ) -> bool {
        let again = error.kind.may_resend() && self.0 < RESENDS && desk.pause(work, RESEND_PAUSE).await;
        if again {
            self.count();
        }
        again
    }

    /// Counts a repetition; for one before which nothing is waited.
    pub(in crate::charge) fn count(&mut self) {
        self.0 = self.0.saturating_add(1);
    }
}

impl<L: Ledger> Desk<L> {
    /// How long a call to the provider may take, or `None` if none may be started any more.
    pub(in crate::charge) fn budget(&self, work: &Work<'_>) -> Option<Duration> {
        let stop = work.delivery.deadline.minus(STOP_SENDING);
        let left = work.tenure.sends_until(stop)?.min(stop).since(self.clock.now());
        (!left.is_zero()).then(|| left.min(self.rules.call_timeout))
    }

    /// Waits for a call to the ledger and notes how long it took.
    pub(in crate::charge) async fn timed<T>(&self, work: &mut Work<'_>, call: impl Future<Output = T>) -> T {
        self.noted(work, Whom::Ledger, call).await
    }

    /// Waits for a call to the provider and notes how long it took.
    pub(in crate::charge) async fn asked<T>(&self, work: &mut Work<'_>, call: impl Future<Output = T>) -> T {
        self.noted(work, Whom::Provider, call).await
    }

    async fn noted<T>(&self, work: &mut Work<'_>, whom: Whom, call: impl Future<Output = T>) -> T {
        let began = self.clock.now();
        let result = call.await;
        work.facts.called(Call { whom, began, took: self.clock.now().since(began) });
        result
    }

    /// Waits before a charge is repeated to which nothing was answered; `false` if there is no time for that.
    pub(in crate::charge) async fn pause_after_silence(&self, work: &Work<'_>) -> bool {
        self.pause(work, COMMIT_PAUSE).await
    }

    async fn pause(&self, work: &Work<'_>, (min, max): (Duration, Duration)) -> bool {
        let pause = min.saturating_add(self.random.up_to(max.saturating_sub(min)));
        let in_time = self.budget(work).is_some_and(|left| left > pause);
        if in_time {
            tokio::time::sleep(pause).await;
        }
        in_time
    }
}
