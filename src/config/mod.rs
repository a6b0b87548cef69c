//! The settings, read from the environment once, and only here. What is invalid or contradictory stops the start
//! with the variable's name; it is never replaced by something else.

use std::time::Duration;

use http::Uri;
use secrecy::zeroize::Zeroizing;
use tracing::level_filters::LevelFilter;

use crate::{
    backoff::Backoff,
    charge::{LookUp, Rules},
    gateway::secret::Secret,
    money::Currency,
    order::OrderRules,
};

#[cfg(feature = "otel")]
mod collector;
mod reader;

pub use self::reader::{Environment, ProcessEnvironment};

use self::reader::Reader;

/// Time that must be left beside one call to the provider for a record to be begun: for the ledger's writes.
const BEGIN_MARGIN: Duration = Duration::from_secs(2);

/// Valid settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// `LEDGER_TABLE`
    pub ledger_table: String,
    /// `GATEWAY` with `GATEWAY_URL`
    pub gateway: GatewayKind,
    /// `GATEWAY_ACCOUNT`
    pub account: String,
    /// `GATEWAY_SECRET` or `GATEWAY_SECRET_ARN`
    pub secret: SecretSource,
    /// `GATEWAY_KEY_WINDOW`
    pub key_window: Duration,
    /// `GATEWAY_LOOKUP` with `RECHARGE_AFTER_LOOKUP`
    pub look_up: LookUp,
    /// `DEFAULT_CURRENCY`, `MAX_AMOUNT_MINOR`
    pub order: OrderRules,
    /// `CONCURRENCY`
    pub concurrency: usize,
    /// `CHARGE_TIMEOUT`, `LEASE_SECONDS`, `RECORD_DAYS`, `LEDGER_EPOCH`, `DECLINED`
    pub rules: Rules,
    /// `BACKOFF_BASE`, `BACKOFF_CAP`
    pub backoff: Backoff,
    /// `MAX_RECEIVE_COUNT`
    pub max_receive_count: Option<u32>,
    /// `DLQ_URL` if `POISON_MODE=dlq`
    pub move_poison_to: Option<String>,
    /// `PAYLOAD_BUCKETS`
    pub payload_buckets: Vec<String>,
    /// `QUEUE_URL`
    pub queue_url: Option<String>,
    /// Where spans are sent, path included: `OTEL_EXPORTER_OTLP_ENDPOINT` and its kin.
    #[cfg(feature = "otel")]
    pub collector: Option<Uri>,
    /// `LOG_LEVEL`
    pub log_level: LevelFilter,
    /// `SERVICE_NAME`
    pub service: String,
    /// `AWS_LAMBDA_FUNCTION_TIMEOUT`, which some emulators set; taken where an invocation has no deadline.
    pub default_timeout: Duration,
    /// Whether the ledger's connection is opened while the process starts, so that the first order need not wait for
    /// it. Not where `AWS_LAMBDA_INITIALIZATION_TYPE` is `on-demand`: an order waits already, and gains nothing.
    pub connects_early: bool,
}

/// Which provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayKind {
    /// Stripe's PaymentIntents, two-phase.
    Stripe {
        /// The API, without a path.
        url: Uri,
    },
    /// The one-shot contract of `gateway::http`.
    Http {
        /// Where charges are posted.
        url: Uri,
    },
}

/// Where the provider's credential comes from.
#[derive(Clone, Debug)]
pub enum SecretSource {
    /// There is none.
    None,
    /// The environment itself.
    Given(Secret),
    /// A secret in Secrets Manager, by ARN or name.
    SecretsManager(String),
}

/// A setting is missing, invalid or contradicts another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct ConfigError {
    /// The variable.
    pub variable: &'static str,
    /// What is wrong and what is allowed; never the value.
    pub problem: String,
}

fn wrong<T>(variable: &'static str, problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { variable, problem: problem.into() })
}

