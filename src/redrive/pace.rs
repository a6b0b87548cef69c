//! No more messages a second than asked for, so that a redrive does not cause the next outage.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Counts what was sent against the time that has passed.
#[derive(Debug)]
pub struct Pace {
    per_second: Option<u32>,
    began: Instant,
    sent: u64,
}

impl Pace {
    /// `per_second` messages a second from now on; `None` does not hold back.
    pub fn new(per_second: Option<u32>) -> Self {
        Self { per_second, began: Instant::now(), sent: 0 }
    }

    /// How many messages may go at once.
    pub(super) fn burst(&self) -> usize {
        self.per_second.map_or(usize::MAX, |rate| usize::try_from(rate).unwrap_or(usize::MAX))
    }

    /// Waits until `count` more messages may be sent.
    pub(super) async fn take(&mut self, count: usize) {
        if let Some(rate) = self.per_second {
            let millis = self.sent.saturating_mul(1000).checked_div(rate.into()).unwrap_or(0);
            let due = self.began.checked_add(Duration::from_millis(millis));
            sleep_until(due.unwrap_or(self.began)).await;
        }
        self.sent = self.sent.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_holds_over_bursts() {
        let mut pace = Pace::new(Some(5));
        let began = Instant::now();
        for _ in 0..4 {
            pace.take(5).await;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
