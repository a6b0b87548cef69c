//! What the provider remembers under idempotency keys, and when it forgets.

use std::{collections::BTreeMap, time::Duration};

use super::message::Answer;
use crate::clock::Timestamp;

/// What a key says about a request that carries it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Nobody used the key: execute, then [`KeyStore::remember`] or [`KeyStore::release`].
    New,
    /// The same request was answered before.
    Replay(Answer),
    /// The same request is being executed.
    InUse,
    /// The key belongs to a request with other parameters or another endpoint.
    OtherParameters,
}

#[derive(Debug)]
struct Entry {
    first_used: Timestamp,
    parameters: Vec<u8>,
    /// `None` while the first request is being executed.
    answer: Option<Answer>,
}

/// The keys by their text.
#[derive(Debug, Default)]
pub(super) struct KeyStore(BTreeMap<String, Entry>);

impl KeyStore {
    /// Takes the key for a request, or says why not. A key older than `retention` is as if never used.
    pub(super) fn admit(
        &mut self,
        key: &str,
        parameters: &[u8],
        now: Timestamp,
        retention: Duration,
    ) -> Admission {
        self.0.retain(|_, entry| entry.answer.is_none() || now.since(entry.first_used) < retention);
        match self.0.get(key) {
            Some(entry) if entry.parameters != parameters => Admission::OtherParameters,
            Some(Entry { answer: Some(answer), .. }) => Admission::Replay(answer.clone()),
            Some(Entry { answer: None, .. }) => Admission::InUse,
            None => {
                let entry = Entry { first_used: now, parameters: parameters.to_vec(), answer: None };
                self.0.insert(key.to_owned(), entry);
                Admission::New
            }
        }
    }

    /// Keeps the answer for the next request with this key.
    pub(super) fn remember(&mut self, key: &str, answer: &Answer) {
        if let Some(entry) = self.0.get_mut(key) {
            entry.answer = Some(answer.clone());
        }
    }

    /// Frees a key whose request was refused before it was executed.
    pub(super) fn release(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Forgets every answered key. Requests still being executed keep theirs.
    pub(super) fn forget(&mut self) {
        self.0.retain(|_, entry| entry.answer.is_none());
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn answered(keys: &mut KeyStore) -> Answer {
        let answer = Answer::text(StatusCode::OK, "text/plain", "done".into());
        assert_eq!(keys.admit("k", b"p", at(0), DAY), Admission::New);
        keys.remember("k", &answer);
        answer
    }

    #[test]
    fn a_key_in_use_is_refused_and_an_answered_one_replayed() {
        let mut keys = KeyStore::default();
        assert_eq!(keys.admit("k", b"p", at(0), DAY), Admission::New);
        assert_eq!(keys.admit("k", b"p", at(1), DAY), Admission::InUse);
        keys.release("k");
        let answer = answered(&mut keys);
        assert_eq!(keys.admit("k", b"p", at(1), DAY), Admission::Replay(answer));
        assert_eq!(keys.admit("k", b"q", at(1), DAY), Admission::OtherParameters);
    }

    #[test]
    fn a_key_is_forgotten_when_its_retention_ends() {
        let mut keys = KeyStore::default();
        let answer = answered(&mut keys);
        assert_eq!(keys.admit("k", b"p", at(86_399_999), DAY), Admission::Replay(answer));
        assert_eq!(keys.admit("k", b"p", at(86_400_000), DAY), Admission::New);
    }

    #[test]
    fn forgetting_leaves_requests_in_progress_alone() {
        let mut keys = KeyStore::default();
        answered(&mut keys);
        assert_eq!(keys.admit("running", b"p", at(0), DAY), Admission::New);
        keys.forget();
        assert_eq!(keys.admit("k", b"p", at(0), DAY), Admission::New);
        assert_eq!(keys.admit("running", b"p", at(0), DAY), Admission::InUse);
    }
}