/// One setting, as the documentation lists it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// The default as it would be written, or a word such as `required` or `none`.
    pub default: &'static str,
}

/// Every variable that is read. `docs/configuration.md` has the same list, and a test keeps both equal.
pub const SETTINGS: &[Setting] = &[
    Setting { name: "LEDGER_TABLE", default: "required" },
    Setting { name: "GATEWAY", default: "required" },
    Setting { name: "GATEWAY_URL", default: "https://api.stripe.com" },
    Setting { name: "GATEWAY_SECRET_ARN", default: "none" },
    Setting { name: "GATEWAY_SECRET", default: "none" },
    Setting { name: "GATEWAY_ACCOUNT", default: "default" },
    Setting { name: "GATEWAY_KEY_WINDOW", default: "20h" },
    Setting { name: "GATEWAY_LOOKUP", default: "off" },
    Setting { name: "RECHARGE_AFTER_LOOKUP", default: "off" },
    Setting { name: "DEFAULT_CURRENCY", default: "none" },
    Setting { name: "MAX_AMOUNT_MINOR", default: "99999999" },
    Setting { name: "CONCURRENCY", default: "10" },
    Setting { name: "CHARGE_TIMEOUT", default: "10s" },
    Setting { name: "LEASE_SECONDS", default: "60" },
    Setting { name: "BACKOFF_BASE", default: "5s" },
    Setting { name: "BACKOFF_CAP", default: "900s" },
    Setting { name: "MAX_RECEIVE_COUNT", default: "none" },
    Setting { name: "POISON_MODE", default: "redrive" },
    Setting { name: "DLQ_URL", default: "none" },
    Setting { name: "DECLINED", default: "poison" },
    Setting { name: "PAYLOAD_BUCKETS", default: "none" },
    Setting { name: "QUEUE_URL", default: "from the ARN" },
    Setting { name: "RECORD_DAYS", default: "180" },
    Setting { name: "LEDGER_EPOCH", default: "none" },
    Setting { name: "LOG_LEVEL", default: "info" },
    Setting { name: "SERVICE_NAME", default: "charge-once" },
];

impl Config {
    /// Reads and checks all settings.
    ///
    /// # Errors
    /// The first variable that is missing, invalid or contradicts another.
    pub fn from_env(environment: &impl Environment) -> Result<Self, ConfigError> {
        let env = Reader(environment);
        let ledger_table = env.table("LEDGER_TABLE")?;
        let gateway = gateway(&env)?;
        let look_up = look_up(&env, &gateway)?;
        let rules = rules(&env)?;
        let seconds = Duration::from_secs;
        let backoff = Backoff {
            base: env.duration("BACKOFF_BASE", seconds(5), Duration::from_millis(1), seconds(43_200))?,
            cap: env.duration("BACKOFF_CAP", seconds(900), Duration::from_millis(1), seconds(43_200))?,
        };
        if backoff.base > backoff.cap {
            return wrong("BACKOFF_BASE", "must not be above BACKOFF_CAP");
        }
        let max_receive_count = env.integer("MAX_RECEIVE_COUNT", 0, 1, 1000)?;
        Ok(Self {
            ledger_table,
            account: account(&env)?,
            secret: secret(&env)?,
            key_window: env.duration(
                "GATEWAY_KEY_WINDOW",
                seconds(72_000),
                seconds(60),
                seconds(2_592_000),
            )?,
            look_up,
            order: order_rules(&env)?,
            concurrency: usize::try_from(env.integer("CONCURRENCY", 10, 1, 1000)?).unwrap_or(1),
            rules,
            backoff,
            max_receive_count: u32::try_from(max_receive_count).ok().filter(|max| *max > 0),
            move_poison_to: move_poison_to(&env)?,
            payload_buckets: payload_buckets(&env, cfg!(feature = "s3"))?,
            queue_url: env
                .text("QUEUE_URL")
                .map(|url| env.https_url("QUEUE_URL", &url).map(|_| url))
                .transpose()?,
            #[cfg(feature = "otel")]
            collector: collector::read(&env)?,
            log_level: log_level(&env)?,
            service: env.text("SERVICE_NAME").unwrap_or_else(|| "charge-once".to_owned()),
            default_timeout: seconds(env.integer("AWS_LAMBDA_FUNCTION_TIMEOUT", 30, 1, 5400)?),
            connects_early: env.text("AWS_LAMBDA_INITIALIZATION_TYPE").is_none_or(|kind| kind != "on-demand"),
            gateway,
        })
    }

