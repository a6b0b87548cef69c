//! What the rules look at, free of where it was read.
//!
//! `None` means "not set" where AWS has such a state, and "not known" for what only a template tells; a rule about
//! something unknown is silent.

use std::collections::BTreeMap;

use super::Part;

/// Queue, function and ledger as they are deployed, or as a template would deploy them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deployment {
    /// The queue that orders are sent to.
    pub queue: Part<Queue>,
    /// The queue that orders go to after too many receives.
    pub dead_letters: Part<Queue>,
    /// What hands orders to the function.
    pub mapping: Part<Mapping>,
    /// Further mappings of the same queue: each takes its share of the orders.
    pub other_mappings: Vec<Mapping>,
    /// The function.
    pub function: Part<Function>,
    /// What the function's own role may do; absent if the role is not the function's own.
    pub role: Part<Role>,
    /// The table of records.
    pub ledger: Part<Ledger>,
    /// The alarms; `None` if unknown.
    pub alarms: Option<Vec<Alarm>>,
    /// How many dashboards there are; `None` if unknown.
    pub dashboards: Option<usize>,
}

impl Deployment {
    /// Every mapping of the queue that is known.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.mapping.known().into_iter().chain(&self.other_mappings)
    }
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The value of the dimension `QueueName`.
    pub name: String,
    /// The ARN, as policies name it.
    pub arn: String,
    /// The URL, as the function is told it.
    pub url: String,
    /// Whether it keeps order within groups.
    pub fifo: bool,
    /// Visibility timeout in seconds; SQS takes 30 where none is set.
    pub visibility: u64,
    /// Retention in seconds; SQS takes 4 days where none is set.
    pub retention: u64,
    /// Receives before a message goes to the dead-letter queue.
    pub max_receive_count: Option<u64>,
    /// Whether messages are encrypted at rest.
    pub encrypted: bool,
    /// Whether a policy refuses calls without TLS; `None` if unknown.
    pub tls_only: Option<bool>,
    /// Whether it outlives its stack; `None` if unknown.
    pub retained: Option<bool>,
}

/// The event source mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The value of the dimension `EventSourceMappingUUID`.
    pub name: String,
    /// Messages per invocation.
    pub batch_size: u64,
    /// Batching window in seconds; `None` if not set.
    pub window: Option<u64>,
    /// `FunctionResponseTypes`.
    pub response_types: Vec<String>,
    /// What bounds the invocations at once.
    pub scaling: Scaling,
    /// Whether there are filter criteria.
    pub filtered: bool,
    /// Whether the mapping's own metrics are on.
    pub counts_events: bool,
}

/// The two ways, each excluding the other, in which a mapping scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scaling {
    /// `ScalingConfig.MaximumConcurrency`.
    pub maximum_concurrency: Option<u64>,
    /// Whether pollers are provisioned.
    pub provisioned: bool,
}

/// The Lambda function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The value of the dimension `FunctionName`.
    pub name: String,
    /// Timeout in seconds; Lambda takes 3 where none is set.
    pub timeout: u64,
    /// The architectures named; SAM takes `x86_64` where none is.
    pub architectures: Vec<String>,
    /// Reserved concurrency.
    pub reserved_concurrency: Option<u64>,
    /// `ApplicationLogLevel` of Lambda's own log filter.
    pub application_log_level: Option<String>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
}

impl Function {
    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// A variable that holds a whole number, or its default if it is not set.
    pub fn number(&self, name: &str, default: u64) -> Option<u64> {
        self.variable(name).map_or(Some(default), |text| text.parse().ok())
    }

    /// A variable that holds a duration such as `10s`, in milliseconds, or its default if it is not set.
    pub fn millis(&self, name: &str, default: u64) -> Option<u64> {
        self.variable(name).map_or(Some(default), millis)
    }
}

/// `20h`, `15m`, `10s` or `500ms` in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// What the policies of a role say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Statements that allow.
    pub allows: Vec<Statement>,
    /// Statements that deny whatever the circumstances. They win over those that allow.
    pub denies: Vec<Statement>,
}

/// One statement of a policy, without its effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The actions, `service:Action`.
    pub actions: Scope,
    /// The resources.
    pub resources: Scope,
}

/// What a statement is about, as patterns. `NotAction` and `NotResource` name everything, with exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// What is named.
    pub named: Vec<String>,
    /// What is not meant although it is named.
    pub except: Vec<String>,
}

/// The table of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The value of the dimension `TableName`.
    pub name: String,
    /// The ARN, as policies name it.
    pub arn: String,
    /// The key: attribute, type and role, such as `pk S HASH`.
    pub key: Vec<String>,
    /// The keys of the index `attention`, in the same form; empty if there is none.
    pub attention_key: Vec<String>,
    /// The attribute by which finished records expire.
    pub ttl_attribute: Option<String>,
    /// Whether the table can be restored to a point in time.
    pub point_in_time_recovery: bool,
    /// Whether it outlives its stack; `None` if unknown.
    pub retained: Option<bool>,
}

/// A metric alarm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// Its name.
    pub name: String,
    /// What it says to whoever is woken.
    pub description: String,
    /// The metrics it watches.
    pub metrics: Vec<Metric>,
}

/// A metric that an alarm watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metric {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The values of its dimensions.
    pub dimensions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn durations_are_read_in_every_unit_and_nothing_else_is() {
        let read = ["500ms", "10s", "15m", "20h", "10", "s", "", "1d", "-1s"].map(millis);
        assert_eq!(
            read,
            [Some(500), Some(10_000), Some(900_000), Some(72_000_000), None, None, None, None, None]
        );
    }
}
