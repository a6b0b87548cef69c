use serde_json::json;

use super::*;
use crate::gateway::simulated::Contract;

fn message(order_id: Option<&str>) -> Generated {
    let body = order_id.map_or_else(|| "{".to_owned(), |id| format!(r#"{{"order_id":"{id}"}}"#));
    Generated { body, order_id: order_id.map(str::to_owned), group: "g".into() }
}

fn charge(order_id: &str) -> SimulatedCharge {
    SimulatedCharge {
        order_id: order_id.into(),
        attempt: 1,
        amount_minor: 4990,
        currency: "EUR".into(),
        charge_id: "ch".into(),
        gateway: Contract::Http,
    }
}

fn row(order_id: &str, state: &str) -> Row {
    let row =
        json!({ "pk": format!("order#{order_id}"), "state": state, "amount_minor": 4990, "currency": "EUR" });
    row.as_object().unwrap().clone()
}

/// The audit of one order.
fn one(charges: usize, state: Option<&str>, dead: bool) -> Audit {
    let sent = [message(Some("o")), message(Some("o"))];
    let charges = vec![charge("o"); charges];
    let ledger: Vec<Row> = state.map(|state| row("o", state)).into_iter().collect();
    let dead: Vec<String> = dead.then(|| sent[0].body.clone()).into_iter().collect();
    let evidence =
        Evidence { books: Books::Both, sent: &sent, charges: &charges, ledger: &ledger, dead: &dead };
    Audit { orders: 0, ..Audit::of(&evidence, false) }
}

#[test]
fn every_order_has_one_place() {
    let none = Audit::default();
    let lost = Audit { lost: vec!["o".into()], ..none.clone() };
    let cases = [
        ((1, Some("PAID"), false), Audit { charged: 1, ..none.clone() }),
        // Charged, and the message died afterwards: it is safe to drop.
        ((1, Some("PAID"), true), Audit { charged: 1, ..none.clone() }),
        ((0, Some("DECLINED"), true), Audit { declined: 1, ..none.clone() }),
        ((0, Some("HELD"), true), Audit { held: 1, ..none.clone() }),
        ((1, Some("HELD"), true), Audit { held: 1, ..none.clone() }),
        ((1, Some("PREPARED"), true), Audit { unsettled: 1, ..none.clone() }),
        ((0, None, true), Audit { unsettled: 1, ..none.clone() }),
        ((2, Some("PAID"), false), Audit { double: vec!["o".into()], ..none }),
        // Deleted without a charge, without a record, or with one that says otherwise.
        ((0, None, false), lost.clone()),
        ((0, Some("PAID"), true), lost.clone()),
        ((1, Some("PREPARED"), false), lost.clone()),
        ((1, Some("DECLINED"), true), lost.clone()),
        ((0, Some("HELD"), false), lost),
    ];
    for ((charges, state, dead), expected) in cases {
        assert_eq!(one(charges, state, dead), expected, "{charges} {state:?} {dead}");
    }
}

/// Somebody's own function is asked only where it writes.
#[test]
fn a_foreign_function_is_judged_by_what_it_wrote() {
    let audit = |charges: &[SimulatedCharge], ledger: &[Row]| {
        let sent = [message(Some("a")), message(Some("b")), message(None)];
        let books = Books::of_foreign(charges, ledger);
        let dead = [sent[1].body.clone(), sent[2].body.clone()];
        (books, Audit::of(&Evidence { books, sent: &sent, charges, ledger, dead: &dead }, false))
    };
    let of = Audit { orders: 2, poison: 1, ..Audit::default() };
    let charged = Audit { charged: 1, unsettled: 1, ..of.clone() };
    let unseen = Audit { unseen: 1, unsettled: 1, ..of.clone() };
    assert_eq!(audit(&[charge("a")], &[]), (Books::Provider, charged.clone()));
    assert_eq!(audit(&[], &[row("a", "PAID")]), (Books::Ledger, charged.clone()));
    assert_eq!(audit(&[charge("a")], &[row("a", "PAID")]), (Books::Both, charged));
    assert_eq!(audit(&[], &[Row::new()]), (Books::Nobody, unseen), "rows that are no orders");

    let twice = [charge("a"), charge("a")];
    assert_eq!(audit(&twice, &[]).1.double, ["a"]);
    assert_eq!(audit(&[charge("b")], &[]).1.lost, ["a"], "the others were charged");
    assert_eq!(audit(&[], &[row("b", "PAID")]).1.lost, ["a"], "the ledger knows the others");
}

#[test]
fn another_amount_than_the_ledgers_is_a_fault() {
    let sent = [message(Some("o"))];
    let charges = [SimulatedCharge { amount_minor: 1, ..charge("o") }];
    let evidence = Evidence {
        books: Books::Both,
        sent: &sent,
        charges: &charges,
        ledger: &[row("o", "PAID")],
        dead: &[],
    };
    assert_eq!(Audit::of(&evidence, false).lost, ["o"]);
}

#[test]
fn poison_belongs_into_the_dead_letter_queue() {
    let sent = [message(None)];
    let in_dlq = |dead: &[String]| {
        Audit::of(&Evidence { books: Books::Both, sent: &sent, charges: &[], ledger: &[], dead }, false)
    };
    assert_eq!(in_dlq(&["{".into()]).poison, 1);
    assert_eq!(in_dlq(&[]).lost, ["{"]);
    assert!(!in_dlq(&[]).is_sound());
}

#[test]
fn a_group_is_charged_in_the_order_sent() {
    let sent = ["a", "b", "c"].map(|order| message(Some(order)));
    let ledger = ["a", "b", "c"].map(|order| row(order, "PAID"));
    let audit = |order: [&str; 3], in_order| {
        let charges = order.map(charge);
        Audit::of(
            &Evidence { books: Books::Both, sent: &sent, charges: &charges, ledger: &ledger, dead: &[] },
            in_order,
        )
    };
    assert!(audit(["a", "b", "c"], true).is_sound());
    assert_eq!(audit(["b", "a", "c"], true).out_of_order, ["a"]);
    assert!(audit(["b", "a", "c"], false).is_sound());
}
