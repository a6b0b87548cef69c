//! The parameters: their values, and what `CloudFormation` would refuse of them before it deploys anything.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    TemplateError,
    intrinsics::{Resolver, section},
};
use crate::doctor::{
    Finding, Severity,
    resource::{items, text, texts},
};

/// The value of every parameter: given, or its default.
pub(super) fn values(
    template: &Value,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, TemplateError> {
    let declared = section(template, "Parameters");
    if let Some(unknown) = given.keys().find(|name| !declared.contains_key(*name)) {
        return Err(TemplateError::NoSuchParameter(unknown.clone()));
    }
    declared
        .into_iter()
        .map(|(name, parameter)| {
            let given = given.get(&name).map(|value| Value::String(value.clone()));
            let value = given.or_else(|| parameter.get("Default").cloned());
            value.map(|value| (name.clone(), value)).ok_or(TemplateError::NoValue(name))
        })
        .collect()
}

/// Values that the parameters do not allow.
pub(super) fn not_allowed(template: &Value, values: &BTreeMap<String, Value>) -> Vec<Finding> {
    let declared = section(template, "Parameters");
    let broken = values.iter().filter_map(|(name, value)| {
        let demand = demand(declared.get(name)?, &text(value))?;
        Some(refusal(
            "parameter-allowed",
            format!("CloudFormation refuses {name}={}: it must be {demand}", text(value)),
            format!("sam deploy --parameter-overrides {name}=VALUE, where VALUE is {demand}"),
        ))
    });
    broken.collect()
}

/// What the parameter demands, if the value does not meet it.
fn demand(parameter: &Value, value: &str) -> Option<String> {
    let allowed = texts(parameter.get("AllowedValues"));
    if !allowed.is_empty() && !allowed.iter().any(|one| one == value) {
        return Some(format!("one of {}", allowed.join(", ")));
    }
    let is_number = parameter.get("Type").is_some_and(|kind| kind == "Number");
    let bound = |name: &str| text(parameter.get(name)?).parse::<i64>().ok();
    if is_number {
        let Ok(number) = value.parse::<i64>() else { return Some("a whole number".to_owned()) };
        let above =
            bound("MinValue").filter(|least| number < *least).map(|least| format!("at least {least}"));
        return above.or_else(|| {
            bound("MaxValue").filter(|most| number > *most).map(|most| format!("at most {most}"))
        });
    }
    let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
    let short = bound("MinLength").filter(|least| length < *least);
    let long = bound("MaxLength").filter(|most| length > *most);
    short
        .map(|least| format!("at least {least} characters long"))
        .or_else(|| long.map(|most| format!("at most {most} characters long")))
}

/// Assertions of the section `Rules` that do not hold. A rule about parameters of which none was given is left to
/// the deployment: its defaults may be there to be replaced.
pub(super) fn assertions(
    template: &Value,
    given: &BTreeMap<String, String>,
    resolver: &Resolver,
) -> Result<Vec<Finding>, TemplateError> {
    let mut findings = Vec::new();
    for rule in section(template, "Rules").values() {
        let mut parameters = Vec::new();
        references(rule, &mut parameters);
        if !parameters.iter().any(|name| given.contains_key(name)) {
            continue;
        }
        if !rule.get("RuleCondition").map_or(Ok(true), |condition| resolver.condition(condition))? {
            continue;
        }
        for assertion in items(rule.get("Assertions")) {
            if !resolver.condition(assertion.get("Assert").unwrap_or(&Value::Null))? {
                let says = assertion.get("AssertDescription").map(text).unwrap_or_default();
                findings.push(refusal(
                    "template-assertion",
                    format!("CloudFormation refuses these parameters: {says}"),
                    format!("give other values for {}", parameters.join(", ")),
                ));
            }
        }
    }
    Ok(findings)
}

/// The parameters that are named, each once.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(entries) => match named(entries) {
            Some(name) if found.contains(&name) => {}
            Some(name) => found.push(name),
            None => entries.values().for_each(|value| references(value, found)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn named(entries: &Map<String, Value>) -> Option<String> {
    entries.get("Ref").and_then(Value::as_str).map(str::to_owned)
}

fn refusal(rule: &'static str, breaks: String, fix: String) -> Finding {
    Finding { rule, severity: Severity::Error, breaks, fix }
}