    /// A record is begun only if this much time is left.
    pub fn time_to_begin(&self) -> Duration {
        self.rules.call_timeout.saturating_add(BEGIN_MARGIN)
    }
}

fn gateway<E: Environment>(env: &Reader<'_, E>) -> Result<GatewayKind, ConfigError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Stripe,
        Http,
    }
    let hint = "say `stripe` or `http`";
    env.required("GATEWAY", hint)?;
    let url = env.text("GATEWAY_URL");
    Ok(match env.choice("GATEWAY", &[("stripe", Kind::Stripe), ("http", Kind::Http)], Kind::Http)? {
        Kind::Stripe => {
            let url = url.unwrap_or_else(|| "https://api.stripe.com".to_owned());
            GatewayKind::Stripe { url: env.base_url("GATEWAY_URL", &url)? }
        }
        Kind::Http => match url {
            Some(url) => GatewayKind::Http { url: env.https_url("GATEWAY_URL", &url)? },
            None => return wrong("GATEWAY_URL", "is not set: GATEWAY=http needs the URL that takes charges"),
        },
    })
}

fn look_up<E: Environment>(env: &Reader<'_, E>, gateway: &GatewayKind) -> Result<LookUp, ConfigError> {
    let (on, charge) = (env.switch("GATEWAY_LOOKUP")?, env.switch("RECHARGE_AFTER_LOOKUP")?);
    match (gateway, on, charge) {
        (_, false, true) => wrong("RECHARGE_AFTER_LOOKUP", "needs GATEWAY_LOOKUP=on"),
        (GatewayKind::Stripe { .. }, true, _) => {
            wrong("GATEWAY_LOOKUP", "is for GATEWAY=http only: Stripe's handles are always looked up")
        }
        (_, false, false) => Ok(LookUp::Off),
        (GatewayKind::Http { .. }, true, false) => Ok(LookUp::On),
        (GatewayKind::Http { .. }, true, true) => Ok(LookUp::ThenCharge),
    }
}

fn account<E: Environment>(env: &Reader<'_, E>) -> Result<String, ConfigError> {
    let account = env.text("GATEWAY_ACCOUNT").unwrap_or_else(|| "default".to_owned());
    let plain = account.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if plain && account.len() <= 64 {
        Ok(account)
    } else {
        wrong("GATEWAY_ACCOUNT", "must be 1 to 64 of A-Z a-z 0-9 . _ -")
    }
}

fn secret<E: Environment>(env: &Reader<'_, E>) -> Result<SecretSource, ConfigError> {
    match (env.text("GATEWAY_SECRET"), env.text("GATEWAY_SECRET_ARN")) {
        (Some(_), Some(_)) => wrong("GATEWAY_SECRET", "and GATEWAY_SECRET_ARN are both set: set one"),
        (Some(secret), None) => match Secret::new(&Zeroizing::new(secret)) {
            Ok(secret) => Ok(SecretSource::Given(secret)),
            Err(error) => wrong("GATEWAY_SECRET", format!("cannot be used: {error}")),
        },
        (None, Some(id)) => Ok(SecretSource::SecretsManager(id)),
        (None, None) => Ok(SecretSource::None),
    }
}

