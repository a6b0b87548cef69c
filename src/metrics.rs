//! One line in CloudWatch's embedded metric format per invocation: what happened, counted.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    batch::BatchResult,
    charge::Alarm,
    clock::Timestamp,
    decision::{AckReason, Decision, PoisonReason, RetryReason},
    telemetry::escape_controls,
};

/// The CloudWatch namespace.
pub const NAMESPACE: &str = "ChargeOnce";
/// CloudWatch takes at most this many values of one metric in one line.
const MAX_VALUES: usize = 100;

/// What happened in one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    counts: Counts,
    order_age: Option<Duration>,
    provider: Vec<Duration>,
    store: Vec<Duration>,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident = $name:literal),+ $(,)?) => {
        /// The counters, each under the name of its metric.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $field: u64),+ }

        impl Counts {
            /// Every counter's metric name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Every counter with its metric name.
            pub fn all(&self) -> [(&'static str, u64); Self::NAMES.len()] {
                [$(($name, self.$field)),+]
            }

            /// Adds the counters of another batch.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
            }
        }
    };
}

counts! {
    /// Records in the batch.
    records = "Records",
    /// Orders charged and recorded; with another step than a charge, orders done.
    charged = "Charged",
    /// Messages of orders that had been charged before.
    duplicate = "Duplicate",
    /// Messages whose order another owner works on.
    busy = "Busy",
    /// Messages that were begun and are tried again for another reason.
    retried = "Retried",
    /// Messages that can never succeed, declines and held orders aside.
    poisoned = "Poisoned",
    /// Orders declined for good.
    declined = "Declined",
    /// Orders that wait for a person.
    held = "Held",
    /// Messages that were not begun.
    not_started = "NotStarted",
    /// The money moved and the ledger could not be told.
    charged_not_recorded = "ChargedNotRecorded",
    /// Two charges of one order are known.
    double_charge_detected = "DoubleChargeDetected",
    /// A charge that the record cannot hold.
    charge_contradicts_record = "ChargeContradictsRecord",
    /// The provider refused the credential.
    auth_config_errors = "AuthConfigErrors",
    /// Records of the ledger that this version does not understand.
    unreadable_records = "UnreadableRecords",
    /// Owners that were cut off and whose order was taken over.
    lease_takeovers = "LeaseTakeovers",
    /// Messages received more than once.
    redeliveries = "Redeliveries",
    /// Visibility changes that SQS did not take.
    visibility_change_failed = "VisibilityChangeFailed",
    /// Whether records were left because of what others ran into.
    breaker_opened = "BreakerOpened",
}

impl Counts {
    fn outcome(&mut self, decision: &Decision) -> &mut u64 {
        match decision {
            Decision::Ack(AckReason::Charged | AckReason::Done) => &mut self.charged,
            Decision::Ack(AckReason::Duplicate) => &mut self.duplicate,
            Decision::Ack(AckReason::Declined(_)) => &mut self.declined,
            Decision::Ack(AckReason::MovedToDlq(reason)) | Decision::Poison(reason) => self.poison(reason),
            Decision::Retry { reason, .. } => match reason {
                RetryReason::Busy => &mut self.busy,
                RetryReason::NotStartedDeadline
                | RetryReason::NotStartedBreaker
                | RetryReason::NotStartedGroup
                | RetryReason::NotStartedStopping
                | RetryReason::NotStartedLost => &mut self.not_started,
                RetryReason::Store
                | RetryReason::RecordUnreadable
                | RetryReason::LeaseLost
                | RetryReason::Gateway(_)
                | RetryReason::Processing
                | RetryReason::ChargedNotRecorded
                | RetryReason::ChargeContradictsRecord
                | RetryReason::Payload
                | RetryReason::Unfinished
                | RetryReason::Panicked => &mut self.retried,
            },
        }
    }

    fn poison(&mut self, reason: &PoisonReason) -> &mut u64 {
        match reason {
            PoisonReason::Declined(_) => &mut self.declined,
            PoisonReason::Held(_) => &mut self.held,
            PoisonReason::Record(_)
            | PoisonReason::Envelope(_)
            | PoisonReason::PayloadUnusable(_)
            | PoisonReason::Order(_)
            | PoisonReason::PaymentMethodMissing
            | PoisonReason::AmountNotRepresentable
            | PoisonReason::Mismatch
            | PoisonReason::Superseded => &mut self.poisoned,
        }
    }

