//! The ledger in DynamoDB: one `UpdateItem` per transition, judged from the item that a refusal returns.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    config::{retry::RetryConfig, timeout::TimeoutConfig},
    error::{ProvideErrorMetadata, SdkError},
    operation::update_item::UpdateItemError,
    types::{ReturnValue, ReturnValuesOnConditionCheckFailure},
};

use self::builder::{Expression, Parts};
use super::{Applied, Found, Intent, Ledger, LedgerError};
use crate::order::OrderId;

mod builder;
mod expression;
mod item;
mod list;

/// Records in a DynamoDB table.
#[derive(Clone, Debug)]
pub struct DynamoDbLedger {
    client: Client,
    table: String,
}

impl DynamoDbLedger {
    /// A ledger in `table`.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into() }
    }

    /// Retries and timeouts that fit inside an invocation: the SDK's own first wait of a second is far too long.
    pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
        config
            .retry_config(
                RetryConfig::standard()
                    .with_max_attempts(4)
                    .with_initial_backoff(Duration::from_millis(25))
                    .with_max_backoff(Duration::from_millis(400)),
            )
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(Duration::from_secs(1))
                    .operation_timeout(Duration::from_secs(3))
                    .build(),
            )
    }

    fn failed<E>(&self, error: SdkError<E>) -> LedgerError
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let code = code(&error).to_owned();
        LedgerError { code, source: Box::new(InTable { table: self.table.clone(), source: Box::new(error) }) }
    }

    /// One cheap call that opens the connection, so that the first order does not wait for it.
    ///
    /// # Errors
    /// The table did not answer; [`LedgerError::code`] says whether there is none.
    pub async fn warm(&self) -> Result<(), LedgerError> {
        let call = self.client.get_item().table_name(&self.table).key("pk", item::text("order#"));
        call.send().await.map(drop).map_err(|error| self.failed(error))
    }
}

impl Ledger for DynamoDbLedger {
    async fn apply(&self, order_id: &OrderId, intent: &Intent) -> Result<Applied, LedgerError> {
        let Parts { update, condition, names, values } = Expression::from(intent).into_parts();
        let output = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", item::key(order_id))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_names((!names.is_empty()).then_some(names))
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match output {
            Ok(output) => written(intent, output.attributes()),
            Err(SdkError::ServiceError(error)) if error.err().is_conditional_check_failed_exception() => {
                let UpdateItemError::ConditionalCheckFailedException(failed) = error.into_err() else {
                    return Err(unexpected("the refusal carried no item"));
                };
                Ok(Applied::Refused(item::found(failed.item())))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn get(&self, order_id: &OrderId) -> Result<Found, LedgerError> {
        let output = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("pk", item::key(order_id))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| self.failed(error))?;
        Ok(item::found(output.item()))
    }
}

/// The record before comes with the answer, and the record after follows from it. Some emulators answer the
/// creation of an item with its key alone, where DynamoDB answers nothing.
fn written(intent: &Intent, old: Option<&item::Item>) -> Result<Applied, LedgerError> {
    let old = old.filter(|item| item.keys().any(|name| name != "pk"));
    let old = match item::found(old) {
        Found::Nothing => None,
        Found::Entry(entry) => Some(entry),
        Found::Unreadable => return Err(unexpected("a record of another version was written to")),
    };
    let new = intent
        .apply(old.as_deref())
        .ok_or_else(|| unexpected("the record before does not allow this write"))?;
    Ok(Applied::Written { old, new: Box::new(new) })
}

fn unexpected(what: &'static str) -> LedgerError {
    LedgerError { code: "UnexpectedRecord".to_owned(), source: what.into() }
}

/// Which table did not answer.
#[derive(Debug, thiserror::Error)]
#[error("table {table}")]
struct InTable {
    table: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

fn code<E: ProvideErrorMetadata>(error: &SdkError<E>) -> &str {
    match error {
        SdkError::TimeoutError(_) => "Timeout",
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "Timeout",
        SdkError::DispatchFailure(_) => "ConnectionFailed",
        SdkError::ResponseError(_) => "UnreadableAnswer",
        SdkError::ServiceError(error) => error.err().code().unwrap_or("UnknownError"),
        SdkError::ConstructionFailure(_) => "RequestNotBuilt",
        _ => "UnknownError",
    }
}
