//! The ledger in an embedded DynamoDB, over a real socket.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    types::{
        AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
        Projection, ProjectionType, ScalarAttributeType,
    },
};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{Intercept, context::BeforeTransmitInterceptorContextRef},
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::ConfigBag;
use charge_once::{
    ledger::{Entry, Found, Ledger, VERSION, conformance::Fixture, dynamodb::DynamoDbLedger},
    order::OrderId,
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};

const TABLE: &str = "ledger";

/// A fresh ledger table. It serves until it is dropped.
pub(crate) struct Table {
    pub(crate) client: Client,
    pub(crate) ledger: DynamoDbLedger,
    wire: Wire,
    _server: JoinSet<()>,
}

/// Remembers every write to an item as it goes over the wire, the SDK's own retries too.
#[derive(Clone, Debug, Default)]
struct Wire(Arc<Mutex<Vec<String>>>);

impl Intercept for Wire {
    fn name(&self) -> &'static str {
        "wire"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let operation = request.headers().get("x-amz-target").and_then(|it| it.split('.').nth(1));
        let operation = operation.ok_or("a call without an operation")?;
        // Whatever else might change an item: puts, deletes, batches, transactions, statements.
        if !["GetItem", "Query", "CreateTable"].contains(&operation) {
            let body: Value = serde_json::from_slice(request.body().bytes().ok_or("a streamed body")?)?;
            let update = body.get("UpdateExpression").and_then(Value::as_str).unwrap_or_default();
            self.0.lock().unwrap().push(format!("{operation} {update}"));
        }
        Ok(())
    }
}

impl Table {
    pub(crate) async fn create() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
        let wire = Wire::default();
        let client = client(&url, wire.clone());
        create(&client).await;
        Self { ledger: DynamoDbLedger::new(client.clone(), TABLE), client, wire, _server: server }
    }

    /// Every write so far, with its update expression.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.wire.0.lock().unwrap().clone()
    }

    /// Puts an item as it is, whatever version it is of.
    pub(crate) async fn put(&self, attributes: Vec<(&str, AttributeValue)>) {
        let item = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
    }

    /// The item's attributes.
    pub(crate) async fn item(&self, order_id: &str) -> Vec<(String, AttributeValue)> {
        let key = AttributeValue::S(format!("order#{order_id}"));
        let output = self.client.get_item().table_name(TABLE).key("pk", key).send().await.unwrap();
        output.item.unwrap_or_default().into_iter().collect()
    }

    pub(crate) async fn entry(&self, order_id: &str) -> Option<Entry> {
        match self.ledger.get(&OrderId::parse(order_id).unwrap()).await.unwrap() {
            Found::Nothing => None,
            Found::Entry(entry) => Some(*entry),
            Found::Unreadable => panic!("the record of {order_id} cannot be read"),
        }
    }

    /// Takes a record away, as TTL does.
    pub(crate) async fn delete(&self, order_id: &str) {
        let key = AttributeValue::S(format!("order#{order_id}"));
        self.client.delete_item().table_name(TABLE).key("pk", key).send().await.unwrap();
    }
}

impl Fixture for Table {
    type Ledger = DynamoDbLedger;

    fn ledger(&self) -> &DynamoDbLedger {
        &self.ledger
    }

    async fn seed(&self, order_id: &OrderId, entry: &Entry) {
        self.put(attributes(order_id, entry)).await;
    }
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The record attribute by attribute, written down here a second time so that the test does not believe the
/// code it tests.
pub(crate) fn attributes(order_id: &OrderId, entry: &Entry) -> Vec<(&'static str, AttributeValue)> {
    let texts = [
        ("pk", Some(format!("order#{order_id}"))),
        ("state", Some(entry.state.as_str().to_owned())),
        ("owner", Some(entry.owner.clone())),
        ("fingerprint", Some(entry.fingerprint.clone())),
        ("currency", Some(entry.currency.clone())),
        ("provider", Some(entry.provider.clone())),
        ("handle", entry.handle.clone()),
        ("charge_id", entry.charge_id.clone()),
        ("provider_request_id", entry.provider_request_id.clone()),
        ("error", entry.error.clone()),
        ("held_reason", entry.held_reason.clone()),
        ("message_id", entry.message_id.clone()),
        ("attention", entry.attention.map(|attention| attention.as_str().to_owned())),
    ];
    let millis = |instant: charge_once::clock::Timestamp| instant.as_millis();
    let numbers = [
        ("version", Some(i64::from(VERSION))),
        ("fence", Some(i64::try_from(entry.fence).unwrap())),
        ("lease_until", entry.lease_until.map(millis)),
        ("attempt", Some(i64::from(entry.attempt))),
        ("amount_minor", Some(entry.amount_minor)),
        ("handle_generation", Some(i64::from(entry.handle_generation))),
        ("first_seen_at", Some(millis(entry.first_seen_at))),
        ("first_sent_at", entry.first_sent_at.map(millis)),
        ("state_changed_at", Some(millis(entry.state_changed_at))),
        ("receive_count", Some(i64::from(entry.receive_count))),
        ("expires_at", entry.expires_at),
    ];
    let texts = texts.into_iter().filter_map(|(name, value)| Some((name, AttributeValue::S(value?))));
    let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name, number(value?))));
    texts.chain(numbers).collect()
}

fn client(url: &str, wire: Wire) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::for_tests())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(url)
        .interceptor(wire);
    Client::from_conf(DynamoDbLedger::configure(config).build())
}

async fn create(client: &Client) {
    let attribute = |name, kind| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
    };
    let key = |name, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let index = GlobalSecondaryIndex::builder()
        .index_name("attention")
        .key_schema(key("attention", KeyType::Hash))
        .key_schema(key("state_changed_at", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build());
    let table = client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("pk", ScalarAttributeType::S))
        .attribute_definitions(attribute("attention", ScalarAttributeType::S))
        .attribute_definitions(attribute("state_changed_at", ScalarAttributeType::N))
        .key_schema(key("pk", KeyType::Hash))
        .global_secondary_indexes(index.build().unwrap());
    table.send().await.unwrap();
}
