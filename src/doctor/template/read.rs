//! Resources become a [`Deployment`]. Knows the shapes of SAM and `CloudFormation`, and no rule.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{TemplateError, intrinsics::text};
use crate::doctor::{Alarm, Deployment, Function, Grant, Ledger, Mapping, Metric, Queue, Scaling};

type Resources = Map<String, Value>;

/// The deployment that these resources make.
pub(super) fn deployment(resources: &Resources) -> Result<Deployment, TemplateError> {
    let (function_id, function) = only(resources, &["AWS::Serverless::Function", "AWS::Lambda::Function"])
        .ok_or(TemplateError::Missing("function"))?;
    let (mapping_id, mapping) = mapping(resources, function_id, function)
        .ok_or(TemplateError::Missing("mapping with an SQS queue"))?;
    let source = mapping.get("Queue").or_else(|| mapping.get("EventSourceArn")).map(text).unwrap_or_default();
    let queue = queue(resources, &source).ok_or(TemplateError::Missing("queue for its mapping"))?;
    let (ledger_id, ledger) =
        only(resources, &["AWS::DynamoDB::Table"]).ok_or(TemplateError::Missing("table"))?;
    let dead_letters =
        at(resources, &owner(&source), "/Properties/RedrivePolicy/deadLetterTargetArn").map(text);
    Ok(Deployment {
        queue,
        dead_letters: dead_letters.and_then(|arn| self::queue(resources, &arn)),
        mapping: read_mapping(mapping_id, mapping),
        function: read_function(function_id, properties(function)),
        role: role(resources, properties(function)),
        ledger: read_ledger(ledger_id, ledger),
        alarms: Some(
            of_type(resources, "AWS::CloudWatch::Alarm").map(|(id, alarm)| read_alarm(id, alarm)).collect(),
        ),
        dashboards: Some(of_type(resources, "AWS::CloudWatch::Dashboard").count()),
    })
}

fn of_type<'a>(resources: &'a Resources, kind: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let is_kind = move |resource: &Value| resource.get("Type").and_then(Value::as_str) == Some(kind);
    resources
        .iter()
        .filter(move |(_, resource)| is_kind(resource))
        .map(|(id, resource)| (id.as_str(), resource))
}

fn only<'a>(resources: &'a Resources, kinds: &[&str]) -> Option<(&'a str, &'a Value)> {
    kinds.iter().find_map(|kind| of_type(resources, kind).next())
}

fn properties(resource: &Value) -> &Value {
    resource.get("Properties").unwrap_or(&Value::Null)
}

fn at<'a>(resources: &'a Resources, id: &str, pointer: &str) -> Option<&'a Value> {
    resources.get(id)?.pointer(pointer)
}

/// The logical id in `Id.Attribute`.
fn owner(reference: &str) -> String {
    reference.split('.').next().unwrap_or_default().to_owned()
}

fn number(value: Option<&Value>) -> Option<u64> {
    text(value?).parse().ok()
}

fn flag(value: Option<&Value>) -> bool {
    value.is_some_and(|value| text(value) == "true")
}

/// One text or a list of texts.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().map(text).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))) => {
            vec![text(one)]
        }
    }
}

fn retained(resource: &Value) -> Option<bool> {
    let keeps = |policy| resource.get(policy).and_then(Value::as_str) == Some("Retain");
    Some(keeps("DeletionPolicy") && keeps("UpdateReplacePolicy"))
}

/// The mapping, an event of the function (SAM) or a resource of its own, with the id that SAM gives it.
fn mapping<'a>(resources: &'a Resources, id: &str, function: &'a Value) -> Option<(String, &'a Value)> {
    if let Some((id, resource)) = only(resources, &["AWS::Lambda::EventSourceMapping"]) {
        return Some((id.to_owned(), properties(resource)));
    }
    let events = properties(function).get("Events")?.as_object()?;
    let (name, event) =
        events.iter().find(|(_, event)| event.get("Type").is_some_and(|kind| kind == "SQS"))?;
    Some((format!("{id}{name}"), properties(event)))
}

fn queue(resources: &Resources, arn: &str) -> Option<Queue> {
    let id = owner(arn);
    let resource = resources.get(&id)?;
    let settings = properties(resource);
    let redrive = settings.get("RedrivePolicy").unwrap_or(&Value::Null);
    Some(Queue {
        name: format!("{id}.QueueName"),
        arn: format!("{id}.Arn"),
        fifo: flag(settings.get("FifoQueue")),
        visibility: number(settings.get("VisibilityTimeout")).unwrap_or(30),
        retention: number(settings.get("MessageRetentionPeriod")).unwrap_or(345_600),
        max_receive_count: number(redrive.get("maxReceiveCount")),
        encrypted: flag(settings.get("SqsManagedSseEnabled")) || settings.get("KmsMasterKeyId").is_some(),
        tls_only: Some(tls_only(resources, &id)),
        retained: retained(resource),
        url: id,
    })
}

