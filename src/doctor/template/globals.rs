//! SAM's section `Globals`: what holds for every function of the template.

use serde_json::{Map, Value};

/// Puts `Globals.Function` into each function, as SAM does: maps are merged, lists joined, and of anything else the
/// function's own word counts.
pub(super) fn spread(template: &mut Value) {
    let Some(globals) = template.pointer("/Globals/Function").cloned() else { return };
    let resources = template.get_mut("Resources").and_then(Value::as_object_mut);
    for resource in resources.into_iter().flat_map(Map::values_mut) {
        if resource.get("Type").is_some_and(|kind| kind == "AWS::Serverless::Function") {
            let own = resource.get("Properties").cloned().unwrap_or_default();
            if let Some(resource) = resource.as_object_mut() {
                resource.insert("Properties".to_owned(), merged(&globals, own));
            }
        }
    }
}

fn merged(global: &Value, own: Value) -> Value {
    match (global, own) {
        (Value::Object(global), Value::Object(own)) if !is_function(global) && !is_function(&own) => {
            let mut all = global.clone();
            for (name, own) in own {
                let value = match global.get(&name) {
                    Some(global) => merged(global, own),
                    None => own,
                };
                all.insert(name, value);
            }
            Value::Object(all)
        }
        (Value::Array(global), Value::Array(own)) => {
            Value::Array(global.iter().cloned().chain(own).collect())
        }
        (global, Value::Null) => global.clone(),
        (_, own) => own,
    }
}

/// Whether this is a `!Ref` or another function, which is one value though it is written as a map.
fn is_function(entries: &Map<String, Value>) -> bool {
    entries.keys().any(|key| key == "Ref" || key.starts_with("Fn::"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_are_merged_lists_joined_and_the_functions_own_word_counts() {
        let global =
            json!({"Timeout": 60, "Memory": 128, "Layers": ["a"], "Env": {"A": "1", "B": {"Ref": "X"}}});
        let own = json!({"Timeout": {"Ref": "T"}, "Layers": ["b"], "Env": {"B": {"Fn::Sub": "x"}, "C": "3"}});
        let expected = json!({
            "Timeout": {"Ref": "T"}, "Memory": 128, "Layers": ["a", "b"],
            "Env": {"A": "1", "B": {"Fn::Sub": "x"}, "C": "3"},
        });
        assert_eq!(merged(&global, own), expected);
        assert_eq!(merged(&global, Value::Null), global);
    }
}
