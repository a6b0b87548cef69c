//! Objects from Amazon S3, and what each refusal of it means for the message.

use std::{sync::Arc, time::Duration};

use aws_sdk_s3::{
    Client,
    config::{retry::RetryConfig, timeout::TimeoutConfig},
    error::{ProvideErrorMetadata, SdkError},
    operation::get_object::{GetObjectError, GetObjectOutput},
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use super::{Fetch, LARGEST, PayloadError, PayloadFault};
use crate::envelope::S3Pointer;

/// Retries and timeouts that fit inside an invocation.
pub fn configure(config: aws_sdk_s3::config::Builder) -> aws_sdk_s3::config::Builder {
    config
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(50)))
        .timeout_config(
            TimeoutConfig::builder()
                .operation_attempt_timeout(Duration::from_secs(2))
                .operation_timeout(Duration::from_secs(5))
                .build(),
        )
}

/// Reads objects with this client. Nothing is ever written or deleted.
pub fn fetch(client: Client) -> Fetch {
    Arc::new(move |pointer| {
        let client = client.clone();
        Box::pin(async move { object(&client, pointer).await })
    })
}

async fn object(client: &Client, pointer: S3Pointer) -> Result<Vec<u8>, PayloadError> {
    let call = client.get_object().bucket(pointer.s3_bucket_name).key(pointer.s3_key);
    let answer = Box::pin(call.send()).await.map_err(failed)?;
    let length = answer.content_length().and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > LARGEST) {
        return Err(PayloadError::Unusable(PayloadFault::TooLarge));
    }
    body(answer).await
}

/// The whole body, or as much as shows that it is too large: the announced length may be absent.
async fn body(mut answer: GetObjectOutput) -> Result<Vec<u8>, PayloadError> {
    let mut read = Vec::new();
    while let Some(chunk) = answer.body.next().await {
        let chunk = chunk.map_err(|error| PayloadError::Unavailable(error.into()))?;
        if read.len().saturating_add(chunk.len()) > LARGEST {
            return Err(PayloadError::Unusable(PayloadFault::TooLarge));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}

/// Only "there is no such object" is final. A refusal may hide a missing object, but also a missing right, and a
/// bucket that does not exist is a wrong setting; both can be mended while the message waits.
fn failed(error: SdkError<GetObjectError, HttpResponse>) -> PayloadError {
    let not_found = error.raw_response().is_some_and(|response| response.status().as_u16() == 404);
    match error.code() {
        Some("NoSuchBucket") => PayloadError::Unavailable(error.into()),
        Some(_) | None if not_found => PayloadError::Unusable(PayloadFault::Missing),
        Some(_) | None => PayloadError::Unavailable(error.into()),
    }
}
