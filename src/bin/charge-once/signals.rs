//! What asks a command that goes on for long to end.

use std::{
    future::Future,
    io,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::screen::note;

/// What shells show for a process that a signal ended.
const INTERRUPTED: i32 = 130;

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on neither ends the process by itself.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Does the work. The first signal asks it to end, a second one ends the process after the last words.
    pub(crate) async fn watch<T>(
        &mut self,
        work: impl Future<Output = T>,
        ask: impl FnOnce(),
        last_words: impl FnOnce(),
    ) -> T {
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => return result,
            () = self.next() => ask(),
        }
        tokio::select! {
            result = work => result,
            () = self.next() => {
                last_words();
                std::process::exit(INTERRUPTED)
            }
        }
    }
}

/// Whether somebody asked work to end that goes on in steps: it looks between two of them.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Does the work, whose steps look at this.
    ///
    /// # Errors
    /// Signals cannot be listened to.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let last_words = || note("stopped in the middle of a step; part of it may be done");
        Ok(Signals::new()?.watch(work, || self.0.store(true, Ordering::Relaxed), last_words).await)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the next step may begin.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
