//! Reads a [`Deployment`] from a SAM or `CloudFormation` template, as it would be deployed with given parameters.

mod globals;
mod intrinsics;
mod numbers;
mod parameters;
mod written_arns;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::intrinsics::Resolver;
use super::{Deployment, Finding, Resource, resource::text};

/// Why a template cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text is not YAML (JSON is).
    #[error("not YAML")]
    Syntax(#[source] serde_yaml_ng::Error),
    /// A parameter without a default was not given.
    #[error("parameter {0} has no default and no value was given")]
    NoValue(String),
    /// A value was given for a parameter that the template does not have.
    #[error("the template has no parameter {0}")]
    NoSuchParameter(String),
    /// A `!Ref`, `!GetAtt` or `!Sub` names something that the template does not have.
    #[error("{0} is neither a parameter nor a resource of the template")]
    Unresolved(String),
    /// A function is used in a form that is not understood.
    #[error("{0} is not used as CloudFormation documents it")]
    Malformed(&'static str),
    /// A property that the rules are about should be a number, and what is written there leads to none.
    #[error("{0} is not a number, or one that is known only when deployed: write it, or make it a parameter")]
    NoNumber(String),
    /// The template lacks what the rules are about.
    #[error("the template has no {0}")]
    Missing(&'static str),
}

/// A template with the values of its parameters put in.
#[derive(Clone, Debug)]
pub struct Template {
    /// What it would deploy.
    pub resources: Vec<Resource>,
    /// Why `CloudFormation` would not even begin: values that a parameter or a rule of the template refuses.
    pub refusals: Vec<Finding>,
}

/// What the template would deploy with its parameters' defaults, save those given in `parameters`.
///
/// # Errors
/// If the text cannot be read or a reference leads nowhere.
pub fn read(text: &str, parameters: &BTreeMap<String, String>) -> Result<Template, TemplateError> {
    let mut template = intrinsics::plain(serde_yaml_ng::from_str(text).map_err(TemplateError::Syntax)?);
    globals::spread(&mut template);
    let values = parameters::values(&template, parameters)?;
    let mut refusals = parameters::not_allowed(&template, &values);
    let resolver = Resolver::new(&template, values);
    refusals.extend(parameters::assertions(&template, parameters, &resolver)?);
    let mut resources: Vec<_> =
        resolver.resources()?.into_iter().map(|(id, resource)| declared(id, &resource)).collect();
    written_arns::unify(&mut resources);
    Ok(Template { resources, refusals })
}

/// The deployment of [`read`]'s resources.
///
/// # Errors
/// Those of [`read`] and of [`Template::deployment`].
pub fn deployment(text: &str, parameters: &BTreeMap<String, String>) -> Result<Deployment, TemplateError> {
    read(text, parameters)?.deployment()
}

impl Template {
    /// What the resources make together.
    ///
    /// # Errors
    /// If queue, mapping, function or table are missing, or one of their numbers cannot be told.
    pub fn deployment(&self) -> Result<Deployment, TemplateError> {
        let deployment = super::deployment(&self.resources, &BTreeSet::new());
        let there = [
            (deployment.function.is_absent(), "function"),
            (deployment.mapping.is_absent(), "mapping with an SQS queue"),
            (deployment.queue.is_absent(), "queue for its mapping"),
            (deployment.ledger.is_absent(), "table"),
        ];
        if let Some((_, what)) = there.into_iter().find(|(missing, _)| *missing) {
            return Err(TemplateError::Missing(what));
        }
        match numbers::unresolved(&self.resources, &deployment) {
            Some(property) => Err(TemplateError::NoNumber(property)),
            None => Ok(deployment),
        }
    }
}

/// A resource under the names that others of the template call it by.
fn declared(id: String, resource: &Value) -> Resource {
    let member = |name: &str| resource.get(name).cloned().unwrap_or_default();
    let deletion = text(&member("DeletionPolicy"));
    // What a first deployment that fails has created holds no orders.
    let survives = ["Retain", "RetainExceptOnCreate"].contains(&deletion.as_str());
    let kind = text(&member("Type"));
    let name = if kind == "AWS::SQS::Queue" { format!("{id}.QueueName") } else { id.clone() };
    Resource {
        kind,
        arn: format!("{id}.Arn"),
        name,
        reference: id,
        properties: member("Properties"),
        retained: Some(survives && member("UpdateReplacePolicy") == "Retain"),
    }
}