fn tls_only(resources: &Resources, queue: &str) -> bool {
    let denies = |statement: &Value| {
        let insecure = statement.pointer("/Condition/Bool/aws:SecureTransport");
        statement.get("Effect").is_some_and(|effect| effect == "Deny")
            && texts(statement.get("Action")) == ["sqs:*"]
            && insecure.is_some_and(|value| text(value) == "false")
    };
    of_type(resources, "AWS::SQS::QueuePolicy").map(|(_, policy)| properties(policy)).any(|policy| {
        let statements = policy.pointer("/PolicyDocument/Statement").and_then(Value::as_array);
        texts(policy.get("Queues")).iter().any(|one| one == queue)
            && statements.into_iter().flatten().any(denies)
    })
}

fn read_mapping(name: String, mapping: &Value) -> Mapping {
    Mapping {
        name,
        batch_size: number(mapping.get("BatchSize")).unwrap_or(10),
        window: number(mapping.get("MaximumBatchingWindowInSeconds")),
        response_types: texts(mapping.get("FunctionResponseTypes")),
        scaling: Scaling {
            maximum_concurrency: number(mapping.pointer("/ScalingConfig/MaximumConcurrency")),
            provisioned: mapping.get("ProvisionedPollerConfig").is_some(),
        },
        filtered: mapping.get("FilterCriteria").is_some(),
        counts_events: texts(mapping.pointer("/MetricsConfig/Metrics"))
            .iter()
            .any(|metric| metric == "EventCount"),
    }
}

fn read_function(id: &str, function: &Value) -> Function {
    let variables = function.pointer("/Environment/Variables").and_then(Value::as_object);
    let environment: BTreeMap<_, _> =
        variables.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
    Function {
        name: id.to_owned(),
        timeout: number(function.get("Timeout")).unwrap_or(3),
        architectures: texts(function.get("Architectures")),
        reserved_concurrency: number(function.get("ReservedConcurrentExecutions")),
        application_log_level: function.pointer("/LoggingConfig/ApplicationLogLevel").map(text),
        environment,
    }
}

/// What the function's role grants by policies written into it.
fn role(resources: &Resources, function: &Value) -> Option<Vec<Grant>> {
    let role = resources.get(&owner(&text(function.get("Role")?)))?;
    let policies = properties(role).get("Policies").and_then(Value::as_array);
    let statements =
        policies.into_iter().flatten().filter_map(|policy| policy.pointer("/PolicyDocument/Statement"));
    let allowed = |statement: &&Value| statement.get("Effect").is_some_and(|effect| effect == "Allow");
    let grant = |statement: &Value| Grant {
        actions: texts(statement.get("Action")),
        resources: texts(statement.get("Resource")),
    };
    Some(statements.filter_map(Value::as_array).flatten().filter(allowed).map(grant).collect())
}

fn read_ledger(id: &str, table: &Value) -> Ledger {
    let settings = properties(table);
    let indexes = settings.get("GlobalSecondaryIndexes").and_then(Value::as_array);
    let attention =
        indexes.into_iter().flatten().find(|index| index.get("IndexName").is_some_and(|n| n == "attention"));
    let ttl = settings.get("TimeToLiveSpecification");
    let ttl = ttl.filter(|ttl| flag(ttl.get("Enabled"))).and_then(|ttl| ttl.get("AttributeName"));
    Ledger {
        name: id.to_owned(),
        arn: format!("{id}.Arn"),
        key: key(settings, settings.get("KeySchema")),
        attention_key: key(settings, attention.and_then(|index| index.get("KeySchema"))),
        ttl_attribute: ttl.map(text),
        point_in_time_recovery: flag(
            settings.pointer("/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled"),
        ),
        retained: retained(table),
    }
}

/// A key schema as `attribute type role` lines.
fn key(table: &Value, schema: Option<&Value>) -> Vec<String> {
    let types = table.get("AttributeDefinitions").and_then(Value::as_array);
    let type_of = |name: &Value| {
        let definition = types.into_iter().flatten().find(|one| one.get("AttributeName") == Some(name));
        definition.and_then(|one| one.get("AttributeType")).map(text).unwrap_or_default()
    };
    let line = |part: &Value| {
        let name = part.get("AttributeName")?;
        Some(format!("{} {} {}", text(name), type_of(name), text(part.get("KeyType")?)))
    };
    schema.and_then(Value::as_array).into_iter().flatten().filter_map(line).collect()
}

fn read_alarm(id: &str, alarm: &Value) -> Alarm {
    let settings = properties(alarm);
    let math = settings.get("Metrics").and_then(Value::as_array);
    let of_math = math.into_iter().flatten().filter_map(|metric| metric.pointer("/MetricStat/Metric"));
    let plain = settings.get("MetricName").map(|_| settings);
    Alarm {
        name: id.to_owned(),
        description: settings.get("AlarmDescription").map(text).unwrap_or_default(),
        metrics: of_math.chain(plain).map(read_metric).collect(),
    }
}

fn read_metric(metric: &Value) -> Metric {
    let dimensions = metric.get("Dimensions").and_then(Value::as_array);
    Metric {
        namespace: metric.get("Namespace").map(text).unwrap_or_default(),
        name: metric.get("MetricName").map(text).unwrap_or_default(),
        dimensions: dimensions.into_iter().flatten().filter_map(|one| one.get("Value")).map(text).collect(),
    }
}
