//! A resource in the words of `CloudFormation`, which a template and Cloud Control share, and how its values are read.

use serde_json::Value;

/// A queue, a function, a table: what a template declares, or what is deployed.
///
/// The names are whatever other resources call it by. In a template that is its logical id (`Orders`) and what
/// `!GetAtt` says (`Orders.Arn`); of what is deployed, its URL or name and its ARN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// The type, such as `AWS::SQS::Queue`.
    pub kind: String,
    /// What `!Ref` gives: a queue's URL, a table's name.
    pub reference: String,
    /// The ARN.
    pub arn: String,
    /// The value of the dimension under which its metrics are found.
    pub name: String,
    /// The properties, every function resolved.
    pub properties: Value,
    /// Whether it outlives its stack; `None` if unknown.
    pub retained: Option<bool>,
}

impl Resource {
    /// A property, by its JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        self.properties.pointer(pointer)
    }
}

/// A scalar as `CloudFormation` compares it: as text.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn number(value: Option<&Value>) -> Option<u64> {
    text(value?).parse().ok()
}

pub(super) fn flag(value: Option<&Value>) -> bool {
    value.is_some_and(|value| text(value) == "true")
}

/// The members of a list, or the value itself where a list of one may be written so; none of nothing.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None => &[],
        Some(one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))) => {
            std::slice::from_ref(one)
        }
    }
}

/// One text or a list of texts.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    items(value).iter().map(text).collect()
}

/// A policy: an object, or the same as JSON text.
pub(super) fn document(value: Option<&Value>) -> Value {
    match value {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_an_object_or_the_same_as_text() {
        let policy = json!({"maxReceiveCount": 10});
        assert_eq!(document(Some(&policy)), policy);
        assert_eq!(document(Some(&json!(policy.to_string()))), policy);
        assert_eq!(document(None), Value::Null);
    }

    #[test]
    fn a_list_of_one_may_be_written_without_brackets() {
        assert_eq!(texts(Some(&json!("a"))), ["a"]);
        assert_eq!(texts(Some(&json!(["a", 1]))), ["a", "1"]);
        assert_eq!(texts(Some(&Value::Null)), [""; 0]);
    }
}
