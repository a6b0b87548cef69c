//! A stand-in for DynamoDB: one table in memory, as much of it as the functions under measurement use.
//!
//! It understands the writes of this crate and of Powertools, and refuses what exists already or has another owner,
//! but judges no other condition: what it is for is to cost little and to count.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::http::{Request, Response, Server};

type Item = Map<String, Value>;

/// What was asked of the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Calls of any kind.
    pub(crate) calls: u64,
    /// Write request units: one for each KiB, begun or whole, of the larger of the item before and after.
    pub(crate) write_units: u64,
    /// Read request units of eventually consistent reads, in halves.
    pub(crate) half_read_units: u64,
}

#[derive(Default)]
struct Table {
    items: HashMap<String, Item>,
    usage: Usage,
}

/// The table behind a port.
pub(crate) struct Store {
    server: Server,
    table: Arc<Mutex<Table>>,
}

impl Store {
    /// Each call takes `delay` longer.
    pub(crate) fn start(delay: Duration) -> io::Result<Self> {
        let table = Arc::new(Mutex::new(Table::default()));
        let shared = Arc::clone(&table);
        let server = Server::start(move |request| {
            std::thread::sleep(delay);
            Some(shared.lock().unwrap_or_else(PoisonError::into_inner).answer(&request))
        })?;
        Ok(Self { server, table })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn usage(&self) -> Usage {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).usage
    }
}

impl Table {
    fn answer(&mut self, request: &Request) -> Response {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        self.usage.calls += 1;
        match request.target.rsplit('.').next().unwrap_or_default() {
            "UpdateItem" => self.update(&body),
            "PutItem" => self.put(&body),
            "GetItem" => {
                self.usage.half_read_units += 1;
                let item = self.items.get(&key(&body["Key"]));
                Response::json(
                    200,
                    item.map_or_else(|| json!({}), |item| json!({ "Item": item })).to_string(),
                )
            }
            _ => Response::json(400, r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#),
        }
    }

    fn put(&mut self, body: &Value) -> Response {
        let key = key(&body["Item"]);
        let before = self.items.get(&key);
        if body["ConditionExpression"].is_string() && before.is_some() {
            return self.refuse(&key);
        }
        let item = body["Item"].as_object().cloned().unwrap_or_default();
        self.usage.write_units += units(&item).max(before.map_or(0, units));
        self.items.insert(key, item);
        Response::json(200, "{}")
    }

    fn update(&mut self, body: &Value) -> Response {
        let key = key(&body["Key"]);
        let before = self.items.get(&key).cloned();
        let condition = body["ConditionExpression"].as_str().unwrap_or_default();
        let names_owner = condition.contains("#owner = :owner");
        let owner = before.as_ref().and_then(|item| item.get("owner"));
        let stale = names_owner && owner != body["ExpressionAttributeValues"].get(":owner");
        if stale || condition.contains("attribute_not_exists(pk)") && before.is_some() {
            return self.refuse(&key);
        }
        let mut item = before.clone().unwrap_or_else(|| body["Key"].as_object().cloned().unwrap_or_default());
        write(&mut item, body);
        self.usage.write_units += units(&item).max(before.as_ref().map_or(0, units));
        self.items.insert(key, item);
        let old = before.filter(|_| body["ReturnValues"] == "ALL_OLD");
        Response::json(200, old.map_or_else(|| json!({}), |item| json!({ "Attributes": item })).to_string())
    }

    /// A refused write costs as much as one of the item that stands in its way.
    fn refuse(&mut self, key: &str) -> Response {
        let item = self.items.get(key);
        self.usage.write_units += item.map_or(1, units);
        let body = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
            "message": "The conditional request failed",
            "Item": item,
        });
        Response::json(400, body.to_string())
    }
}

/// `SET a = :a, #b = if_not_exists(#b, :b) + :one REMOVE c`.
fn write(item: &mut Item, body: &Value) {
    let (names, values) = (&body["ExpressionAttributeNames"], &body["ExpressionAttributeValues"]);
    let name = |name: &str| names[name.trim()].as_str().unwrap_or(name.trim()).to_owned();
    // Only the comma inside if_not_exists(...) stands before a value.
    let update = body["UpdateExpression"].as_str().unwrap_or_default().replace(", :", ",:");
    let update = update.trim_start_matches("SET ");
    let (set, remove) = update.split_once(" REMOVE ").unwrap_or((update, ""));
    for assignment in set.split(", ") {
        let Some((left, right)) = assignment.split_once(" = ") else { continue };
        let attribute = name(left);
        let present = item.get(&attribute).cloned();
        let value = match right.strip_prefix("if_not_exists(").and_then(|rest| rest.split_once(')')) {
            None => values[right.trim()].clone(),
            Some((inner, rest)) => {
                let default = inner.rsplit(',').next().unwrap_or_default().trim();
                let value = present.unwrap_or_else(|| values[default].clone());
                if rest.is_empty() { value } else { json!({ "N": (number(&value) + 1).to_string() }) }
            }
        };
        item.insert(attribute, value);
    }
    for placeholder in remove.split(',').filter(|placeholder| !placeholder.is_empty()) {
        item.remove(&name(placeholder));
    }
}

fn number(value: &Value) -> u64 {
    value["N"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Functions of this crate call the key `pk`; so does the table of the peers.
fn key(item: &Value) -> String {
    let text = |name: &str| item[name]["S"].as_str().map(str::to_owned);
    text("pk").or_else(|| text("id")).unwrap_or_default()
}

/// An item's size as DynamoDB counts it, about: names and values in bytes.
fn units(item: &Item) -> u64 {
    let bytes = |(name, value): (&String, &Value)| {
        let value = value.as_object().and_then(|typed| typed.values().next());
        name.len() + value.map_or(0, |value| value.as_str().map_or_else(|| value.to_string().len(), str::len))
    };
    let size: usize = item.iter().map(bytes).sum();
    u64::try_from(size.div_ceil(1024).max(1)).unwrap_or(u64::MAX)
}
