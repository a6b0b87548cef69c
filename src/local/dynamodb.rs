//! The embedded DynamoDB: the ledger table behind a loopback port, in memory or in a folder.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use dynoxide::{
    Database,
    actions::{create_table::CreateTableRequest, scan::ScanRequest},
    types::AttributeValue,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

/// A row of the ledger, attribute by attribute; numbers stay the text DynamoDB keeps.
pub type Row = serde_json::Map<String, serde_json::Value>;

/// Why the embedded database could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// No loopback port could be bound.
    #[error("the embedded DynamoDB finds no port on loopback")]
    Port(#[source] io::Error),
    /// The folder that keeps the data cannot be made or used.
    #[error("the data cannot be kept in {}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refused a call.
    #[error("the embedded DynamoDB refused to {action}")]
    Refused {
        /// What was asked of it.
        action: &'static str,
        /// Its own words.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl DatabaseError {
    fn refused(action: &'static str) -> impl FnOnce(dynoxide::DynoxideError) -> Self {
        move |error| Self::Refused { action, source: error.to_string().into() }
    }
}

/// A DynamoDB that serves until it is dropped.
pub struct DynamoDb {
    address: SocketAddr,
    database: Database,
    _server: JoinSet<()>,
}

impl std::fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoDb").field("address", &self.address).finish_non_exhaustive()
    }
}

impl DynamoDb {
    /// Starts on a free loopback port; in memory, or kept in `folder`.
    ///
    /// # Errors
    /// The folder or its file cannot be used, or no port could be bound.
    pub async fn start(folder: Option<&Path>) -> Result<Self, DatabaseError> {
        let database = open(folder)?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(DatabaseError::Port)?;
        let address = listener.local_addr().map_err(DatabaseError::Port)?;
        let mut server = JoinSet::new();
        server.spawn(dynoxide::server::serve_on(listener, database.clone()));
        Ok(Self { address, database, _server: server })
    }

    /// The value of `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes the ledger's table unless it is there already.
    ///
    /// # Errors
    /// The database refused.
    pub fn create_table(&self, table: &str) -> Result<(), DatabaseError> {
        let existing =
            self.database.get_table_metadata(table).map_err(DatabaseError::refused("look for a table"))?;
        if existing.is_some() {
            return Ok(());
        }
        let request: CreateTableRequest =
            serde_json::from_value(table_definition(table)).map_err(|source| DatabaseError::Refused {
                action: "read a table definition",
                source: source.into(),
            })?;
        self.database.create_table(request).map_err(DatabaseError::refused("create a table"))?;
        Ok(())
    }

    /// Every row of `table`, ordered by key.
    ///
    /// # Errors
    /// The database refused.
    pub fn rows(&self, table: &str) -> Result<Vec<Row>, DatabaseError> {
        let mut rows = Vec::new();
        let mut start = None;
        loop {
            let request = ScanRequest {
                table_name: table.into(),
                exclusive_start_key: start,
                ..ScanRequest::default()
            };
            let page = self.database.scan(request).map_err(DatabaseError::refused("scan a table"))?;
            rows.extend(page.items.into_iter().flatten().map(row));
            start = page.last_evaluated_key;
            if start.is_none() {
                rows.sort_by_cached_key(|row| row.get("pk").map(ToString::to_string));
                return Ok(rows);
            }
        }
    }

    /// Writes `row` into `table` as it stands, for tests that begin with a ledger that is not empty.
    ///
    /// # Errors
    /// The database refused.
    pub fn put(&self, table: &str, row: &Row) -> Result<(), DatabaseError> {
        let item: serde_json::Map<_, _> =
            row.iter().map(|(name, value)| (name.clone(), typed(value))).collect();
        let request = serde_json::from_value(json!({ "TableName": table, "Item": item }))
            .map_err(|source| DatabaseError::Refused { action: "read an item", source: source.into() })?;
        self.database.put_item(request).map_err(DatabaseError::refused("put an item"))?;
        Ok(())
    }
}

fn open(folder: Option<&Path>) -> Result<Database, DatabaseError> {
    let Some(folder) = folder else {
        return Database::memory().map_err(DatabaseError::refused("open a database in memory"));
    };
    let unusable = |source: Box<dyn std::error::Error + Send + Sync>| DatabaseError::Folder {
        folder: folder.into(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(|error| unusable(error.into()))?;
    let file = folder.join("dynamodb.sqlite");
    Database::new(&file.to_string_lossy()).map_err(|error| unusable(error.to_string().into()))
}

/// The ledger's table as `template.yaml` defines it.
fn table_definition(table: &str) -> serde_json::Value {
    json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" },
            { "AttributeName": "attention", "AttributeType": "S" },
            { "AttributeName": "state_changed_at", "AttributeType": "N" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "attention",
            "KeySchema": [
                { "AttributeName": "attention", "KeyType": "HASH" },
                { "AttributeName": "state_changed_at", "KeyType": "RANGE" },
            ],
            "Projection": { "ProjectionType": "ALL" },
        }],
    })
}

fn row(item: HashMap<String, AttributeValue>) -> Row {
    item.into_iter()
        .map(|(name, value)| {
            let value = match value {
                AttributeValue::S(text) => text.into(),
                AttributeValue::N(number) => number_value(number),
                AttributeValue::BOOL(flag) => flag.into(),
                AttributeValue::NULL(_) => serde_json::Value::Null,
                // The ledger has no other types; whoever put one there sees it as DynamoDB's own JSON.
                other @ (AttributeValue::B(_)
                | AttributeValue::SS(_)
                | AttributeValue::NS(_)
                | AttributeValue::BS(_)
                | AttributeValue::L(_)
                | AttributeValue::M(_)) => serde_json::to_value(other).unwrap_or_default(),
            };
            (name, value)
        })
        .collect()
}

/// Integers become JSON integers; what does not fit stays text.
fn number_value(number: String) -> serde_json::Value {
    match number.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => number.into(),
    }
}

fn typed(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => json!({ "N": number.to_string() }),
        serde_json::Value::Bool(flag) => json!({ "BOOL": flag }),
        serde_json::Value::Null => json!({ "NULL": true }),
        serde_json::Value::String(text) => json!({ "S": text }),
        nested @ (serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
            json!({ "S": nested.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_come_back_ordered_and_creating_twice_is_fine() {
        let dynamodb = DynamoDb::start(None).await.unwrap();
        dynamodb.create_table("ledger").unwrap();
        dynamodb.create_table("ledger").unwrap();
        for pk in ["order#b", "order#a"] {
            let row = json!({ "pk": pk, "amount_minor": 4990, "state": "PAID" });
            dynamodb.put("ledger", row.as_object().unwrap()).unwrap();
        }
        let rows = dynamodb.rows("ledger").unwrap();
        assert_eq!(
            serde_json::to_value(rows).unwrap(),
            json!([
                { "pk": "order#a", "amount_minor": 4990, "state": "PAID" },
                { "pk": "order#b", "amount_minor": 4990, "state": "PAID" },
            ])
        );
    }

    #[tokio::test]
    async fn a_table_that_was_not_created_is_an_error() {
        let dynamodb = DynamoDb::start(None).await.unwrap();
        assert!(matches!(dynamodb.rows("ledger"), Err(DatabaseError::Refused { .. })));
    }
}
