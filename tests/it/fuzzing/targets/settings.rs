//! The settings: whatever is in the environment, either they are consistent or one of them is refused by name, and
//! the provider's key shows nowhere.

use std::{collections::BTreeMap, net::IpAddr};

use charge_once::config::{Config, GatewayKind, SETTINGS, SecretSource};
use http::Uri;

use super::assert_loggable;

/// Stands in every key, and nowhere else.
const MARK: &str = "hush-7Qx";
/// So that an input need not hold all of them to get far.
const LEAST: [(&str, &str); 3] =
    [("LEDGER_TABLE", "t"), ("GATEWAY", "http"), ("GATEWAY_URL", "https://pay.example/charges")];

/// The input is `NAME=VALUE` lines; one that holds the mark itself proves nothing.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.contains(MARK) {
        return;
    }
    let mut variables: BTreeMap<&str, String> = LEAST.map(|(name, value)| (name, value.to_owned())).into();
    variables.extend(text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k, v.to_owned())));
    if let Some(key) = variables.get_mut("GATEWAY_SECRET").filter(|key| !key.trim().is_empty()) {
        key.push_str(MARK);
    }
    let get = |name: &str| variables.get(name).cloned();
    match Config::from_env(&get) {
        Ok(config) => assert_consistent(&config),
        Err(error) => {
            let known = SETTINGS.iter().any(|setting| setting.name == error.variable);
            assert!(known || error.variable == "AWS_LAMBDA_FUNCTION_TIMEOUT", "{error}");
            assert_loggable(&error.to_string());
            assert!(!error.to_string().contains(MARK));
        }
    }
}

fn assert_consistent(config: &Config) {
    assert!(!format!("{config:?}").contains(MARK), "a key in a debug print");
    assert!(!config.ledger_table.is_empty() && (1..=1000).contains(&config.concurrency));
    assert!(config.backoff.base <= config.backoff.cap);
    assert!(config.rules.lease >= config.rules.call_timeout);
    assert!(config.time_to_begin() > config.rules.call_timeout);
    assert!(config.order.max_amount_minor > 0);
    assert!(config.max_receive_count != Some(0));
    assert!(config.move_poison_to.is_none() || config.move_poison_to != config.queue_url);
    assert!(!matches!(&config.secret, SecretSource::SecretsManager(id) if id.is_empty()));
    let (GatewayKind::Stripe { url } | GatewayKind::Http { url }) = &config.gateway;
    assert_safe(url);
    let queues = config.queue_url.iter().chain(&config.move_poison_to);
    queues.for_each(|url| assert_safe(&url.parse().expect("a queue's URL is one")));
}

/// Nothing is sent in clear text to another machine, and no password hides in an address.
fn assert_safe(url: &Uri) {
    let host = url.host().expect("an absolute URL");
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    assert!(url.scheme_str() == Some("https") || loopback, "{url}");
    assert!(!url.authority().expect("an authority").as_str().contains('@'), "{url}");
}
