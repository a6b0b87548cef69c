//! Resources become a [`Deployment`]. Knows the shapes of SAM and `CloudFormation`, and no rule.

mod inventory;
mod policy;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::inventory::{GLOBAL_TABLE, Inventory, Source};
use super::{
    Alarm, Deployment, Function, Ledger, Mapping, Metric, Queue, Resource, Scaling,
    resource::{document, flag, items, number, text, texts},
};

/// A part of the deployment that may be unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece {
    /// The orders queue.
    Queue,
    /// The dead-letter queue.
    DeadLetters,
    /// The queues' access policies.
    QueuePolicies,
    /// The event source mapping.
    Mapping,
    /// The function.
    Function,
    /// The function's role.
    Role,
    /// The table.
    Ledger,
    /// The alarms.
    Alarms,
    /// The dashboards.
    Dashboards,
}

/// The deployment that these resources make. What is in `unread` may exist though it is not among them.
pub fn deployment(resources: &[Resource], unread: &BTreeSet<Piece>) -> Deployment {
    let all = Inventory { resources, unread };
    let source = all.source();
    let function = all.function(source.as_ref());
    let queue = all.orders_queue(source.as_ref(), function);
    let redrive = queue.map(|queue| document(queue.at("/RedrivePolicy"))).unwrap_or_default();
    let target = redrive.get("deadLetterTargetArn").map(text);
    let dead_letters = target.and_then(|arn| all.queue(|queue| queue.arn == arn));
    let alarms = || all.of_type("AWS::CloudWatch::Alarm").map(read_alarm).collect();
    let dashboards = || all.of_type("AWS::CloudWatch::Dashboard").count();
    let knows = |piece| !unread.contains(&piece);
    Deployment {
        queue: all.part(queue.map(|queue| read_queue(&all, queue)), Piece::Queue),
        dead_letters: all.part(dead_letters.map(|queue| read_queue(&all, queue)), Piece::DeadLetters),
        mapping: all.part(source.as_ref().map(read_mapping), Piece::Mapping),
        other_mappings: source.iter().flat_map(|it| all.beside(it)).map(|it| read_mapping(&it)).collect(),
        function: all.part(function.map(read_function), Piece::Function),
        role: all.part(function.and_then(|it| policy::role(resources, it)), Piece::Role),
        ledger: all.part(all.table(function).map(read_ledger), Piece::Ledger),
        alarms: knows(Piece::Alarms).then(alarms),
        dashboards: knows(Piece::Dashboards).then(dashboards),
    }
}

fn read_queue(all: &Inventory<'_>, queue: &Resource) -> Queue {
    let redrive = document(queue.at("/RedrivePolicy"));
    let unknown = all.unread.contains(&Piece::QueuePolicies);
    Queue {
        name: queue.name.clone(),
        arn: queue.arn.clone(),
        url: queue.reference.clone(),
        fifo: flag(queue.at("/FifoQueue")),
        visibility: number(queue.at("/VisibilityTimeout")).unwrap_or(30),
        retention: number(queue.at("/MessageRetentionPeriod")).unwrap_or(345_600),
        max_receive_count: number(redrive.get("maxReceiveCount")),
        encrypted: flag(queue.at("/SqsManagedSseEnabled")) || queue.at("/KmsMasterKeyId").is_some(),
        tls_only: (!unknown).then(|| policy::demands_tls(all.resources, &queue.reference)),
        retained: queue.retained,
    }
}

fn read_mapping(source: &Source<'_>) -> Mapping {
    let mapping = source.properties;
    Mapping {
        name: source.name.clone(),
        batch_size: number(mapping.get("BatchSize")).unwrap_or(10),
        window: number(mapping.get("MaximumBatchingWindowInSeconds")),
        response_types: texts(mapping.get("FunctionResponseTypes")),
        scaling: Scaling {
            maximum_concurrency: number(mapping.pointer("/ScalingConfig/MaximumConcurrency")),
            provisioned: mapping.pointer("/ProvisionedPollerConfig/MinimumPollers").is_some()
                || mapping.pointer("/ProvisionedPollerConfig/MaximumPollers").is_some(),
        },
        filtered: !items(mapping.pointer("/FilterCriteria/Filters")).is_empty(),
        counts_events: texts(mapping.pointer("/MetricsConfig/Metrics"))
            .iter()
            .any(|metric| metric == "EventCount"),
    }
}

fn read_function(function: &Resource) -> Function {
    let variables = function.at("/Environment/Variables").and_then(Value::as_object);
    let environment: BTreeMap<_, _> =
        variables.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
    Function {
        name: function.name.clone(),
        timeout: number(function.at("/Timeout")).unwrap_or(3),
        architectures: texts(function.at("/Architectures")),
        reserved_concurrency: number(function.at("/ReservedConcurrentExecutions")),
        application_log_level: function.at("/LoggingConfig/ApplicationLogLevel").map(text),
        environment,
    }
}

fn read_ledger(table: &Resource) -> Ledger {
    let is_attention = |index: &&Value| index.get("IndexName").is_some_and(|name| name == "attention");
    let attention = items(table.at("/GlobalSecondaryIndexes")).iter().find(is_attention);
    let ttl = table.at("/TimeToLiveSpecification").filter(|ttl| flag(ttl.get("Enabled")));
    Ledger {
        name: table.name.clone(),
        arn: table.arn.clone(),
        key: key(table, table.at("/KeySchema")),
        attention_key: key(table, attention.and_then(|index| index.get("KeySchema"))),
        ttl_attribute: ttl.and_then(|ttl| ttl.get("AttributeName")).map(text),
        point_in_time_recovery: recoverable(&table.properties) || replicas_recoverable(table),
        retained: table.retained,
    }
}

fn recoverable(table: &Value) -> bool {
    flag(table.pointer("/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled"))
}

/// A global table says it of each Region.
fn replicas_recoverable(table: &Resource) -> bool {
    let replicas = items(table.at("/Replicas"));
    table.kind == GLOBAL_TABLE && !replicas.is_empty() && replicas.iter().all(recoverable)
}

/// A key schema as `attribute type role` lines.
fn key(table: &Resource, schema: Option<&Value>) -> Vec<String> {
    let types = items(table.at("/AttributeDefinitions"));
    let type_of = |name: &Value| {
        let definition = types.iter().find(|one| one.get("AttributeName") == Some(name));
        definition.and_then(|one| one.get("AttributeType")).map(text).unwrap_or_default()
    };
    let line = |part: &Value| {
        let name = part.get("AttributeName")?;
        Some(format!("{} {} {}", text(name), type_of(name), text(part.get("KeyType")?)))
    };
    items(schema).iter().filter_map(line).collect()
}

fn read_alarm(alarm: &Resource) -> Alarm {
    let of_math =
        items(alarm.at("/Metrics")).iter().filter_map(|metric| metric.pointer("/MetricStat/Metric"));
    let plain = alarm.at("/MetricName").map(|_| &alarm.properties);
    Alarm {
        name: alarm.name.clone(),
        description: alarm.at("/AlarmDescription").map(text).unwrap_or_default(),
        metrics: of_math.chain(plain).map(read_metric).collect(),
    }
}

fn read_metric(metric: &Value) -> Metric {
    let dimensions = items(metric.get("Dimensions"));
    Metric {
        namespace: metric.get("Namespace").map(text).unwrap_or_default(),
        name: metric.get("MetricName").map(text).unwrap_or_default(),
        dimensions: dimensions.iter().filter_map(|one| one.get("Value")).map(text).collect(),
    }
}
