//! A behaviour case as it is written. A key that is not known here fails the case: turn it into a check.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::support::s3::Object;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "right")]
    _right: String,
    #[serde(default, rename = "sources")]
    _sources: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) event: Option<Value>,
    pub(super) event_base64: Option<String>,
    /// Settings of the function beside `GATEWAY=http`.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
    /// Whether the function speaks Stripe's contract instead of the `http` one.
    #[serde(default)]
    pub(super) stripe: bool,
    /// The provider's fault script, as JSON; `panic_on` names an order whose calls take the client down.
    #[serde(default)]
    pub(super) provider: Option<Value>,
    /// What lies in S3, by `bucket/key`; without it there is no S3.
    pub(super) objects: Option<BTreeMap<String, Object>>,
    /// Ledger rows before the first delivery. `"now"` and `"now+SECONDS"` become milliseconds.
    #[serde(default)]
    pub(super) records_before: Vec<Value>,
    /// How often the event is delivered; `expect` is about the last delivery, its charges about all.
    #[serde(default = "once")]
    pub(super) deliveries: u32,
    /// Leave the event's timestamps as they are.
    #[serde(default)]
    pub(super) keep_timestamps: bool,
    pub(super) expect: Expect,
}

/// An event that is `null` is an event too.
fn present<'de, D: Deserializer<'de>>(event: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(event).map(Some)
}

fn once() -> u32 {
    1
}

/// What must be so.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub(super) invocation: Option<Ending>,
    pub(super) failures: Option<Vec<String>>,
    #[serde(default)]
    pub(super) decisions: BTreeMap<String, String>,
    /// Per messageId: how the reason must begin.
    #[serde(default)]
    pub(super) reasons: BTreeMap<String, String>,
    pub(super) charges: Option<Vec<Charge>>,
    #[serde(default)]
    pub(super) charges_include: Vec<Charge>,
    #[serde(default)]
    pub(super) charges_exact_or_none: Vec<Charge>,
    pub(super) max_charges: Option<usize>,
    #[serde(default)]
    pub(super) never_charged: Vec<String>,
    #[serde(default)]
    pub(super) optional: Vec<Charge>,
    pub(super) visibility_range: Option<(u32, u32)>,
    /// Per messageId: the bounds of its visibility change, or null if there must be none.
    #[serde(default)]
    pub(super) visibility: BTreeMap<String, Option<(u32, u32)>>,
    pub(super) queue_url: Option<String>,
    #[serde(default)]
    pub(super) must_not_contain: Texts,
    #[serde(default)]
    pub(super) logs_must_not_contain: Texts,
    /// Rows the ledger must hold afterwards; only the attributes named are compared.
    #[serde(default)]
    pub(super) records_after: Vec<Value>,
    /// How often S3 is asked, by all deliveries together.
    pub(super) s3_requests: Option<usize>,
    /// What lies in the dead-letter queues: per original messageId how the reason begins.
    pub(super) dead_letters: Option<BTreeMap<String, String>>,
    /// What the tool for event files must do, where it may differ from the function.
    pub(super) local_tool: Option<Ending>,
    /// What Lambda itself may do with those bytes, in words.
    #[serde(rename = "lambda_path")]
    pub(super) _lambda_path: Option<String>,
}

/// How an invocation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    Ok,
    Error,
}

/// A charge at the provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Charge {
    pub(super) order_id: String,
    pub(super) amount_minor: i64,
    pub(super) currency: String,
}

/// One text or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Texts {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, several) = match self {
            Self::One(text) => (Some(text), &[][..]),
            Self::Several(texts) => (None, texts.as_slice()),
        };
        one.into_iter().chain(several).map(String::as_str)
    }
}
