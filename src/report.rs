//! What both shells tell of a record: one log line.

use crate::{batch::Judged, charge::Alarm, decision::Decision, order::Order};

/// Writes the line of one record.
pub fn log(judged: &Judged) {
    let Judged { record, order, outcome, took, .. } = judged;
    let facts = &outcome.facts;
    let explained = match (&facts.error, &outcome.decision) {
        (None, Decision::Poison(reason)) => reason.explain(),
        (None, Decision::Ack(_) | Decision::Retry { .. }) | (Some(_), _) => None,
    };
    let error = facts.error.as_deref().or(explained.as_deref());
    let order_id = order.as_ref().map(Order::id).or(facts.named.as_ref());
    macro_rules! line {
        ($level:ident, $message:expr) => {
            tracing::$level!(
                message_id = record.message_id.as_ref().map(|id| id.as_str()),
                order_id = order_id.map(|id| id.as_str()),
                group_id = record.group.as_ref().map(|group| group.as_str()),
                receive_count = record.receive_count,
                decision = outcome.decision.name(),
                reason = outcome.decision.reason(),
                attempt = order.as_ref().map(|order| order.attempt()),
                fence = facts.fence,
                amount_minor = order.as_ref().map(|order| order.money().minor()),
                currency = order.as_ref().map(|order| order.money().currency().code()),
                handle = facts.handle.as_deref(),
                charge_id = facts.charge_id.as_deref(),
                duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                error,
                position = record.message_id.is_none().then_some(record.position),
                "{}",
                $message
            )
        };
    }
    match (facts.alarm, &outcome.decision) {
        (Some(alarm), _) => line!(error, alarm_name(alarm)),
        (None, Decision::Ack(_)) => line!(info, "record done"),
        (None, Decision::Retry { .. }) => line!(warn, "record will be tried again"),
        (None, Decision::Poison(_)) => line!(warn, "record given up"),
    }
}

fn alarm_name(alarm: Alarm) -> &'static str {
    match alarm {
        Alarm::ChargedNotRecorded => "charged_not_recorded",
        Alarm::DoubleChargeDetected => "double_charge_detected",
        Alarm::ChargeContradictsRecord => "charge_contradicts_record",
        Alarm::AuthConfig => "auth_config_error",
        Alarm::RecordUnreadable => "record_unreadable",
    }
}
