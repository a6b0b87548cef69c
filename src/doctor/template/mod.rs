//! Reads a [`Deployment`] from a SAM or `CloudFormation` template, as it would be deployed with given parameters.

mod intrinsics;
mod read;

use std::collections::BTreeMap;

use super::Deployment;

/// Why a template cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text is not YAML (JSON is).
    #[error("the template is not YAML")]
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
    /// The template lacks what the rules are about.
    #[error("the template has no {0}")]
    Missing(&'static str),
}

/// What the template would deploy with its parameters' defaults, save those given in `parameters`.
///
/// # Errors
/// If the text cannot be read, a reference leads nowhere, or queue, mapping, function or table are missing.
pub fn deployment(text: &str, parameters: &BTreeMap<String, String>) -> Result<Deployment, TemplateError> {
    read::deployment(&intrinsics::resources(text, parameters)?)
}
