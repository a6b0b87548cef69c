//! The production transitions on the model's small records, and the same with a rule taken away.

use charge_once::{
    clock::Timestamp,
    ledger::{Begin, Entry, Evidence, Intent, Owner, Refused, State},
};

use super::state::{Lease, Record, Rules};

/// Far past every lease, so that any owner can be overtaken at any moment.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LAPSED: Timestamp = Timestamp::from_millis(0);

/// The record after `intent`, or `None` if it is refused. A write that is there already counts as written.
pub(super) fn apply(rules: Rules, intent: &Intent, old: Option<Record>) -> Option<Record> {
    let entry = old.map(entry);
    let unguarded = entry.as_ref().and_then(|entry| without(rules, intent, entry));
    let new = unguarded.or_else(|| intent.apply(entry.as_ref()));
    let done = || entry.filter(|entry| intent.is_already_done(entry));
    new.or_else(done).map(|entry| record(&entry))
}

/// The write as it would be without the rule that was taken away.
fn without(rules: Rules, intent: &Intent, old: &Entry) -> Option<Entry> {
    if let Intent::StoreHandle { mine, .. } = intent
        && !rules.fence
    {
        let (owner, fence) = (mine.token.clone(), mine.fence);
        return intent.apply(Some(&Entry {
            owner,
            fence,
            state: State::Claimed,
            handle: None,
            ..old.clone()
        }));
    }
    if matches!(intent, Intent::ReplaceHandle { .. }) && !rules.prepared {
        let new = intent.apply(Some(&Entry { state: State::Prepared, ..old.clone() }))?;
        return Some(Entry { state: old.state, ..new });
    }
    None
}

pub(super) fn begin(owner: u8, attempt: u8, may_create: bool) -> Begin {
    Begin {
        token: owner.to_string(),
        now: NOW,
        lease_until: LAPSED,
        one_shot: false,
        may_create,
        epoch: None,
        attempt: u32::from(attempt),
        fingerprint: String::new(),
        amount_minor: 1,
        currency: String::new(),
        provider: String::new(),
        message_id: None,
        receive_count: 1,
    }
}

fn mine(lease: &Lease) -> Owner {
    Owner { token: lease.owner.to_string(), fence: u64::from(lease.fence) }
}

pub(super) fn store(lease: &Lease, handle: u8) -> Intent {
    let (mine, new) = (mine(lease), handle.to_string());
    match lease.handle {
        None => Intent::StoreHandle { mine, handle: new, now: NOW },
        Some(old) => Intent::ReplaceHandle { mine, old: old.to_string(), new, now: NOW },
    }
}

pub(super) fn pay(handle: u8) -> Intent {
    let handle = handle.to_string();
    let evidence = Evidence::Handle(handle.clone());
    Intent::Pay { evidence, charge_id: handle, request_id: None, now: NOW, expires_at: 0 }
}

pub(super) fn decline(handle: u8) -> Intent {
    let refused = Refused::Sealed(handle.to_string());
    Intent::Decline { refused, error: String::new(), now: NOW, expires_at: 0 }
}

fn entry(record: Record) -> Entry {
    let Record { state, owner, fence, attempt, handle, generation, charge } = record;
    Entry {
        state,
        owner: owner.to_string(),
        fence: u64::from(fence),
        lease_until: state.is_live().then_some(LAPSED),
        attempt: u32::from(attempt),
        fingerprint: String::new(),
        amount_minor: 1,
        currency: String::new(),
        provider: String::new(),
        handle: handle.map(|handle| handle.to_string()),
        handle_generation: u32::from(generation),
        first_seen_at: NOW,
        first_sent_at: None,
        state_changed_at: NOW,
        charge_id: charge.map(|charge| charge.to_string()),
        provider_request_id: None,
        error: (state == State::Declined).then(String::new),
        held_reason: None,
        message_id: None,
        receive_count: 1,
        attention: None,
        expires_at: None,
    }
}

fn record(entry: &Entry) -> Record {
    let number = |text: &String| text.parse().unwrap();
    Record {
        state: entry.state,
        owner: number(&entry.owner),
        fence: u8::try_from(entry.fence).unwrap(),
        attempt: u8::try_from(entry.attempt).unwrap(),
        handle: entry.handle.as_ref().map(number),
        generation: u8::try_from(entry.handle_generation).unwrap(),
        charge: entry.charge_id.as_ref().map(number),
    }
}
