//! The ledger in DynamoDB, against an embedded server over HTTP: the same suite as the ledger in memory, and what
//! only a table can show.
#![expect(clippy::print_stdout, reason = "a long proof says what it did")]

use aws_sdk_dynamodb::types::AttributeValue;
use charge_once::{
    clock::Timestamp,
    ledger::{
        Applied, Begin, Claim, Entry, Evidence, Found, Intent, Ledger, Left, Owner, Paid, Refused, State,
        conformance,
    },
    order::OrderId,
};

use crate::support::dynamodb::{Table, attributes, number, text};

#[tokio::test]
async fn conformance() {
    conformance::run(&Table::create().await).await;
}

#[tokio::test]
async fn expressions_do_what_the_transitions_say() {
    conformance::equivalence(&Table::create().await, 1, 800).await;
}

#[tokio::test]
#[ignore = "long: make prove"]
async fn prove_expressions_do_what_the_transitions_say() {
    let table = Table::create().await;
    for seed in 2..12 {
        conformance::equivalence(&table, seed, 1000).await;
    }
    println!("10000 random writes: DynamoDB and the transitions agree");
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn begin(token: &str, now: Timestamp) -> Begin {
    Begin {
        token: token.to_owned(),
        now,
        lease_until: now,
        one_shot: false,
        may_create: true,
        epoch: None,
        attempt: 1,
        fingerprint: "f".repeat(64),
        amount_minor: 4990,
        currency: "EUR".to_owned(),
        provider: "stripe:default:live".to_owned(),
        message_id: Some(uuid::Uuid::nil().to_string()),
        receive_count: 1,
    }
}

/// Every kind of write, each with a condition that this record would satisfy.
fn every_write(entry: &Entry) -> Vec<Intent> {
    let mine = || Owner { token: entry.owner.clone(), fence: entry.fence };
    let handle = || "pi_1".to_owned();
    let decline = |refused| Intent::Decline { refused, error: "e".to_owned(), now: NOW, expires_at: 1 };
    let pay = |evidence| Intent::Pay {
        evidence,
        charge_id: "ch_1".to_owned(),
        request_id: None,
        now: NOW,
        expires_at: 1,
    };
    let stale = NOW.plus(std::time::Duration::from_secs(100));
    vec![
        Intent::Begin(begin("b", stale)),
        Intent::NewAttempt(Begin { attempt: 2, ..begin("b", stale) }),
        Intent::HoldMissing { begin: begin("b", stale), reason: "r".to_owned() },
        Intent::StoreHandle { mine: mine(), handle: handle(), now: NOW },
        Intent::ReplaceHandle { mine: mine(), old: handle(), new: "pi_2".to_owned(), now: NOW },
        Intent::Resend { mine: mine(), now: NOW },
        pay(Evidence::Handle(handle())),
        pay(Evidence::Attempt(1)),
        decline(Refused::BeforeHandle(mine())),
        decline(Refused::Sealed(handle())),
        decline(Refused::OneShot(mine())),
        Intent::Release { mine: mine(), error: "e".to_owned(), left: Left::NothingSent },
        Intent::Renew { mine: mine(), until: NOW },
        Intent::Hold { mine: mine(), reason: "r".to_owned(), now: NOW },
    ]
}

#[tokio::test]
async fn a_record_of_a_later_version_is_never_written_to() {
    let table = Table::create().await;
    let first = Intent::Begin(begin("a", NOW)).apply(None).unwrap();
    let spoilt = [("version", number(2)), ("state", text("REFUNDED")), ("fence", text("one"))];
    for (attribute, value) in spoilt {
        for handle in [None, Some("pi_1".to_owned())] {
            for state in State::ALL {
                let id = OrderId::parse(&format!("later-{attribute}")).unwrap();
                let entry = Entry { state, handle: handle.clone(), ..first.clone() };
                let mut item = attributes(&id, &entry);
                item.retain(|(name, _)| *name != attribute);
                item.push((attribute, value.clone()));
                table.put(item.clone()).await;
                // Of the rest, each condition asks only for what it needs.
                let by_condition = matches!(attribute, "version" | "state");
                for intent in every_write(&entry).iter().filter(|_| by_condition) {
                    let applied = table.ledger.apply(&id, intent).await.unwrap();
                    assert_eq!(applied, Applied::Refused(Found::Unreadable), "{attribute} {intent:?}");
                }
                assert_eq!(table.ledger.get(&id).await.unwrap(), Found::Unreadable, "{attribute}");
            }
            let id = OrderId::parse(&format!("later-{attribute}")).unwrap();
            if matches!(attribute, "version" | "state") {
                let claim = table.ledger.begin(&id, begin("b", NOW)).await.unwrap();
                assert_eq!(claim, Claim::Unreadable, "{attribute}");
            }
        }
    }
}

/// The longest of everything that can get into a record stays far below DynamoDB's 400 KB, and within the 1 KB
/// that one write unit pays for in the ordinary case.
#[tokio::test]
async fn a_record_stays_small_whatever_the_provider_answers() {
    let table = Table::create().await;
    let size = |item: &[(String, AttributeValue)]| -> usize {
        let value = |value: &AttributeValue| value.as_s().or_else(|_| value.as_n()).unwrap().len();
        item.iter().map(|(name, it)| name.len() + value(it)).sum()
    };
    let longest = "x".repeat(120);
    for (order_id, code, limit) in
        [("o-1".to_owned(), "card_declined".to_owned(), 1024), ("o".repeat(128), longest, 2048)]
    {
        let id = OrderId::parse(&order_id).unwrap();
        let claim = table.ledger.begin(&id, begin(&uuid::Uuid::nil().to_string(), NOW)).await.unwrap();
        let Claim::Started(lease) = claim else { panic!("{claim:?}") };
        let lease = table.ledger.store_handle(*lease, code.clone(), NOW).await.unwrap();
        let owner = lease.owner();
        let error = Intent::Release { mine: owner, error: code.clone(), left: Left::Doubt };
        table.ledger.apply(&id, &error).await.unwrap();
        let paid = Paid {
            evidence: Evidence::Handle(code.clone()),
            charge_id: code.clone(),
            request_id: Some(code.clone()),
            now: NOW,
            expires_at: NOW.as_secs(),
        };
        let before = size(&table.item(&order_id).await);
        table.ledger.complete(lease, paid).await.unwrap();
        let after = size(&table.item(&order_id).await);
        assert!(before.max(after) < limit, "{before} and {after} bytes");
    }
}
