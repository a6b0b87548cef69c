//! A stack's outputs name what it consists of.

use serde_json::Value;

use super::{CloudControl, Names, ReadError, SurveyError, kind::Kind};
use crate::doctor::resource::{items, text};

/// The names, completed from the stack's outputs, and the stack by its name.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) queue_url: String,
    pub(super) function: Option<String>,
    pub(super) table: Option<String>,
    pub(super) mapping: Option<String>,
    /// The stack's name, with which the names of its alarms begin.
    pub(super) stack: Option<String>,
}

pub(super) async fn complete(account: &CloudControl, names: Names) -> Result<Known, SurveyError> {
    let outputs = match &names.stack {
        Some(stack) => outputs(account, stack).await?,
        None => Value::Null,
    };
    let output = |key: &str| {
        let it =
            items(outputs.get("Outputs")).iter().find(|it| it.get("OutputKey").is_some_and(|k| k == key))?;
        it.get("OutputValue").map(text)
    };
    let stack = names.stack;
    let queue_url = names.queue_url.or_else(|| output("QueueUrl"));
    Ok(Known {
        queue_url: queue_url.ok_or_else(|| SurveyError::NoQueueNamed(stack.clone().unwrap_or_default()))?,
        function: names.function.or_else(|| output("FunctionArn")),
        table: names.table.or_else(|| output("LedgerTableName")),
        mapping: output("EventSourceMappingId"),
        stack: stack.map(|stack| name_of(&stack).to_owned()),
    })
}

/// The stack's properties. Cloud Control knows it by its ARN, which holds the name.
async fn outputs(account: &CloudControl, stack: &str) -> Result<Value, SurveyError> {
    let failed = |error| match error {
        ReadError::NoAnswer(_) => SurveyError::NoAnswer(error),
        ReadError::Refused { .. } => SurveyError::Stack {
            stack: stack.to_owned(),
            permissions: Kind::Stack.permissions().join(", "),
            source: error,
        },
    };
    let missing = || SurveyError::NoStack(stack.to_owned());
    let arn = if stack.starts_with("arn:") {
        stack.to_owned()
    } else {
        let all = account.list(Kind::Stack.name()).await.map_err(failed)?;
        all.into_iter().find(|arn| name_of(arn) == stack).ok_or_else(missing)?
    };
    account.get(Kind::Stack.name(), &arn).await.map_err(failed)?.ok_or_else(missing)
}

/// The name in `arn:aws:cloudformation:REGION:ACCOUNT:stack/NAME/ID`, or the name itself.
fn name_of(stack: &str) -> &str {
    match stack.split_once(":stack/") {
        Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
        None => stack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_known_by_its_name_or_arn() {
        assert_eq!(
            name_of("arn:aws:cloudformation:eu-central-1:111122223333:stack/charge-once/1a2b"),
            "charge-once"
        );
        assert_eq!(name_of("charge-once"), "charge-once");
    }
}
