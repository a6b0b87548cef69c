//! An ARN that is put together of Region, account and name means the same as `!GetAtt Id.Arn` of the resource with
//! that name, and becomes it: what the rules compare must be one word.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::doctor::{Resource, resource::text};

/// Puts `Id.Arn` where the ARN of a queue, table or role of the template is written out.
pub(super) fn unify(resources: &mut [Resource]) {
    let named: BTreeMap<String, String> = resources.iter().filter_map(named).collect();
    for resource in resources {
        replace(&mut resource.properties, &named);
    }
}

/// What follows the account in the ARN of a resource that has a name of its own, with its service.
fn named(resource: &Resource) -> Option<(String, String)> {
    let (service, kind, property) = match resource.kind.as_str() {
        "AWS::SQS::Queue" => ("sqs", "", "/QueueName"),
        "AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable" => ("dynamodb", "table/", "/TableName"),
        "AWS::IAM::Role" => ("iam", "role/", "/RoleName"),
        _ => return None,
    };
    let name = text(resource.at(property)?);
    Some((format!("{service} {kind}{name}"), resource.arn.clone()))
}

fn replace(value: &mut Value, named: &BTreeMap<String, String>) {
    match value {
        Value::String(written) => {
            if let Some(arn) = essence(written).and_then(|essence| named.get(&essence)) {
                written.clone_from(arn);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, named)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| replace(entry, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Service and name in an ARN, whose other parts may be pseudo parameters such as `AWS::Region`.
fn essence(arn: &str) -> Option<String> {
    let plain = arn.strip_prefix("arn:")?.replace("AWS::", "AWS  ");
    let mut parts = plain.splitn(5, ':').skip(1);
    let (service, name) = (parts.next()?, parts.nth(2)?);
    Some(format!("{service} {}", name.replace("AWS  ", "AWS::")))
}
