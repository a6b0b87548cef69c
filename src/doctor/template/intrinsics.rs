//! `CloudFormation`'s functions: a template and its parameters become plain resources.
//!
//! A reference to a resource becomes its logical id (`!Ref`) or `Id.Attribute` (`!GetAtt`), which is enough to tell
//! whether two places mean the same thing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

use super::TemplateError;
use crate::doctor::resource::{items, text, texts};

/// YAML as JSON, with the short tags in their long form: `!Ref x` is `{"Ref": "x"}`.
pub(super) fn plain(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(bool) => Value::Bool(bool),
        Yaml::Number(number) => serde_json::to_value(number).unwrap_or_default(),
        Yaml::String(text) => Value::String(text),
        Yaml::Sequence(items) => Value::Array(items.into_iter().map(plain).collect()),
        Yaml::Mapping(entries) => {
            Value::Object(entries.into_iter().map(|(key, value)| (text(&plain(key)), plain(value))).collect())
        }
        Yaml::Tagged(tagged) => {
            let tag = tagged.tag.to_string();
            let name = tag.trim_start_matches('!');
            let long =
                if ["Ref", "Condition"].contains(&name) { name.to_owned() } else { format!("Fn::{name}") };
            json!({ long: plain(tagged.value) })
        }
    }
}

pub(super) fn section(template: &Value, name: &str) -> Map<String, Value> {
    template.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What references lead to.
pub(super) struct Resolver {
    parameters: BTreeMap<String, Value>,
    conditions: Map<String, Value>,
    mappings: Map<String, Value>,
    resources: Map<String, Value>,
}

impl Resolver {
    pub(super) fn new(template: &Value, parameters: BTreeMap<String, Value>) -> Self {
        let (conditions, resources) = (section(template, "Conditions"), section(template, "Resources"));
        Self { parameters, conditions, mappings: section(template, "Mappings"), resources }
    }

    /// The resources by logical id, conditions decided and parameters put in.
    pub(super) fn resources(&self) -> Result<Map<String, Value>, TemplateError> {
        let mut resolved = Map::new();
        for (id, resource) in &self.resources {
            let wanted = resource.get("Condition").map_or(Ok(true), |name| self.condition(name))?;
            if let (true, Some(resource)) = (wanted, self.resolve(resource)?) {
                resolved.insert(id.clone(), resource);
            }
        }
        Ok(resolved)
    }

    /// The value with every function applied; `None` where `AWS::NoValue` takes it away.
    fn resolve(&self, value: &Value) -> Result<Option<Value>, TemplateError> {
        match value {
            Value::Array(items) => self.resolve_items(items).map(|items| Some(Value::Array(items))),
            Value::Object(entries) => match function(entries) {
                Some(("Ref", argument)) => self.reference(&text(argument)),
                Some(("Fn::GetAtt", argument)) => self.attribute(argument).map(Some),
                Some(("Fn::Sub", argument)) => self.substitute(argument).map(Some),
                Some(("Fn::If", argument)) => self.choose(argument),
                Some(("Fn::FindInMap", argument)) => self.find_in_map(argument).map(Some),
                Some(("Fn::Join", argument)) => self.join(argument).map(Some),
                _ => self.resolve_entries(entries).map(|entries| Some(Value::Object(entries))),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Some(value.clone())),
        }
    }

    fn resolve_items(&self, items: &[Value]) -> Result<Vec<Value>, TemplateError> {
        items.iter().filter_map(|item| self.resolve(item).transpose()).collect()
    }

    fn resolve_entries(&self, entries: &Map<String, Value>) -> Result<Map<String, Value>, TemplateError> {
        let keep =
            |(key, value)| self.resolve(value).map(|value| value.map(|value| (String::clone(key), value)));
        entries.iter().filter_map(|entry| keep(entry).transpose()).collect()
    }

    fn reference(&self, name: &str) -> Result<Option<Value>, TemplateError> {
        if name == "AWS::NoValue" {
            return Ok(None);
        }
        let parameter = self.parameters.get(name).cloned();
        let value = parameter.or_else(|| self.knows(name).then(|| Value::String(name.to_owned())));
        value.map(Some).ok_or_else(|| TemplateError::Unresolved(name.to_owned()))
    }

    /// Whether the name is a resource, one that SAM makes of a resource (its id is the prefix), or AWS's own.
    fn knows(&self, name: &str) -> bool {
        name.starts_with("AWS::") || self.resources.keys().any(|id| name.starts_with(id.as_str()))
    }

    fn attribute(&self, argument: &Value) -> Result<Value, TemplateError> {
        let name = match argument {
            Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join("."),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                text(argument)
            }
        };
        if self.knows(&name) { Ok(Value::String(name)) } else { Err(TemplateError::Unresolved(name)) }
    }

    /// `!Sub`: `${Name}` becomes what `!Ref Name` is, or stays if that is known only when deployed.
    fn substitute(&self, argument: &Value) -> Result<Value, TemplateError> {
        let none = Map::new();
        let (pattern, own) = match argument.as_array().map(Vec::as_slice) {
            Some([pattern, own]) => {
                (text(pattern), own.as_object().ok_or(TemplateError::Malformed("Fn::Sub"))?)
            }
            Some(_) => return Err(TemplateError::Malformed("Fn::Sub")),
            None => (text(argument), &none),
        };
        let mut pieces = pattern.split("${");
        let mut result = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once('}').ok_or(TemplateError::Malformed("Fn::Sub"))?;
            let value = match own.get(name) {
                Some(value) => self.resolve(value)?,
                None => self.reference(name)?,
            };
            result.push_str(&value.as_ref().map(text).unwrap_or_default());
            result.push_str(rest);
        }
        Ok(Value::String(result))
    }

    /// `!FindInMap`; it stays where the keys are known only when deployed, as the Region is.
    fn find_in_map(&self, argument: &Value) -> Result<Value, TemplateError> {
        let keys = self.resolve(argument)?;
        let [map, first, second, ..] = items(keys.as_ref()) else {
            return Err(TemplateError::Malformed("Fn::FindInMap"));
        };
        let entry = |map: &Value, key: &Value| map.get(text(key)).cloned();
        let map = self.mappings.get(&text(map));
        let found = map.and_then(|map| entry(map, first)).and_then(|map| entry(&map, second));
        Ok(found.unwrap_or_else(|| json!({ "Fn::FindInMap": keys })))
    }

    /// `!Join`; it stays where a part is known only when deployed.
    fn join(&self, argument: &Value) -> Result<Value, TemplateError> {
        let argument = self.resolve(argument)?;
        let [delimiter, parts] = items(argument.as_ref()) else {
            return Err(TemplateError::Malformed("Fn::Join"));
        };
        let parts = texts_of_scalars(parts);
        Ok(parts.map_or_else(
            || json!({ "Fn::Join": argument }),
            |parts| Value::String(parts.join(&text(delimiter))),
        ))
    }

    fn choose(&self, argument: &Value) -> Result<Option<Value>, TemplateError> {
        let Some([condition, yes, no]) = argument.as_array().map(Vec::as_slice) else {
            return Err(TemplateError::Malformed("Fn::If"));
        };
        self.resolve(if self.condition(condition)? { yes } else { no })
    }

    /// A condition, by its name or written out.
    pub(super) fn condition(&self, condition: &Value) -> Result<bool, TemplateError> {
        if let Some(name) = condition.as_str() {
            let named =
                self.conditions.get(name).ok_or_else(|| TemplateError::Unresolved(name.to_owned()))?;
            return self.condition(named);
        }
        let (name, argument) =
            condition.as_object().and_then(function).ok_or(TemplateError::Malformed("a condition"))?;
        if name == "Condition" {
            return self.condition(argument);
        }
        let operands = argument.as_array().map(Vec::as_slice).unwrap_or_default();
        match (name, operands) {
            ("Fn::Equals", [left, right]) => {
                let scalar = |value| self.resolve(value).map(|value| value.as_ref().map(text));
                Ok(scalar(left)? == scalar(right)?)
            }
            ("Fn::Contains", [list, value]) => {
                let (list, value) = (self.resolve(list)?, self.resolve(value)?);
                let value = value.as_ref().map(text).unwrap_or_default();
                Ok(texts(list.as_ref()).contains(&value))
            }
            ("Fn::Not", [operand]) => self.condition(operand).map(|holds| !holds),
            ("Fn::And", _) => operands.iter().try_fold(true, |all, one| Ok(all && self.condition(one)?)),
            ("Fn::Or", _) => operands.iter().try_fold(false, |any, one| Ok(any || self.condition(one)?)),
            _ => Err(TemplateError::Malformed("a condition")),
        }
    }
}

