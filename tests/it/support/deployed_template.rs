//! What AWS would hold after a template was deployed, as Cloud Control shows it: names instead of references, SAM's
//! function and its event as two resources, a queue's policy under the queue's URL.

use std::collections::BTreeMap;

use charge_once::doctor::{Resource, template};
use serde_json::{Map, Value, json};

use super::cloud_control::Account;

pub(crate) const STACK: &str = "shop";
pub(crate) const QUEUE_URL: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/shop-orders";
pub(crate) const TABLE: &str = "shop-LedgerTable-1";
pub(crate) const FUNCTION: &str = "shop-ChargeFunction-1";
pub(crate) const MAPPING: &str = "6d9bce8e-836b-442c-8070-74e77903c815";

/// The account with the template's stack in it, and with things that do not belong to it.
pub(crate) fn deployed(text: &str, parameters: &[(&str, &str)]) -> Account {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let template = template::read(text, &parameters).unwrap();
    let names: BTreeMap<String, String> = template.resources.iter().flat_map(names).collect();
    let mut account = Account::default();
    for resource in &template.resources {
        for (kind, identifier, properties) in real(resource, &names) {
            account.resources.insert((kind.to_owned(), identifier), properties);
        }
    }
    let name = |id: &str| names.get(id).cloned().unwrap_or_default();
    add_stack(
        &mut account,
        &[
            ("QueueUrl", name("OrdersQueue")),
            ("LedgerTableName", name("LedgerTable")),
            ("FunctionArn", name("ChargeFunction.Arn")),
            ("EventSourceMappingId", MAPPING.to_owned()),
        ],
    );
    add_strangers(&mut account);
    account
}

fn add_stack(account: &mut Account, outputs: &[(&str, String)]) {
    let arn = |name: &str| format!("arn:aws:cloudformation:eu-central-1:111122223333:stack/{name}/1a2b");
    let outputs: Vec<Value> =
        outputs.iter().map(|(key, value)| json!({ "OutputKey": key, "OutputValue": value })).collect();
    let kind = || "AWS::CloudFormation::Stack".to_owned();
    account.resources.insert((kind(), arn(STACK)), json!({ "StackName": STACK, "Outputs": outputs }));
    for other in ["a", "b", "shop-2", "shopping"] {
        account.resources.insert((kind(), arn(other)), json!({ "StackName": other }));
    }
}

/// Another queue's mappings and another stack's alarm.
fn add_strangers(account: &mut Account) {
    for n in 0..5 {
        let mapping =
            json!({ "Id": n.to_string(), "EventSourceArn": "arn:aws:sqs:eu-central-1:111122223333:other" });
        account.resources.insert(("AWS::Lambda::EventSourceMapping".to_owned(), n.to_string()), mapping);
    }
    let alarm = json!({ "AlarmName": "other", "Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent" });
    account.resources.insert(("AWS::CloudWatch::Alarm".to_owned(), "shopping-Alarm".to_owned()), alarm);
}

/// What the template calls by these ids, and AWS by those names.
fn names(resource: &Resource) -> Vec<(String, String)> {
    let id = resource.reference.as_str();
    let arn = |rest: &str| format!("arn:aws:{rest}");
    let stacked = format!("{STACK}-{id}-1");
    let (reference, own_arn) = match resource.kind.as_str() {
        "AWS::SQS::Queue" => {
            let name = queue_name(resource);
            let url = format!("https://sqs.eu-central-1.amazonaws.com/111122223333/{name}");
            (url, arn(&format!("sqs:eu-central-1:111122223333:{name}")))
        }
        "AWS::DynamoDB::Table" => {
            let own = arn(&format!("dynamodb:eu-central-1:111122223333:table/{stacked}"));
            (stacked, own)
        }
        "AWS::Serverless::Function" => {
            let own = arn(&format!("lambda:eu-central-1:111122223333:function:{stacked}"));
            (stacked, own)
        }
        "AWS::IAM::Role" => {
            let own = arn(&format!("iam::111122223333:role/{stacked}"));
            (stacked, own)
        }
        _ => (stacked.clone(), arn(&stacked)),
    };
    let mut names = vec![(id.to_owned(), reference), (format!("{id}.Arn"), own_arn)];
    match resource.kind.as_str() {
        "AWS::SQS::Queue" => names.push((format!("{id}.QueueName"), queue_name(resource))),
        "AWS::Serverless::Function" => names.push((format!("{id}Orders"), MAPPING.to_owned())),
        _ => {}
    }
    names
}

fn queue_name(queue: &Resource) -> String {
    queue.properties["QueueName"].as_str().unwrap().replace("AWS::StackName", STACK)
}

/// The resource as AWS shows it: one, two, or none that the doctor would ask for.
fn real(resource: &Resource, names: &BTreeMap<String, String>) -> Vec<(&'static str, String, Value)> {
    let properties = renamed(&resource.properties, names);
    let name = |id: &str| names[id].clone();
    let own = name(&resource.reference);
    let mut object = properties.as_object().cloned().unwrap_or_default();
    object.insert("Arn".to_owned(), name(&format!("{}.Arn", resource.reference)).into());
    match resource.kind.as_str() {
        "AWS::SQS::Queue" => {
            // Services give some documents as text.
            if let Some(redrive) = object.get("RedrivePolicy").cloned() {
                object.insert("RedrivePolicy".to_owned(), redrive.to_string().into());
            }
            object.insert("QueueUrl".to_owned(), own.clone().into());
            vec![("AWS::SQS::Queue", own, object.into())]
        }
        "AWS::SQS::QueuePolicy" => {
            let queues = object["Queues"].as_array().unwrap().iter();
            let policy =
                |queue: &Value| json!({ "Queue": queue, "PolicyDocument": object["PolicyDocument"] });
            queues
                .map(|it| ("AWS::SQS::QueueInlinePolicy", it.as_str().unwrap().to_owned(), policy(it)))
                .collect()
        }
        "AWS::Serverless::Function" => function(own, object),
        "AWS::DynamoDB::Table" => vec![("AWS::DynamoDB::Table", own, object.into())],
        "AWS::IAM::Role" => vec![("AWS::IAM::Role", own, object.into())],
        "AWS::CloudWatch::Alarm" => vec![("AWS::CloudWatch::Alarm", own, object.into())],
        _ => Vec::new(),
    }
}

fn function(name: String, mut function: Map<String, Value>) -> Vec<(&'static str, String, Value)> {
    let events = function.remove("Events").unwrap_or_default();
    let mut mapping = events["Orders"]["Properties"].as_object().cloned().unwrap_or_default();
    let queue = mapping.remove("Queue").unwrap_or_default();
    mapping.insert("EventSourceArn".to_owned(), queue);
    mapping.insert("FunctionName".to_owned(), format!("{}:live", function["Arn"].as_str().unwrap()).into());
    vec![
        ("AWS::Lambda::Function", name, function.into()),
        ("AWS::Lambda::EventSourceMapping", MAPPING.to_owned(), mapping.into()),
    ]
}

/// The value with every reference replaced.
fn renamed(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => match names.get(text) {
            Some(name) => name.clone().into(),
            None => text.replace("AWS::StackName", STACK).into(),
        },
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), renamed(value, names))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
