//! The alarms: that they exist, watch this deployment and say what to do.

use super::{Rule, Trouble, trouble};
use crate::doctor::{Alarm, Deployment, Metric};

/// The namespace of our own metrics.
const NAMESPACE: &str = "ChargeOnce";
/// Every metric the function emits.
pub(super) const METRICS: [&str; 21] = [
    "Records",
    "Charged",
    "Duplicate",
    "Busy",
    "Retried",
    "Poisoned",
    "Declined",
    "Held",
    "NotStarted",
    "ChargedNotRecorded",
    "DoubleChargeDetected",
    "ChargeContradictsRecord",
    "LeaseTakeovers",
    "Redeliveries",
    "OrderAgeMs",
    "VisibilityChangeFailed",
    "BreakerOpened",
    "ProviderLatencyMs",
    "StoreLatencyMs",
    "AuthConfigErrors",
    "UnreadableRecords",
];
/// What somebody must hear of.
const WATCHED: [(&str, &str); 17] = [
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"),
    ("AWS/Lambda", "Errors"),
    ("AWS/Lambda", "Throttles"),
    ("AWS/Lambda", "Duration"),
    ("AWS/Lambda", "FailedInvokeEventCount"),
    ("AWS/DynamoDB", "WriteThrottleEvents"),
    (NAMESPACE, "OrderAgeMs"),
    (NAMESPACE, "Poisoned"),
    (NAMESPACE, "Retried"),
    (NAMESPACE, "Busy"),
    (NAMESPACE, "Held"),
    (NAMESPACE, "ChargedNotRecorded"),
    (NAMESPACE, "DoubleChargeDetected"),
    (NAMESPACE, "AuthConfigErrors"),
    (NAMESPACE, "VisibilityChangeFailed"),
    (NAMESPACE, "BreakerOpened"),
];

pub(super) const RULES: &[Rule] = &[
    Rule::warning("alarms-complete", alarms_complete),
    Rule::error("dead-letters-heard", dead_letters_heard),
    Rule::error("alarm-metrics-exist", alarm_metrics_exist),
    Rule::error("alarms-watch-this-stack", alarms_watch_this_stack),
    Rule::warning("alarms-explained", alarms_explained),
    Rule::warning("dashboard", dashboard),
];

fn alarms_complete(d: &Deployment) -> Option<Trouble> {
    let alarms = d.alarms.as_ref()?;
    let heard =
        |namespace: &str, name: &str| metrics(alarms).any(|m| m.namespace == namespace && m.name == name);
    let silent: Vec<&str> =
        WATCHED.iter().filter(|(ns, name)| !heard(ns, name)).map(|(_, name)| *name).collect();
    trouble(!silent.is_empty(), format!("nobody hears of {}", silent.join(", ")), "add an alarm for each")
}

/// The depth of the dead-letter queue, not `NumberOfMessagesSent`, which does not count what SQS moves itself.
fn dead_letters_heard(d: &Deployment) -> Option<Trouble> {
    let (alarms, dead_letters) = (d.alarms.as_ref()?, d.dead_letters.known()?);
    let watches = |m: &Metric| {
        m.name == "ApproximateNumberOfMessagesVisible" && m.dimensions.contains(&dead_letters.name)
    };
    trouble(
        !metrics(alarms).any(watches),
        "orders die unheard and expire after 14 days",
        format!("add an alarm on ApproximateNumberOfMessagesVisible of {}", dead_letters.name),
    )
}

fn alarm_metrics_exist(d: &Deployment) -> Option<Trouble> {
    let unknown = |m: &&Metric| m.namespace == NAMESPACE && !METRICS.contains(&m.name.as_str());
    let metric = metrics(d.alarms.as_ref()?).find(unknown)?;
    trouble(
        true,
        format!("no code emits {}: its alarm can never fire", metric.name),
        "take a name from docs/observability.md",
    )
}

fn alarms_watch_this_stack(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    let own = [
        function.variable("SERVICE_NAME").unwrap_or("charge-once"),
        &function.name,
        &d.dead_letters.known()?.name,
        &d.queue.known()?.name,
        &d.ledger.known()?.name,
        &d.mapping.known()?.name,
        "UpdateItem",
    ];
    let is_mapping = |value: &String| d.other_mappings.iter().any(|mapping| mapping.name == *value);
    let foreign = |m: &Metric| {
        m.dimensions.is_empty()
            || m.dimensions.iter().any(|value| !own.contains(&value.as_str()) && !is_mapping(value))
    };
    let alarm = d.alarms.as_ref()?.iter().find(|alarm| alarm.metrics.iter().any(foreign))?;
    trouble(
        true,
        format!("{} watches something that is not part of this deployment", alarm.name),
        "give its dimensions the names of this stack",
    )
}

fn alarms_explained(d: &Deployment) -> Option<Trouble> {
    let alarm =
        d.alarms.as_ref()?.iter().find(|alarm| !alarm.description.contains("docs/operations.md, \""))?;
    trouble(
        true,
        format!("{} wakes somebody without saying what to do", alarm.name),
        "name a heading of docs/operations.md in its description",
    )
}

fn dashboard(d: &Deployment) -> Option<Trouble> {
    trouble(d.dashboards == Some(0), "there is nothing to look at when an alarm fires", "add a dashboard")
}

fn metrics(alarms: &[Alarm]) -> impl Iterator<Item = &Metric> {
    alarms.iter().flat_map(|alarm| &alarm.metrics)
}
