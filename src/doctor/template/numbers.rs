//! Numbers that the template gives in a way that cannot be followed, such as an import from another stack. They must
//! not be taken for AWS's defaults.

use serde_json::Value;

use crate::doctor::{
    Deployment, Resource,
    resource::{document, number},
};

const OF_QUEUE: &[&str] = &["/VisibilityTimeout", "/MessageRetentionPeriod"];
const OF_FUNCTION: &[&str] = &["/Timeout", "/ReservedConcurrentExecutions"];
const OF_MAPPING: &[&str] =
    &["/BatchSize", "/MaximumBatchingWindowInSeconds", "/ScalingConfig/MaximumConcurrency"];

/// The first property of the deployment's resources that should be a number and is none, as `Id.Property`.
pub(super) fn unresolved(resources: &[Resource], deployment: &Deployment) -> Option<String> {
    resources.iter().find_map(|resource| {
        let property = property(resource, deployment)?;
        Some(format!("{}{}", resource.reference, property.replace('/', ".")))
    })
}

fn property(resource: &Resource, deployment: &Deployment) -> Option<String> {
    let is_queue = |name: &str| {
        [&deployment.queue, &deployment.dead_letters]
            .iter()
            .any(|it| it.known().is_some_and(|it| it.name == name))
    };
    match resource.kind.as_str() {
        "AWS::SQS::Queue" if is_queue(&resource.name) => {
            let redrive = document(resource.at("/RedrivePolicy"));
            none_of(&resource.properties, OF_QUEUE)
                .or_else(|| none_of(&redrive, &["/maxReceiveCount"]).map(|it| format!("/RedrivePolicy{it}")))
        }
        "AWS::Lambda::Function" | "AWS::Serverless::Function"
            if deployment.function.known().is_some_and(|it| it.name == resource.name) =>
        {
            none_of(&resource.properties, OF_FUNCTION).or_else(|| of_events(resource))
        }
        "AWS::Lambda::EventSourceMapping" if deployment.mappings().any(|it| it.name == resource.name) => {
            none_of(&resource.properties, OF_MAPPING)
        }
        _ => None,
    }
}

fn of_events(function: &Resource) -> Option<String> {
    let mut events = function.at("/Events").and_then(Value::as_object).into_iter().flatten();
    events.find_map(|(name, event)| {
        let property = none_of(event.get("Properties")?, OF_MAPPING)?;
        Some(format!("/Events/{name}{property}"))
    })
}

fn none_of(properties: &Value, numbers: &[&str]) -> Option<String> {
    let is_none = |pointer: &&&str| properties.pointer(pointer).is_some_and(|it| number(Some(it)).is_none());
    numbers.iter().find(is_none).map(|pointer| (*pointer).to_owned())
}
