//! AWS Cloud Control: one call reads any resource, in the words of `CloudFormation`.

use aws_sdk_cloudcontrol::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_resource::GetResourceError,
};
use serde_json::Value;

use crate::telemetry::ErrorChain;

/// Why a resource could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// AWS answered, and refused: whoever asks may not read it, say.
    #[error("{code}: {message}")]
    Refused {
        /// AWS's code.
        code: String,
        /// AWS's words.
        message: String,
    },
    /// No usable answer: no credentials, no connection, too late.
    #[error("Cloud Control cannot be asked: {0}")]
    NoAnswer(String),
}

/// Reads what is deployed.
#[derive(Clone, Debug)]
pub struct CloudControl(Client);

impl CloudControl {
    /// Over this client, whose timeouts bound each call.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The resource's properties; `None` if there is no such resource.
    pub(super) async fn get(&self, kind: &str, identifier: &str) -> Result<Option<Value>, ReadError> {
        let call = self.0.get_resource().type_name(kind).identifier(identifier);
        let answer = match Box::pin(call.send()).await {
            Ok(answer) => answer,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetResourceError::is_resource_not_found_exception) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(refused(&error)),
        };
        let properties = answer.resource_description.and_then(|description| description.properties);
        match serde_json::from_str(&properties.unwrap_or_default()) {
            Ok(properties) => Ok(Some(properties)),
            Err(_) => Err(ReadError::Refused {
                code: "NotJson".to_owned(),
                message: format!("the properties of {identifier} are not JSON"),
            }),
        }
    }

    /// The identifiers of all resources of a type.
    pub(super) async fn list(&self, kind: &str) -> Result<Vec<String>, ReadError> {
        let mut identifiers = Vec::new();
        let mut token = None;
        loop {
            let call = self.0.list_resources().type_name(kind).max_results(100).set_next_token(token);
            let answer = Box::pin(call.send()).await.map_err(|error| refused(&error))?;
            let descriptions = answer.resource_descriptions.unwrap_or_default();
            identifiers.extend(descriptions.into_iter().filter_map(|description| description.identifier));
            token = answer.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(identifiers);
            }
        }
    }
}

fn refused<E>(error: &SdkError<E>) -> ReadError
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match error.as_service_error() {
        Some(refusal) => ReadError::Refused {
            code: refusal.code().unwrap_or("UnknownError").to_owned(),
            message: refusal.message().unwrap_or("no message").to_owned(),
        },
        None => ReadError::NoAnswer(ErrorChain(error).to_string()),
    }
}
