//! The rules a deployment must keep so that no order is lost or charged twice, and who breaks them.
//!
//! No linter of AWS knows them: a mapping without partial responses, a visibility timeout equal to the function's
//! timeout or a record that is forgotten before its message all pass every tool and lose money weeks later. Each
//! rule is a pure function over a [`Deployment`]. A deployment is read from resources in the words of
//! `CloudFormation`: those of a template ([`template`]), or those that are deployed ([`deployed`]).

pub mod deployed;
mod deployment;
mod part;
mod read;
mod resource;
mod rules;
pub mod template;

pub use deployment::{
    Alarm, Deployment, Function, Ledger, Mapping, Metric, Queue, Role, Scaling, Scope, Statement,
};
pub use part::Part;
pub use read::{Piece, deployment};
pub use resource::Resource;
pub use rules::{RULES, Rule};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is lost, but somebody will be surprised.
    Warning,
    /// Orders can be lost, stuck or charged twice.
    Error,
}

/// One rule that a deployment breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name, stable for scripts.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What goes wrong, with the numbers found.
    pub breaks: String,
    /// What to type or write.
    pub fix: String,
}

/// Every finding of every rule, in the order of [`RULES`]; empty for a sound deployment.
pub fn check(deployment: &Deployment) -> Vec<Finding> {
    RULES.iter().copied().flatten().filter_map(|rule| rule.finding(deployment)).collect()
}