fn order_rules<E: Environment>(env: &Reader<'_, E>) -> Result<OrderRules, ConfigError> {
    let default_currency = match env.text("DEFAULT_CURRENCY") {
        None => None,
        Some(code) => match Currency::parse(&code) {
            Some(currency) => Some(currency),
            None => {
                return wrong(
                    "DEFAULT_CURRENCY",
                    "must be an ISO 4217 code that has a minor unit, such as EUR",
                );
            }
        },
    };
    let max = env.integer("MAX_AMOUNT_MINOR", 99_999_999, 1, 999_999_999_999)?;
    Ok(OrderRules { default_currency, max_amount_minor: i64::try_from(max).unwrap_or(i64::MAX) })
}

fn rules<E: Environment>(env: &Reader<'_, E>) -> Result<Rules, ConfigError> {
    let seconds = Duration::from_secs;
    let call_timeout =
        env.duration("CHARGE_TIMEOUT", seconds(10), Duration::from_millis(100), seconds(300))?;
    let lease = seconds(env.integer("LEASE_SECONDS", 60, 5, 5400)?);
    if lease < call_timeout {
        return wrong(
            "LEASE_SECONDS",
            "must not be shorter than CHARGE_TIMEOUT: the lease would end during a charge",
        );
    }
    let retention = seconds(env.integer("RECORD_DAYS", 180, 19, 3650)?.saturating_mul(86_400));
    Ok(Rules {
        lease,
        renews_lease: false,
        call_timeout,
        retention,
        epoch: env.moment("LEDGER_EPOCH")?,
        ack_declined: env.choice("DECLINED", &[("poison", false), ("ack", true)], false)?,
    })
}

fn move_poison_to<E: Environment>(env: &Reader<'_, E>) -> Result<Option<String>, ConfigError> {
    let dlq = env.text("DLQ_URL").map(|url| env.https_url("DLQ_URL", &url).map(|_| url)).transpose()?;
    let moves = env.choice("POISON_MODE", &[("redrive", false), ("dlq", true)], false)?;
    match (moves, dlq) {
        (true, None) => wrong("DLQ_URL", "is not set: POISON_MODE=dlq needs the dead-letter queue's URL"),
        (true, Some(dlq)) if env.text("QUEUE_URL").as_ref() == Some(&dlq) => {
            wrong("DLQ_URL", "is the queue itself (QUEUE_URL): poison would come back for ever")
        }
        (true, dlq) => Ok(dlq),
        (false, _) => Ok(None),
    }
}

fn payload_buckets<E: Environment>(
    env: &Reader<'_, E>,
    can_read_s3: bool,
) -> Result<Vec<String>, ConfigError> {
    let text = env.text("PAYLOAD_BUCKETS").unwrap_or_default();
    let buckets: Vec<String> =
        text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    if !buckets.is_empty() && !can_read_s3 {
        return wrong(
            "PAYLOAD_BUCKETS",
            "is set, but this build cannot read S3: build it with the feature `s3`",
        );
    }
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let is_bucket = |name: &String| (3..=63).contains(&name.len()) && name.bytes().all(letter);
    if !buckets.iter().all(is_bucket) {
        return wrong(
            "PAYLOAD_BUCKETS",
            "must be names of buckets, 3 to 63 of a-z 0-9 . -, with commas between",
        );
    }
    Ok(buckets)
}

fn log_level<E: Environment>(env: &Reader<'_, E>) -> Result<LevelFilter, ConfigError> {
    let text = env.text("LOG_LEVEL").map(|text| text.to_ascii_lowercase());
    let levels = [
        ("error", LevelFilter::ERROR),
        ("warn", LevelFilter::WARN),
        ("info", LevelFilter::INFO),
        ("debug", LevelFilter::DEBUG),
        ("trace", LevelFilter::TRACE),
    ];
    match text {
        None => Ok(LevelFilter::INFO),
        Some(text) => match levels.iter().find(|(word, _)| *word == text) {
            Some((_, level)) => Ok(*level),
            None => wrong("LOG_LEVEL", "must be one of error, warn, info, debug, trace"),
        },
    }
}

#[cfg(test)]
mod tests;
