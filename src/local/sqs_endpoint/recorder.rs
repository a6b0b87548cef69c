//! Remembers every visibility change that was asked for, and fails them on request.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::wire::ChangeMessageVisibility;
use crate::queue::memory::SqsError;

/// A visibility change that was asked for, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibilityCall {
    /// The queue's URL as the caller wrote it.
    pub queue_url: String,
    /// The delivery.
    pub receipt_handle: String,
    /// The timeout asked for, in seconds.
    pub seconds: u32,
}

/// How visibility changes fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibilityFailure {
    /// Every entry fails; a batch call itself succeeds.
    Entries(SqsError),
    /// Every call fails as a whole, before its entries are looked at.
    Calls(SqsError),
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    accept_unknown: AtomicBool,
    failure: Mutex<Option<VisibilityFailure>>,
    calls: Mutex<Vec<VisibilityCall>>,
}

impl Recorder {
    pub(super) fn accept_unknown(&self) {
        self.accept_unknown.store(true, Ordering::Relaxed);
    }

    pub(super) fn accepts_unknown(&self) -> bool {
        self.accept_unknown.load(Ordering::Relaxed)
    }

    pub(super) fn fail(&self, failure: Option<VisibilityFailure>) {
        *lock(&self.failure) = failure;
    }

    pub(super) fn calls(&self) -> Vec<VisibilityCall> {
        lock(&self.calls).clone()
    }

    /// Fails the call as a whole if that is asked for.
    pub(super) fn whole_call(&self) -> Result<(), SqsError> {
        match &*lock(&self.failure) {
            Some(VisibilityFailure::Calls(error)) => Err(error.clone()),
            Some(VisibilityFailure::Entries(_)) | None => Ok(()),
        }
    }

    /// Notes one change, and fails it if that is asked for.
    pub(super) fn record(&self, queue_url: &str, request: &ChangeMessageVisibility) -> Result<(), SqsError> {
        lock(&self.calls).push(VisibilityCall {
            queue_url: queue_url.to_owned(),
            receipt_handle: request.receipt_handle.clone(),
            seconds: request.visibility_timeout,
        });
        match &*lock(&self.failure) {
            Some(VisibilityFailure::Entries(error)) => Err(error.clone()),
            Some(VisibilityFailure::Calls(_)) | None => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
