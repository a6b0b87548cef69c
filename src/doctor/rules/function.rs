//! The function: its time budget and its settings against those of the queue.

use super::{Rule, Trouble, trouble};
use crate::{config::Config, doctor::Deployment};

/// Most seconds a function runs.
const LONGEST_TIMEOUT: u64 = 900;
/// What the step needs beside the provider's call: one call of the store (3 s) and the margins before the deadline
/// (2 s to begin, 1.5 s to stop), in milliseconds.
const BESIDE_THE_CHARGE: u64 = 6_500;
/// Longest delay SQS can give a message, in milliseconds.
const LONGEST_DELAY: u64 = 43_200_000;

pub(super) const RULES: &[Rule] = &[
    Rule::error("settings-accepted", settings_accepted),
    Rule::error("timeout-within-limit", timeout_within_limit),
    Rule::error("charge-fits-timeout", charge_fits_timeout),
    Rule::error("lease-fits", lease_fits),
    Rule::error("receive-count-known", receive_count_known),
    Rule::error("backoff-fits", backoff_fits),
    Rule::error("no-reserved-concurrency", no_reserved_concurrency),
    Rule::error("architecture-pinned", architecture_pinned),
    Rule::error("ledger-named", ledger_named),
    Rule::error("fifo-poison-leaves-at-once", fifo_poison_leaves_at_once),
    Rule::error("dead-letter-url", dead_letter_url),
    Rule::error("metrics-not-filtered", metrics_not_filtered),
    Rule::warning("secret-not-in-environment", secret_not_in_environment),
];

/// The function's own reader is asked, so that whatever stops its start is known before the deployment.
fn settings_accepted(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    let queues: Vec<&str> =
        [d.queue.known(), d.dead_letters.known()].into_iter().flatten().map(|it| it.url.as_str()).collect();
    let deployed = |name: &str| {
        let value = function.variable(name)?;
        // A template knows the URL of its own queue by the logical id only.
        let is_id = queues.contains(&value) && !value.contains("://");
        Some(if is_id { format!("https://{value}") } else { value.to_owned() })
    };
    let error = Config::from_env(&deployed).err()?;
    trouble(
        true,
        format!("the function does not start: {error}"),
        format!("change {} as docs/configuration.md says", error.variable),
    )
}

fn timeout_within_limit(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    trouble(
        function.timeout > LONGEST_TIMEOUT,
        format!("a timeout of {} s is above what Lambda gives everywhere", function.timeout),
        "sam deploy --parameter-overrides FunctionTimeout=30",
    )
}

fn charge_fits_timeout(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    let charge = function.millis("CHARGE_TIMEOUT", 10_000);
    let timeout = function.timeout.saturating_mul(1_000);
    trouble(
        charge.is_none_or(|charge| charge.saturating_add(BESIDE_THE_CHARGE) > timeout),
        format!("within {} s no charge can be begun, sent and recorded", function.timeout),
        "sam deploy --parameter-overrides ChargeTimeout=10s FunctionTimeout=30",
    )
}

fn lease_fits(d: &Deployment) -> Option<Trouble> {
    let (function, queue) = (d.function.known()?, d.queue.known()?);
    let lease = function.number("LEASE_SECONDS", 60);
    trouble(
        lease.is_none_or(|lease| lease <= function.timeout || lease > queue.visibility),
        "a lease ends while its owner still works, or blocks an order beyond its next delivery",
        format!("sam deploy --parameter-overrides LeaseSeconds={}", function.timeout.saturating_add(30)),
    )
}

/// The last allowed receive is given back at once, which needs the queue's own number.
fn receive_count_known(d: &Deployment) -> Option<Trouble> {
    let (function, queue) = (d.function.known()?, d.queue.known()?);
    let count = queue.max_receive_count?;
    trouble(
        function.variable("MAX_RECEIVE_COUNT") != Some(count.to_string().as_str()),
        format!("the function does not know that receive {count} is the last, so dead letters come late"),
        format!("set MAX_RECEIVE_COUNT={count}"),
    )
}

fn backoff_fits(d: &Deployment) -> Option<Trouble> {
    let (function, queue) = (d.function.known()?, d.queue.known()?);
    let longest = LONGEST_DELAY.min(queue.retention.saturating_mul(1_000));
    trouble(
        function.millis("BACKOFF_CAP", 900_000).is_none_or(|cap| cap >= longest),
        "an order may be hidden until SQS refuses the delay or drops the order",
        "sam deploy --parameter-overrides BackoffCap=900s",
    )
}

fn no_reserved_concurrency(d: &Deployment) -> Option<Trouble> {
    let (function, mapping) = (d.function.known()?, d.mapping.known()?);
    let reserved = function.reserved_concurrency?;
    trouble(
        mapping.scaling.maximum_concurrency.is_none_or(|most| reserved < most.max(5)),
        format!("{reserved} reserved invocations throttle the pollers, and every throttle burns a receive"),
        "remove ReservedConcurrentExecutions and bound the mapping by MaximumConcurrency",
    )
}

fn architecture_pinned(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    let pinned = matches!(function.architectures.as_slice(), [one] if one == "arm64" || one == "x86_64");
    trouble(
        !pinned,
        "SAM takes x86_64 where nothing is said, and an arm64 binary does not start there",
        "set Architectures to the one the binary is built for",
    )
}

fn ledger_named(d: &Deployment) -> Option<Trouble> {
    let (function, ledger) = (d.function.known()?, d.ledger.known()?);
    trouble(
        function.variable("LEDGER_TABLE") != Some(ledger.name.as_str()),
        "the function keeps its records in another table than the one checked here",
        format!("set LEDGER_TABLE={}", ledger.name),
    )
}

/// While the head of a group waits for the DLQ, its followers burn receives and can end there untried.
fn fifo_poison_leaves_at_once(d: &Deployment) -> Option<Trouble> {
    let (function, queue) = (d.function.known()?, d.queue.known()?);
    trouble(
        queue.fifo && function.variable("POISON_MODE") != Some("dlq"),
        "a poison order blocks its group until it is dead-lettered, and can take its followers along",
        "set POISON_MODE=dlq and DLQ_URL",
    )
}

fn dead_letter_url(d: &Deployment) -> Option<Trouble> {
    let (function, dead_letters) = (d.function.known()?, d.dead_letters.known()?);
    trouble(
        function.variable("POISON_MODE") == Some("dlq")
            && function.variable("DLQ_URL") != Some(dead_letters.url.as_str()),
        "poison orders are sent to another queue than the dead-letter queue, or to none",
        format!("set DLQ_URL={}", dead_letters.url),
    )
}

fn metrics_not_filtered(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    let level = function.application_log_level.as_deref()?;
    trouble(
        !matches!(level, "TRACE" | "DEBUG" | "INFO"),
        format!("metric lines count as INFO: at {level} Lambda drops them and every alarm falls silent"),
        "set ApplicationLogLevel: INFO and filter by LOG_LEVEL",
    )
}

fn secret_not_in_environment(d: &Deployment) -> Option<Trouble> {
    let function = d.function.known()?;
    trouble(
        function.variable("GATEWAY_SECRET").is_some(),
        "whoever may read the function's configuration can read the provider's key",
        "put the key into Secrets Manager and set GATEWAY_SECRET_ARN",
    )
}
