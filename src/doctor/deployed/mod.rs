//! Reads what is deployed, as resources in the words of the template, so that the same rules hold for both.
//!
//! A part that cannot be read is a finding of its own, and the rest is checked all the same. One difference to a
//! template remains: whether a resource outlives its stack is written in the template only.

mod cloud_control;
mod kind;
mod stack;
mod survey;

use std::collections::BTreeSet;

pub use self::cloud_control::{CloudControl, ReadError};
use self::survey::Survey;
use super::{Deployment, Finding, Piece, Resource};

/// What a person says of a deployment. What is left out is found through the rest.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// A stack of `template.yaml`, by its name or ARN.
    pub stack: Option<String>,
    /// The orders queue.
    pub queue_url: Option<String>,
    /// The function, by its name or ARN.
    pub function: Option<String>,
    /// The table of records.
    pub table: Option<String>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Deployed {
    /// The resources that exist.
    pub resources: Vec<Resource>,
    /// What may exist and was not read.
    pub unread: BTreeSet<Piece>,
    /// What is missing or could not be read.
    pub findings: Vec<Finding>,
}

/// Why there is nothing to check.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The stack does not exist in this account and Region.
    #[error("there is no stack {0} in this account and Region")]
    NoStack(String),
    /// The queue does not exist in this account and Region.
    #[error("there is no queue {0} in this account and Region")]
    NoQueue(String),
    /// The stack says nothing of its queue.
    #[error("the stack {0} has no output QueueUrl: name the queue by --queue-url")]
    NoQueueNamed(String),
    /// The stack cannot be read, and without it nothing is known.
    #[error("the stack {stack} cannot be read (it takes {permissions})")]
    Stack {
        /// The stack.
        stack: String,
        /// What the caller must be allowed.
        permissions: String,
        /// Why.
        source: ReadError,
    },
    /// Nothing can be read at all.
    #[error(transparent)]
    NoAnswer(#[from] ReadError),
}

/// Reads what the names lead to.
///
/// # Errors
/// If stack or queue do not exist, or AWS does not answer.
pub async fn survey(account: &CloudControl, names: Names) -> Result<Deployed, SurveyError> {
    let names = stack::complete(account, names).await?;
    let mut survey = Survey { account, deployed: Deployed::default() };
    survey.run(&names).await?;
    Ok(survey.deployed)
}

impl Deployed {
    /// What the resources make together.
    pub fn deployment(&self) -> Deployment {
        super::deployment(&self.resources, &self.unread)
    }
}
