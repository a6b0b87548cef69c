//! Which of the resources the orders pass through. A template may hold other functions, queues and tables: the way
//! leads from a mapping whose source is a queue to its function, and from there to the table that this is told.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Piece;
use crate::doctor::{Part, Resource, resource::text};

/// A table in several Regions.
pub(super) const GLOBAL_TABLE: &str = "AWS::DynamoDB::GlobalTable";

pub(super) struct Inventory<'a> {
    pub(super) resources: &'a [Resource],
    pub(super) unread: &'a BTreeSet<Piece>,
}

/// A mapping: a resource of its own, or an event of a function (SAM).
#[derive(Clone, Debug)]
pub(super) struct Source<'a> {
    /// Its id; of an event, the one that SAM gives it.
    pub(super) name: String,
    pub(super) properties: &'a Value,
    /// The function that has it as its event.
    owner: Option<&'a Resource>,
}

impl Source<'_> {
    /// The ARN of what is read.
    fn arn(&self) -> Option<String> {
        self.properties.get("Queue").or_else(|| self.properties.get("EventSourceArn")).map(text)
    }
}

impl<'a> Inventory<'a> {
    pub(super) fn of_type(&self, kind: &str) -> impl Iterator<Item = &'a Resource> {
        self.resources.iter().filter(move |resource| resource.kind == kind)
    }

    pub(super) fn queue(&self, is_it: impl Fn(&Resource) -> bool) -> Option<&'a Resource> {
        self.of_type("AWS::SQS::Queue").find(|queue| is_it(queue))
    }

    pub(super) fn part<T>(&self, part: Option<T>, piece: Piece) -> Part<T> {
        Part::of(part, self.unread.contains(&piece))
    }

    /// The mapping of the orders: of those that read a queue the one whose function keeps a ledger, else the first.
    pub(super) fn source(&self) -> Option<Source<'a>> {
        let all = self.sources();
        let reads_queue =
            |source: &&Source<'a>| source.arn().is_some_and(|arn| self.queue(|it| it.arn == arn).is_some());
        let keeps_ledger =
            |source: &&Source<'a>| self.mapped(source).is_some_and(|it| ledger_of(it).is_some());
        let of_queues = || all.iter().filter(reads_queue);
        of_queues().find(keeps_ledger).or_else(|| of_queues().next()).or_else(|| all.first()).cloned()
    }

    /// The other mappings of the same queue.
    pub(super) fn beside(&self, source: &Source<'a>) -> Vec<Source<'a>> {
        let is_other = |it: &Source<'a>| it.name != source.name && it.arn() == source.arn();
        self.sources().into_iter().filter(is_other).collect()
    }

    fn sources(&self) -> Vec<Source<'a>> {
        let mappings = self.of_type("AWS::Lambda::EventSourceMapping").map(|mapping| Source {
            name: mapping.name.clone(),
            properties: &mapping.properties,
            owner: None,
        });
        let events = self.functions().flat_map(|function| {
            let events = function.at("/Events").and_then(Value::as_object).into_iter().flatten();
            let of_queues = events.filter(|(_, event)| event.get("Type").is_some_and(|kind| kind == "SQS"));
            of_queues.filter_map(move |(name, event)| {
                let name = format!("{}{name}", function.name);
                Some(Source { name, properties: event.get("Properties")?, owner: Some(function) })
            })
        });
        mappings.chain(events).collect()
    }

    /// The mapping's function, else the one that keeps a ledger, else the first.
    pub(super) fn function(&self, source: Option<&Source<'a>>) -> Option<&'a Resource> {
        let mapped = source.and_then(|source| self.mapped(source));
        let keeps_ledger = || self.functions().find(|function| ledger_of(function).is_some());
        mapped.or_else(keeps_ledger).or_else(|| self.functions().next())
    }

    fn functions(&self) -> impl Iterator<Item = &'a Resource> {
        self.of_type("AWS::Serverless::Function").chain(self.of_type("AWS::Lambda::Function"))
    }

    fn mapped(&self, source: &Source<'a>) -> Option<&'a Resource> {
        if source.owner.is_some() {
            return source.owner;
        }
        let name = text(source.properties.get("FunctionName")?);
        let named = |name: &str| self.functions().find(|function| is_named(function, name));
        named(&name).or_else(|| named(&self.behind_alias(&name)?))
    }

    /// The name of the function that an alias or a version stands for.
    fn behind_alias(&self, name: &str) -> Option<String> {
        let mut aliases = self.of_type("AWS::Lambda::Alias").chain(self.of_type("AWS::Lambda::Version"));
        aliases.find(|alias| alias.reference == name)?.at("/FunctionName").map(text)
    }

    /// The orders queue: the mapping's, else the one that the function is told, else the first.
    pub(super) fn orders_queue(
        &self,
        source: Option<&Source<'a>>,
        function: Option<&Resource>,
    ) -> Option<&'a Resource> {
        if let Some(arn) = source.and_then(Source::arn) {
            return self.queue(|queue| queue.arn == arn);
        }
        let told = function.and_then(|it| it.at("/Environment/Variables/QUEUE_URL")).map(text);
        self.queue(|queue| told.as_ref() == Some(&queue.reference)).or_else(|| self.queue(|_| true))
    }

    /// The table that the function is told, else the first.
    pub(super) fn table(&self, function: Option<&Resource>) -> Option<&'a Resource> {
        let tables = || self.of_type("AWS::DynamoDB::Table").chain(self.of_type(GLOBAL_TABLE));
        let told = function.and_then(ledger_of);
        let is_told = |table: &&Resource| {
            let own_name = table.at("/TableName").map(text);
            told.as_ref().is_some_and(|told| *told == table.reference || Some(told) == own_name.as_ref())
        };
        tables().find(is_told).or_else(|| tables().next())
    }
}

fn ledger_of(function: &Resource) -> Option<String> {
    function.at("/Environment/Variables/LEDGER_TABLE").map(text)
}

/// Whether this is the function's name or ARN, or that of an alias of it: one that is named after the ARN, or SAM's.
fn is_named(function: &Resource, name: &str) -> bool {
    let follows = |own: &str, sign: &str| name.strip_prefix(own).is_some_and(|rest| rest.starts_with(sign));
    name == function.reference
        || name == function.arn
        || function.at("/FunctionName").is_some_and(|own| text(own) == name)
        || follows(&function.arn, ":")
        || follows(&function.reference, ".Alias")
        || follows(&function.reference, "Alias")
}