    fn alarm(&mut self, alarm: Alarm) -> &mut u64 {
        match alarm {
            Alarm::ChargedNotRecorded => &mut self.charged_not_recorded,
            Alarm::DoubleChargeDetected => &mut self.double_charge_detected,
            Alarm::ChargeContradictsRecord => &mut self.charge_contradicts_record,
            Alarm::AuthConfig => &mut self.auth_config_errors,
            Alarm::RecordUnreadable => &mut self.unreadable_records,
        }
    }
}

fn bump(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

impl Metrics {
    /// Counts a batch.
    pub fn of(batch: &BatchResult, visibility_failures: usize, now: Timestamp) -> Self {
        let mut metrics = Self::default();
        let counts = &mut metrics.counts;
        counts.records = u64::try_from(batch.judged.len()).unwrap_or(u64::MAX);
        counts.visibility_change_failed = u64::try_from(visibility_failures).unwrap_or(u64::MAX);
        counts.breaker_opened = u64::from(batch.breaker_opened);
        for one in &batch.judged {
            let facts = &one.outcome.facts;
            bump(counts.outcome(&one.outcome.decision));
            if let Some(alarm) = facts.alarm {
                bump(counts.alarm(alarm));
            }
            if facts.took_over {
                bump(&mut counts.lease_takeovers);
            }
            if one.record.receive_count > 1 {
                bump(&mut counts.redeliveries);
            }
            metrics.order_age = metrics.order_age.max(one.record.sent_at.map(|sent| now.since(sent)));
            metrics.provider.extend(facts.provider_time);
            metrics.store.extend(facts.store_time);
        }
        metrics
    }

    /// The counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// For each record that was worked on, how long it waited for the provider and for the ledger.
    #[cfg(feature = "worker")]
    pub(crate) fn waits(&self) -> [&[Duration]; 2] {
        [&self.provider, &self.store]
    }

    /// The line: one JSON object by the EMF specification, with all values at its root.
    pub fn to_emf(&self, service: &str, queue: Option<&str>, request_id: &str, now: Timestamp) -> String {
        let mut line = Map::new();
        let mut definitions: Vec<Value> = Vec::new();
        for (name, count) in self.counts.all() {
            line.insert(name.to_owned(), json!(count));
            definitions.push(json!({"Name": name, "Unit": "Count"}));
        }
        let order_age: Vec<Duration> = self.order_age.into_iter().collect();
        for (name, times) in [
            ("OrderAgeMs", &order_age),
            ("ProviderLatencyMs", &self.provider),
            ("StoreLatencyMs", &self.store),
        ] {
            if times.is_empty() {
                continue;
            }
            let millis = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let values: Vec<u64> = times.iter().take(MAX_VALUES).map(millis).collect();
            line.insert(name.to_owned(), json!(values));
            definitions.push(json!({"Name": name, "Unit": "Milliseconds"}));
        }
        let mut dimensions = vec![json!(["service"])];
        line.insert("service".to_owned(), json!(service));
        if let Some(queue) = queue {
            line.insert("queue".to_owned(), json!(queue));
            dimensions.push(json!(["service", "queue"]));
        }
        line.insert("request_id".to_owned(), json!(request_id));
        let directive = json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": definitions});
        line.insert(
            "_aws".to_owned(),
            json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": [directive]}),
        );
        escape_controls(&Value::Object(line).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_of_ones_own_did_counts_as_charged() {
        let mut counts = Counts::default();
        bump(counts.outcome(&Decision::Ack(AckReason::Done)));
        assert_eq!(counts.charged, 1);
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let metrics = Metrics {
            counts: Counts { charged: 2, declined: 1, ..Counts::default() },
            order_age: Some(Duration::from_millis(1_500)),
            provider: vec![Duration::from_millis(80), Duration::from_millis(120)],
            ..Metrics::default()
        };
        let line = metrics.to_emf("shop", Some("orders"), "r-1", Timestamp::from_millis(1_767_225_600_500));
        let line: Value = serde_json::from_str(&line).unwrap();
        let metrics = &line["_aws"]["CloudWatchMetrics"][0];
        let named = metrics["Metrics"].as_array().unwrap();
        assert!(named.iter().all(|metric| !line[metric["Name"].as_str().unwrap()].is_null()), "{line}");
        let without_zeros =
            line.as_object().unwrap().iter().filter(|(name, value)| *name != "_aws" && **value != json!(0));
        let shown: Vec<String> = without_zeros.map(|(name, value)| format!("{name} {value}")).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        Charged 2
        Declined 1
        OrderAgeMs [1500]
        ProviderLatencyMs [80,120]
        queue "orders"
        request_id "r-1"
        service "shop"
        "#);
        insta::assert_snapshot!(format!("{} {}", metrics["Namespace"], metrics["Dimensions"]), @r#""ChargeOnce" [["service"],["service","queue"]]"#);
    }
}
