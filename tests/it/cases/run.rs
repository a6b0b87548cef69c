//! Runs one case on a fresh stack.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        sample::freshened,
        stack::{DEAD_LETTER_QUEUES, Stack, StackConfig},
    },
    queue::{Queue, QueueError, Receive},
};
use serde_json::{Value, json};

use crate::support::s3::FakeS3;

use super::{
    case::{Case, Charge},
    check::{self, Observed},
    tool,
};

/// Everything that is not as the case expects.
pub(super) async fn problems(case: &Case) -> Vec<String> {
    let script = match script(case) {
        Ok(script) => script,
        Err(problem) => return vec![problem],
    };
    if let Some(ending) = case.expect.local_tool {
        return tool::problems(case, ending).await;
    }
    match deliver(case, script).await {
        Ok(observed) => check::problems(&case.expect, &observed),
        Err(error) => vec![error.to_string()],
    }
}

async fn deliver(case: &Case, script: Script) -> Result<Observed, Box<dyn std::error::Error + Send + Sync>> {
    let clock = Clock::system();
    let s3 = FakeS3::start(case.objects.clone().unwrap_or_default()).await;
    let mut settings = case.settings.clone();
    if case.objects.is_some() {
        settings.insert("AWS_ENDPOINT_URL_S3".to_owned(), s3.url());
    }
    let stack = Stack::start(StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: if case.stripe { Provider::Stripe } else { Provider::Http },
        script,
        data: None,
        log: None,
        settings,
        timeout: Duration::from_secs(30),
        clock: clock.clone(),
    })
    .await?;
    let now = clock.now().as_millis();
    for row in &case.records_before {
        stack.put_row(timed(row, now).as_object().ok_or("a row of records_before is not an object")?)?;
    }
    let mut log = stack.take_log()?;
    let mut last = None;
    for _ in 0..case.deliveries {
        let event = event(case, &clock)?;
        let invocation = stack.invoke(event.clone()).await?;
        log.extend(invocation.log.iter().cloned());
        last = Some((event, invocation));
    }
    let (event, invocation) = last.ok_or("a case needs at least one delivery")?;
    let charges = stack.charges().into_iter();
    let charges = charges
        .map(|it| Charge { order_id: it.order_id, amount_minor: it.amount_minor, currency: it.currency })
        .collect();
    Ok(Observed {
        event,
        invocation,
        log,
        charges,
        ledger: stack.ledger()?,
        s3_requests: s3.requests(),
        dead_letters: dead_letters(&stack).await?,
    })
}

/// Original messageId and reason of everything in the dead-letter queues.
async fn dead_letters(stack: &Stack) -> Result<BTreeMap<String, String>, QueueError> {
    let receive = Receive { max_messages: 10, wait: Duration::ZERO, visibility: None };
    let mut found = BTreeMap::new();
    for name in DEAD_LETTER_QUEUES {
        for message in stack.queues().receive(name, receive).await? {
            let attribute = |name: &str| {
                let attribute = message.attributes.iter().find(|attribute| attribute.name == name);
                attribute.map(|attribute| attribute.value.clone()).unwrap_or_default()
            };
            found.insert(attribute("original_message_id"), attribute("reason"));
        }
    }
    Ok(found)
}

/// The event's bytes, as if its messages had been sent just now.
fn event(case: &Case, clock: &Clock) -> Result<Vec<u8>, String> {
    let event = bytes(case)?;
    Ok(if case.keep_timestamps { event } else { freshened(&event, clock.now()) })
}

/// The event's bytes as the case has them. A case about files has both: the bytes are the file.
pub(super) fn bytes(case: &Case) -> Result<Vec<u8>, String> {
    match (&case.event, &case.event_base64) {
        (_, Some(text)) => base64(text).ok_or_else(|| "event_base64 is not base64".into()),
        (Some(event), None) => Ok(event.to_string().into_bytes()),
        (None, None) => Err("a case has event or event_base64".into()),
    }
}

/// The provider's script; `panic_on` resets the connection of that order's calls, which is as near as the
/// outside of the process comes to a client that panics.
fn script(case: &Case) -> Result<Script, String> {
    let Some(mut provider) = case.provider.clone() else { return Ok(Script::default()) };
    let panic_on = provider.as_object_mut().and_then(|provider| provider.remove("panic_on"));
    if let Some(order_id) = panic_on {
        // Some cases only say "see about"; their order is called so.
        let order_id = order_id.as_str().filter(|text| !text.contains(' ')).unwrap_or("o-panic").to_owned();
        provider["rules"] = json!([{ "order_id": order_id, "effect": "reset-before" }]);
    }
    serde_json::from_value(provider).map_err(|error| format!("provider: {error}"))
}

/// `"now"`, `"now-60"` and `"now+60"` as milliseconds.
fn timed(row: &Value, now: i64) -> Value {
    let instant = |text: &str| {
        let seconds = text.strip_prefix("now")?;
        let seconds: i64 = if seconds.is_empty() { 0 } else { seconds.parse().ok()? };
        Some(json!(now + seconds * 1000))
    };
    let mut row = row.clone();
    for value in row.as_object_mut().into_iter().flat_map(|row| row.values_mut()) {
        if let Some(instant) = value.as_str().and_then(instant) {
            *value = instant;
        }
    }
    row
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut length) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| !letter.is_ascii_whitespace() && *letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        length += 6;
        if length >= 8 {
            length -= 8;
            bytes.push((bits >> length & 0xff).try_into().ok()?);
        }
    }
    Some(bytes)
}
