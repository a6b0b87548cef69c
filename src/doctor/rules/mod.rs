//! The rules, one file a concern. A rule is a name, a severity and a pure function.

mod alarms;
mod function;
mod ledger;
mod mapping;
mod queue;
mod role;

use super::{Deployment, Finding, Severity};

/// Every rule, by concern.
pub const RULES: &[&[Rule]] =
    &[queue::RULES, mapping::RULES, function::RULES, role::RULES, ledger::RULES, alarms::RULES];

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, stable for scripts.
    pub id: &'static str,
    /// How bad a breach is.
    pub severity: Severity,
    /// What is wrong, or `None` if the rule is kept or does not apply.
    check: fn(&Deployment) -> Option<Trouble>,
}

impl Rule {
    const fn error(id: &'static str, check: fn(&Deployment) -> Option<Trouble>) -> Self {
        Self { id, severity: Severity::Error, check }
    }

    const fn warning(id: &'static str, check: fn(&Deployment) -> Option<Trouble>) -> Self {
        Self { id, severity: Severity::Warning, check }
    }

    /// The finding, if the deployment breaks the rule.
    pub fn finding(&self, deployment: &Deployment) -> Option<Finding> {
        let Trouble { breaks, fix } = (self.check)(deployment)?;
        Some(Finding { rule: self.id, severity: self.severity, breaks, fix })
    }
}

/// What a rule has to say: what breaks, and what to type.
#[derive(Debug)]
struct Trouble {
    breaks: String,
    fix: String,
}

/// The trouble, where a rule is broken.
fn trouble(broken: bool, breaks: impl Into<String>, fix: impl Into<String>) -> Option<Trouble> {
    broken.then(|| Trouble { breaks: breaks.into(), fix: fix.into() })
}
