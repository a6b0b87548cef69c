//! A repair of bodies on their way back: a JSON merge patch (RFC 7396) on plain orders, and on nothing else.
//!
//! Members that the patch does not name keep their own characters, so that an amount stays what the producer wrote.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::envelope::Envelope;

/// What is put into a body, by member; null takes a member out.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit(BTreeMap<String, Value>);

/// Why a text is no edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is no patch.
    #[error("write a JSON object, such as {{\"currency\":\"EUR\"}}; null takes a member out")]
    NotAnObject,
    /// It changes nothing.
    #[error("the object is empty: name what to change")]
    Empty,
    /// It makes another order of each.
    #[error("order_id cannot be edited: that would be another order")]
    OrderId,
}

/// Why a body is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEdited {
    /// SNS, EventBridge or a pointer into S3.
    #[error("the order is in an envelope")]
    Envelope,
    /// No JSON object, or one that says a member twice.
    #[error("the body is no JSON object, or says a member twice")]
    NotAnObject,
    /// The body is no order afterwards.
    #[error("no order even then: {0}")]
    NoOrder(String),
    /// A record of the ledger is about this order with another content.
    #[error("the ledger knows the order with another content: it would come back as MISMATCH")]
    Mismatch,
}

/// A body after the edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) body: String,
    /// The members that are not what they were.
    pub(super) changed: Vec<String>,
}

impl FromStr for Edit {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let patch: BTreeMap<String, Value> =
            serde_json::from_str(text).map_err(|_| EditError::NotAnObject)?;
        match patch {
            patch if patch.is_empty() => Err(EditError::Empty),
            patch if patch.contains_key("order_id") => Err(EditError::OrderId),
            patch => Ok(Self(patch)),
        }
    }
}

impl Edit {
    /// The body with the patch applied.
    pub(super) fn apply(&self, body: &str) -> Result<Edited, NotEdited> {
        match Envelope::open(body) {
            Ok(Envelope::Order(order)) if order.len() == body.len() => {}
            Ok(Envelope::Order(_) | Envelope::S3Pointer(_)) | Err(_) => return Err(NotEdited::Envelope),
        }
        let json = body.strip_prefix('\u{feff}').unwrap_or(body);
        let mut members: Members = serde_json::from_str(json).map_err(|_| NotEdited::NotAnObject)?;
        let mut changed = Vec::new();
        for (name, patch) in &self.0 {
            let before = members.0.get(name);
            let after = merged(before.map(AsRef::as_ref), patch);
            if before.map(|raw| raw.get()) != after.as_ref().map(|raw| raw.get()) {
                changed.push(name.clone());
                match after {
                    Some(after) => drop(members.0.insert(name.clone(), after)),
                    None => drop(members.0.remove(name)),
                }
            }
        }
        let body = serde_json::to_string(&members.0).map_err(|_| NotEdited::NotAnObject)?;
        Ok(Edited { body, changed })
    }
}

/// RFC 7396: objects are merged, null takes away, everything else replaces.
fn merged(before: Option<&RawValue>, patch: &Value) -> Option<Box<RawValue>> {
    let value = match patch {
        Value::Null => return None,
        Value::Object(_) => {
            let mut target = before.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
            merge(&mut target, patch);
            target
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => patch.clone(),
    };
    serde_json::value::to_raw_value(&value).ok()
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, patch) in patch {
        if patch.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), patch);
        }
    }
}

/// The members of an object, each in its own characters and named once.
struct Members(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member is said twice"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(patch: &str, body: &str) -> Result<(String, Vec<String>), NotEdited> {
        let edit: Edit = patch.parse().unwrap();
        edit.apply(body).map(|Edited { body, changed }| (body, changed))
    }

    #[test]
    fn what_the_patch_does_not_name_keeps_its_characters() {
        let body =
            "\u{feff}{\"order_id\":\"a\", \"amount\":49.900000000000000001, \"note\":{\"x\":1,\"y\":2}}";
        let (body, changed) = edited(r#"{"currency":"EUR","note":{"x":null,"z":[3]}}"#, body).unwrap();
        assert_eq!(
            body,
            r#"{"amount":49.900000000000000001,"currency":"EUR","note":{"y":2,"z":[3]},"order_id":"a"}"#
        );
        assert_eq!(changed, ["currency", "note"]);
    }

    #[test]
    fn null_takes_a_member_out_and_what_is_so_already_is_no_change() {
        let body = r#"{"amount":1,"currency":"EUR","total":1}"#;
        let (body, changed) = edited(r#"{"total":null,"currency":"EUR","customer":null}"#, body).unwrap();
        assert_eq!((body.as_str(), changed), (r#"{"amount":1,"currency":"EUR"}"#, vec!["total".to_owned()]));
    }

    #[test]
    fn only_plain_objects_are_edited() {
        let patch = r#"{"currency":"EUR"}"#;
        let sns = r#"{"Type":"Notification","TopicArn":"t","Message":"{\"order_id\":\"a\"}"}"#;
        let pointer =
            r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]"#;
        for body in [sns, pointer, r#"{"Event":"s3:TestEvent"}"#] {
            assert_eq!(edited(patch, body), Err(NotEdited::Envelope), "{body}");
        }
        for body in ["", "{", "7", "[1]", r#"{"amount":1,"amount":2}"#] {
            assert_eq!(edited(patch, body), Err(NotEdited::NotAnObject), "{body}");
        }
    }

    #[test]
    fn an_edit_names_what_to_change_and_never_the_order() {
        let parse = |text: &str| text.parse::<Edit>().unwrap_err();
        assert_eq!(parse("amount=5"), EditError::NotAnObject);
        assert_eq!(parse("[]"), EditError::NotAnObject);
        assert_eq!(parse("{}"), EditError::Empty);
        assert_eq!(parse(r#"{"order_id":"b"}"#), EditError::OrderId);
    }
}
