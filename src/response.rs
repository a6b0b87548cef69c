//! Decisions -> the answer to Lambda. What is not listed is deleted, so the list is made of identifiers that were
//! seen in the event, each once.

use std::collections::HashSet;

use aws_lambda_events::sqs::SqsBatchResponse;

use crate::{batch::Judged, order::OrderId, record::MessageId};

/// A record failed that has no identifier, so it cannot be listed: only failing the invocation keeps it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "records without a messageId failed and cannot be listed (positions {positions:?}); the whole batch is returned, \
     orders that were charged are recognised when they come again"
)]
pub struct UnnamedFailure {
    /// Their places in the batch, from 0.
    pub positions: Vec<usize>,
}

/// The answer for a batch.
///
/// # Errors
/// A record that cannot be named has failed.
pub fn answer(judged: &[Judged]) -> Result<SqsBatchResponse, UnnamedFailure> {
    let done: HashSet<(&MessageId, &OrderId)> =
        judged.iter().filter(|one| one.outcome.decision.is_ack()).filter_map(named_order).collect();
    let mut listed = HashSet::new();
    let mut positions = Vec::new();
    let mut response = SqsBatchResponse::default();
    for one in judged.iter().filter(|one| !one.outcome.decision.is_ack()) {
        let Some(id) = &one.record.message_id else {
            positions.push(one.record.position);
            continue;
        };
        // The same message twice in one batch: if its order ended well once, the message may go.
        let ended_well = named_order(one).is_some_and(|key| done.contains(&key));
        if !ended_well && listed.insert(id) {
            response.add_failure(id.as_str());
        }
    }
    if positions.is_empty() { Ok(response) } else { Err(UnnamedFailure { positions }) }
}

fn named_order(judged: &Judged) -> Option<(&MessageId, &OrderId)> {
    Some((judged.record.message_id.as_ref()?, judged.order.as_ref()?.id()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        charge::Outcome,
        decision::{AckReason, Decision, PoisonReason},
        event,
        order::{Order, OrderRules},
    };

    const RULES: OrderRules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };

    /// A record with its `messageId` as JSON, the order's identifier, and whether it was acknowledged.
    fn judged(position: usize, id: &str, order: &str, ack: bool) -> Judged {
        let mut records = event::records(&format!(r#"{{"Records":[{{"messageId":{id}}}]}}"#)).unwrap();
        let mut record = records.remove(0);
        record.position = position;
        let body = format!(r#"{{"order_id":"{order}","amount":1,"currency":"EUR"}}"#);
        let decision = match ack {
            true => Decision::Ack(AckReason::Charged),
            false => Decision::Poison(PoisonReason::Mismatch),
        };
        let order = Order::parse(&body, &RULES).ok();
        Judged {
            record,
            order,
            outcome: Outcome::of(decision),
            behind: None,
            began: crate::clock::Timestamp::from_millis(0),
            took: std::time::Duration::ZERO,
        }
    }

    fn json(judged: &[Judged]) -> String {
        serde_json::to_string(&answer(judged).unwrap()).unwrap()
    }

    #[test]
    fn the_answer_is_exactly_what_lambda_reads() {
        assert_eq!(json(&[]), r#"{"batchItemFailures":[]}"#);
        let batch = [judged(0, r#""m-1""#, "o-1", true), judged(1, r#""m-2""#, "o-2", false)];
        assert_eq!(json(&batch), r#"{"batchItemFailures":[{"itemIdentifier":"m-2"}]}"#);
    }

    #[test]
    fn a_message_that_stands_twice_is_listed_once() {
        let twice = [judged(0, r#""m-1""#, "o-1", false), judged(1, r#""m-1""#, "o-1", false)];
        assert_eq!(json(&twice), r#"{"batchItemFailures":[{"itemIdentifier":"m-1"}]}"#);
    }

    #[test]
    fn a_message_that_stands_twice_and_whose_order_ended_well_is_not_listed() {
        let well = [judged(0, r#""m-1""#, "o-1", false), judged(1, r#""m-1""#, "o-1", true)];
        assert_eq!(json(&well), r#"{"batchItemFailures":[]}"#);
        let other = [judged(0, r#""m-1""#, "o-1", false), judged(1, r#""m-1""#, "o-2", true)];
        assert_eq!(json(&other), r#"{"batchItemFailures":[{"itemIdentifier":"m-1"}]}"#);
    }

    #[test]
    fn a_failure_without_a_name_fails_the_invocation() {
        let unnamed = [judged(0, "null", "o-1", true), judged(1, r#""""#, "o-2", false)];
        assert_eq!(answer(&unnamed).unwrap_err().positions, [1]);
        assert_eq!(json(&unnamed[..1]), r#"{"batchItemFailures":[]}"#);
    }

    proptest! {
        #[test]
        fn nothing_is_listed_that_was_not_in_the_event_and_nothing_that_failed_is_missing(
            // Few ids and orders, so that messages and orders come twice; some without a name.
            shape in prop::collection::vec((0_u8..6, 0_u8..4, any::<bool>()), 0..30)
        ) {
            let name = |id: u8| if id == 0 { "null".to_owned() } else { format!(r#""m-{id}""#) };
            let batch: Vec<Judged> = shape
                .iter()
                .enumerate()
                .map(|(position, (id, order, ack))| judged(position, &name(*id), &format!("o-{order}"), *ack))
                .collect();
            let unnamed = shape.iter().any(|(id, _, ack)| *id == 0 && !ack);
            let Ok(answer) = answer(&batch) else {
                prop_assert!(unnamed);
                return Ok(());
            };
            prop_assert!(!unnamed, "a failure without a name was passed over");
            let listed: Vec<&str> =
                answer.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
            let once: HashSet<&&str> = listed.iter().collect();
            prop_assert_eq!(once.len(), listed.len());
            for id in 1..6 {
                let of_this = || shape.iter().filter(|one| one.0 == id);
                let failed = of_this()
                    .any(|(_, order, ack)| !ack && !of_this().any(|other| other.1 == *order && other.2));
                prop_assert_eq!(listed.contains(&format!("m-{id}").as_str()), failed);
            }
            let named = |id: &&str| {
                batch.iter().any(|one| one.record.message_id.as_ref().is_some_and(|own| own.as_str() == *id))
            };
            prop_assert!(listed.iter().all(named));
        }
    }
}
