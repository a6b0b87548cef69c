//! From the queue to everything else: its dead-letter queue, its mapping, that one's function, role and table.

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::{CloudControl, Deployed, ReadError, SurveyError, kind::Kind, stack::Known};
use crate::doctor::{
    Finding, Piece, Resource, Severity,
    resource::{document, text, texts},
};

/// Alarms read at once: Cloud Control throttles, and the client's retries should not be needed.
const AT_ONCE: usize = 4;

/// A reading under way.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) account: &'a CloudControl,
    pub(super) deployed: Deployed,
}

impl Survey<'_> {
    pub(super) async fn run(&mut self, known: &Known) -> Result<(), SurveyError> {
        // Cloud Control does not read dashboards.
        self.deployed.unread.insert(Piece::Dashboards);
        let queue = self.queues(&known.queue_url).await?;
        let mapping = self.mapping(known.mapping.as_deref(), queue.as_ref()).await?;
        let mapped = mapping.as_ref().and_then(|it| it.properties.get("FunctionName")).map(text);
        let function = known.function.clone().or(mapped);
        let function = self.function(function.as_deref(), mapping.is_some()).await?;
        let told = function.as_ref().and_then(|it| it.at("/Environment/Variables/LEDGER_TABLE")).map(text);
        self.table(known.table.clone().or(told).as_deref()).await?;
        self.alarms(known.stack.as_deref()).await
    }

    /// The queue, its dead-letter queue and their policies.
    async fn queues(&mut self, url: &str) -> Result<Option<Resource>, SurveyError> {
        let queue = match self.read(Kind::Queue, Piece::Queue, url).await? {
            Found::Yes(queue) => queue,
            Found::No => return Err(SurveyError::NoQueue(url.to_owned())),
            Found::Unread => {
                self.deployed.unread.extend([Piece::DeadLetters, Piece::QueuePolicies]);
                return Ok(None);
            }
        };
        self.policy(url).await?;
        let redrive = document(queue.at("/RedrivePolicy"));
        if let Some(arn) = redrive.get("deadLetterTargetArn").map(text) {
            let dead_letters = sibling(url, &arn);
            match self.read(Kind::Queue, Piece::DeadLetters, &dead_letters).await? {
                Found::Yes(_) => self.policy(&dead_letters).await?,
                Found::No => self.missing(
                    Piece::DeadLetters,
                    format!("the queue names {arn} as its dead-letter queue, which does not exist"),
                    "create that queue, or name another in the RedrivePolicy",
                ),
                Found::Unread => {}
            }
        }
        Ok(Some(queue))
    }

    /// A queue without a policy has none to read; the rule about TLS says so.
    async fn policy(&mut self, url: &str) -> Result<(), SurveyError> {
        self.read(Kind::QueuePolicy, Piece::QueuePolicies, url).await.map(drop)
    }

    /// The mapping by its id, else the first that the queue feeds. All others of the queue are read with it.
    async fn mapping(
        &mut self,
        id: Option<&str>,
        queue: Option<&Resource>,
    ) -> Result<Option<Resource>, SurveyError> {
        let found = match (id, queue) {
            (Some(id), queue) => {
                let named = self.read(Kind::Mapping, Piece::Mapping, id).await?;
                if let (Found::Yes(_), Some(queue)) = (&named, queue) {
                    self.mappings_of(&queue.arn, Some(id)).await?;
                }
                named
            }
            (None, Some(queue)) => self.mappings_of(&queue.arn, None).await?,
            (None, None) => Found::Unread,
        };
        match found {
            Found::Yes(mapping) => return Ok(Some(mapping)),
            Found::No => self.missing(
                Piece::Mapping,
                "nothing hands the queue's orders to a function: they wait until they expire".to_owned(),
                "aws lambda create-event-source-mapping, or deploy template.yaml",
            ),
            Found::Unread => drop(self.deployed.unread.insert(Piece::Mapping)),
        }
        Ok(None)
    }

    /// Keeps every mapping of the queue, save one that was read before, and returns the first.
    async fn mappings_of(&mut self, queue_arn: &str, read: Option<&str>) -> Result<Found, SurveyError> {
        let ids = match self.account.list(Kind::Mapping.name()).await {
            Ok(ids) => ids,
            Err(error) => return self.unreadable(Kind::Mapping, Piece::Mapping, "of the queue", error),
        };
        let mut first = Found::No;
        for id in ids.into_iter().filter(|id| Some(id.as_str()) != read) {
            let properties = match self.account.get(Kind::Mapping.name(), &id).await {
                Ok(properties) => properties,
                Err(error) => return self.unreadable(Kind::Mapping, Piece::Mapping, &id, error),
            };
            let of_queue =
                properties.filter(|it| it.get("EventSourceArn").is_some_and(|arn| arn == queue_arn));
            if let Some(properties) = of_queue {
                let kept = self.keep(Kind::Mapping, &id, properties);
                if let Found::No = first {
                    first = kept;
                }
            }
        }
        Ok(first)
    }

    /// The function and its role.
    async fn function(&mut self, name: Option<&str>, mapped: bool) -> Result<Option<Resource>, SurveyError> {
        let Some(name) = name else {
            self.deployed.unread.extend([Piece::Function, Piece::Role]);
            return Ok(None);
        };
        match self.read(Kind::Function, Piece::Function, function_name(name)).await? {
            Found::Yes(function) => {
                let role = function.at("/Role").map(text).unwrap_or_default();
                self.role(role.rsplit('/').next().unwrap_or_default()).await?;
                return Ok(Some(function));
            }
            Found::No => {
                let what = if mapped { "the mapping's function" } else { "the function" };
                let breaks = format!("{what} {name} does not exist");
                self.missing(Piece::Function, breaks, "deploy template.yaml, or name another");
            }
            Found::Unread => {}
        }
        self.deployed.unread.insert(Piece::Role);
        Ok(None)
    }

    /// The role with its managed policies. Without one of them nothing can be said of what the role lacks.
    async fn role(&mut self, name: &str) -> Result<(), SurveyError> {
        match self.read(Kind::Role, Piece::Role, name).await? {
            Found::Yes(role) => {
                for arn in texts(role.at("/ManagedPolicyArns")) {
                    if let Found::Unread = self.read(Kind::ManagedPolicy, Piece::Role, &arn).await? {
                        self.deployed.resources.retain(|it| it.kind != Kind::Role.name());
                    }
                }
            }
            Found::No => self.missing(
                Piece::Role,
                format!("the function's role {name} does not exist: no invocation can begin"),
                "deploy template.yaml again",
            ),
            Found::Unread => {}
        }
        Ok(())
    }

    async fn table(&mut self, name: Option<&str>) -> Result<(), SurveyError> {
        let Some(name) = name else {
            self.deployed.unread.insert(Piece::Ledger);
            return Ok(());
        };
        if let Found::No = self.read(Kind::Table, Piece::Ledger, name).await? {
            self.missing(
                Piece::Ledger,
                format!("the table {name} does not exist: no order can be begun"),
                "restore the table (docs/operations.md, \"Ledger lost or restored\")",
            );
        }
        Ok(())
    }

    /// The stack's alarms: `CloudFormation` gives them names that begin with the stack's.
    async fn alarms(&mut self, stack: Option<&str>) -> Result<(), SurveyError> {
        let Some(stack) = stack else {
            self.deployed.unread.insert(Piece::Alarms);
            return Ok(());
        };
        let names = match self.account.list(Kind::Alarm.name()).await {
            Ok(names) => names,
            Err(error) => {
                return self.unreadable(Kind::Alarm, Piece::Alarms, "of the stack", error).map(drop);
            }
        };
        let prefix = format!("{stack}-");
        let account = self.account;
        let read = names.into_iter().filter(|name| name.starts_with(&prefix)).map(|name| async move {
            let read = account.get(Kind::Alarm.name(), &name).await;
            (name, read)
        });
        let all: Vec<_> = stream::iter(read).buffered(AT_ONCE).collect().await;
        for (name, read) in all {
            match read {
                Ok(Some(properties)) => drop(self.keep(Kind::Alarm, &name, properties)),
                Ok(None) => {}
                Err(error) => return self.unreadable(Kind::Alarm, Piece::Alarms, &name, error).map(drop),
            }
        }
        Ok(())
    }

    /// Reads a resource and keeps it.
    async fn read(&mut self, kind: Kind, piece: Piece, id: &str) -> Result<Found, SurveyError> {
        match self.account.get(kind.name(), id).await {
            Ok(Some(properties)) => Ok(self.keep(kind, id, properties)),
            Ok(None) => Ok(Found::No),
            Err(error) => self.unreadable(kind, piece, id, error),
        }
    }

    fn keep(&mut self, kind: Kind, id: &str, properties: Value) -> Found {
        let property = |name: &str| properties.get(name).map(text);
        let resource = Resource {
            kind: kind.name().to_owned(),
            reference: id.to_owned(),
            arn: property("Arn").unwrap_or_else(|| id.to_owned()),
            name: property("QueueName").unwrap_or_else(|| id.to_owned()),
            properties,
            retained: None,
        };
        self.deployed.resources.push(resource.clone());
        Found::Yes(resource)
    }

    /// One part that is refused is a finding; no answer at all ends the reading.
    fn unreadable(
        &mut self,
        kind: Kind,
        piece: Piece,
        id: &str,
        error: ReadError,
    ) -> Result<Found, SurveyError> {
        match error {
            ReadError::NoAnswer(_) => Err(SurveyError::NoAnswer(error)),
            ReadError::Refused { .. } => {
                self.deployed.unread.insert(piece);
                self.deployed.findings.push(Finding {
                    rule: "readable",
                    severity: Severity::Error,
                    breaks: format!("{} {id} could not be read and was not checked: {error}", piece.name()),
                    fix: format!(
                        "allow cloudformation:GetResource, cloudformation:ListResources, {}",
                        kind.permissions().join(", ")
                    ),
                });
                Ok(Found::Unread)
            }
        }
    }

    /// Rules about what is missing have nothing to say that this finding does not.
    fn missing(&mut self, piece: Piece, breaks: String, fix: &str) {
        self.deployed.unread.insert(piece);
        let fix = fix.to_owned();
        self.deployed.findings.push(Finding { rule: "exists", severity: Severity::Error, breaks, fix });
    }
}

/// What a reading found.
#[derive(Clone, Debug)]
enum Found {
    Yes(Resource),
    No,
    Unread,
}

/// The URL of another queue of the same Region, by its ARN.
fn sibling(url: &str, arn: &str) -> String {
    let mut parts = arn.rsplit(':');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let host = url.rsplitn(3, '/').nth(2).unwrap_or_default();
    format!("{host}/{account}/{name}")
}

/// The name in a function's ARN, with or without an alias, or the name itself.
fn function_name(function: &str) -> &str {
    match function.split_once(":function:") {
        Some((_, rest)) => rest.split(':').next().unwrap_or(rest),
        None => function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_beside_another_is_found_by_its_arn() {
        let url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders";
        let arn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq";
        assert_eq!(sibling(url, arn), "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq");
    }

    #[test]
    fn a_function_is_known_by_its_name_or_any_arn() {
        let arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge";
        assert_eq!(function_name(arn), "charge");
        assert_eq!(function_name(&format!("{arn}:live")), "charge");
        assert_eq!(function_name("charge"), "charge");
    }
}
