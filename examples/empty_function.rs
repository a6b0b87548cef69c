//! A function that does nothing: what `make bench` compares the cold start with.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(|_event: LambdaEvent<Value>| async {
        Ok::<Value, Error>(json!({"batchItemFailures": []}))
    }))
    .await
}