/// The texts of a list in which nothing is left to resolve.
fn texts_of_scalars(list: &Value) -> Option<Vec<String>> {
    let is_scalar = |part: &Value| !part.is_object() && !part.is_array();
    list.as_array().filter(|parts| parts.iter().all(is_scalar)).map(|parts| parts.iter().map(text).collect())
}

/// The function an object stands for: its only key.
fn function(entries: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut entries = entries.iter();
    let (name, argument) = entries.next()?;
    entries.next().is_none().then_some((name.as_str(), argument))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::template::parameters;

    fn resolved(resource: &str, given: &[(&str, &str)]) -> Result<Value, TemplateError> {
        let text = format!(
            "Parameters: {{Type: {{Default: standard}}, Age: {{Default: 30}}}}\n\
             Conditions: {{Fifo: !Equals [!Ref Type, fifo], Plain: !Not [!Condition Fifo]}}\n\
             Resources: {{Queue: {resource}}}"
        );
        let template = plain(serde_yaml_ng::from_str(&text).unwrap());
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let parameters = parameters::values(&template, &given)?;
        let mut resources = Resolver::new(&template, parameters).resources()?;
        Ok(resources.remove("Queue").unwrap_or_default())
    }

    #[test]
    fn parameters_take_their_default_or_what_is_given() {
        let resource = "{Age: !Ref Age, Name: !Sub 'q-${Type}-${AWS::Region}'}";
        assert_eq!(resolved(resource, &[]).unwrap(), json!({"Age": 30, "Name": "q-standard-AWS::Region"}));
        let given = resolved(resource, &[("Age", "60"), ("Type", "fifo")]).unwrap();
        assert_eq!(given, json!({"Age": "60", "Name": "q-fifo-AWS::Region"}));
    }

    #[test]
    fn a_choice_follows_its_condition_and_no_value_takes_the_property_away() {
        let resource = "{Fifo: !If [Fifo, true, !Ref AWS::NoValue], Kind: !If [Plain, a, b]}";
        assert_eq!(resolved(resource, &[]).unwrap(), json!({"Kind": "a"}));
        assert_eq!(resolved(resource, &[("Type", "fifo")]).unwrap(), json!({"Fifo": true, "Kind": "b"}));
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_an_error() {
        for resource in
            ["{A: !Ref Nobody}", "{A: !GetAtt Nobody.Arn}", "{A: !Sub '${Nobody}'}", "{A: !If [No, 1, 2]}"]
        {
            assert!(matches!(resolved(resource, &[]), Err(TemplateError::Unresolved(_))), "{resource}");
        }
        assert!(matches!(resolved("{}", &[("Nobody", "1")]), Err(TemplateError::NoSuchParameter(_))));
    }
}
