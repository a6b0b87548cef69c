use super::*;

const LEAST: &[(&str, &str)] =
    &[("LEDGER_TABLE", "t"), ("GATEWAY", "http"), ("GATEWAY_URL", "https://pay.example/charges")];

fn read(extra: &[(&str, &str)]) -> Result<Config, String> {
    let all: Vec<_> = LEAST.iter().chain(extra).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let get = move |name: &str| all.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    Config::from_env(&get).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = read(&[]).unwrap();
    assert_eq!(config.concurrency, 10);
    assert_eq!(config.key_window, Duration::from_secs(20 * 3600));
    assert_eq!(config.rules.call_timeout, Duration::from_secs(10));
    assert_eq!(config.rules.lease, Duration::from_secs(60));
    assert_eq!(config.backoff, Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(900) });
    assert_eq!(config.order.max_amount_minor, 99_999_999);
    assert_eq!((config.max_receive_count, config.move_poison_to, config.queue_url), (None, None, None));
    assert_eq!((config.account.as_str(), config.service.as_str()), ("default", "charge-once"));
}

#[test]
fn a_connection_is_opened_ahead_unless_an_event_waits() {
    let early = |kind| read(&[("AWS_LAMBDA_INITIALIZATION_TYPE", kind)]).unwrap().connects_early;
    assert!(!early("on-demand"));
    assert!(early("provisioned-concurrency"));
    assert!(read(&[]).unwrap().connects_early);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    assert!(read(&[("DEFAULT_CURRENCY", ""), ("MAX_RECEIVE_COUNT", " "), ("DLQ_URL", "")]).is_ok());
}

#[test]
fn a_bad_setting_is_refused_by_name() {
    let cases: &[&[(&str, &str)]] = &[
        &[("LEDGER_TABLE", "")],
        &[("LEDGER_TABLE", "the ledger")],
        &[("GATEWAY", "paypal")],
        &[("GATEWAY", "")],
        &[("GATEWAY_URL", "")],
        &[("GATEWAY_URL", "http://pay.example")],
        &[("GATEWAY_URL", "pay")],
        &[("GATEWAY_URL", "https://u:p@pay.example")],
        &[("GATEWAY", "stripe"), ("GATEWAY_URL", "https://pay.example?a=b")],
        &[("GATEWAY_SECRET", "a"), ("GATEWAY_SECRET_ARN", "b")],
        &[("GATEWAY_KEY_WINDOW", "20")],
        &[("RECHARGE_AFTER_LOOKUP", "on")],
        &[("GATEWAY", "stripe"), ("GATEWAY_LOOKUP", "on")],
        &[("DEFAULT_CURRENCY", "XAU")],
        &[("MAX_AMOUNT_MINOR", "0")],
        &[("CONCURRENCY", "0")],
        &[("CONCURRENCY", "ten")],
        &[("CHARGE_TIMEOUT", "99h")],
        &[("LEASE_SECONDS", "5")],
        &[("BACKOFF_BASE", "20m")],
        &[("BACKOFF_CAP", "13h")],
        &[("MAX_RECEIVE_COUNT", "0")],
        &[("POISON_MODE", "dlq")],
        &[("POISON_MODE", "dlq"), ("DLQ_URL", "https://q/1/o"), ("QUEUE_URL", "https://q/1/o")],
        &[("POISON_MODE", "drop")],
        &[("DECLINED", "drop")],
        &[("QUEUE_URL", "orders")],
        &[("RECORD_DAYS", "7")],
        &[("LEDGER_EPOCH", "today")],
        &[("LEDGER_EPOCH", "20261130")],
        &[("LOG_LEVEL", "loud")],
        &[("GATEWAY_ACCOUNT", "a b")],
    ];
    let refusals: Vec<String> = cases.iter().map(|settings| read(settings).unwrap_err()).collect();
    insta::assert_snapshot!(refusals.join("\n"), @r"
    LEDGER_TABLE is not set: name the DynamoDB table of the ledger
    LEDGER_TABLE must be the name or ARN of a DynamoDB table
    GATEWAY must be one of stripe, http
    GATEWAY is not set: say `stripe` or `http`
    GATEWAY_URL is not set: GATEWAY=http needs the URL that takes charges
    GATEWAY_URL must be https: plain http is allowed to a loopback address only
    GATEWAY_URL must start with https://
    GATEWAY_URL must not hold a user or a password: addresses are printed
    GATEWAY_URL must not have a query: the path of each call follows it
    GATEWAY_SECRET and GATEWAY_SECRET_ARN are both set: set one
    GATEWAY_KEY_WINDOW must be a duration such as 500ms, 10s, 5m or 20h, from 60s to 720h
    RECHARGE_AFTER_LOOKUP needs GATEWAY_LOOKUP=on
    GATEWAY_LOOKUP is for GATEWAY=http only: Stripe's handles are always looked up
    DEFAULT_CURRENCY must be an ISO 4217 code that has a minor unit, such as EUR
    MAX_AMOUNT_MINOR must be an integer from 1 to 999999999999
    CONCURRENCY must be an integer from 1 to 1000
    CONCURRENCY must be an integer from 1 to 1000
    CHARGE_TIMEOUT must be a duration such as 500ms, 10s, 5m or 20h, from 100ms to 300s
    LEASE_SECONDS must not be shorter than CHARGE_TIMEOUT: the lease would end during a charge
    BACKOFF_BASE must not be above BACKOFF_CAP
    BACKOFF_CAP must be a duration such as 500ms, 10s, 5m or 20h, from 1ms to 12h
    MAX_RECEIVE_COUNT must be an integer from 1 to 1000
    DLQ_URL is not set: POISON_MODE=dlq needs the dead-letter queue's URL
    DLQ_URL is the queue itself (QUEUE_URL): poison would come back for ever
    POISON_MODE must be one of redrive, dlq
    DECLINED must be one of poison, ack
    QUEUE_URL must start with https://
    RECORD_DAYS must be an integer from 19 to 3650
    LEDGER_EPOCH must be RFC 3339 such as 2026-01-01T00:00:00Z, or an epoch in seconds or milliseconds, and not before 2015
    LEDGER_EPOCH must be RFC 3339 such as 2026-01-01T00:00:00Z, or an epoch in seconds or milliseconds, and not before 2015
    LOG_LEVEL must be one of error, warn, info, debug, trace
    GATEWAY_ACCOUNT must be 1 to 64 of A-Z a-z 0-9 . _ -
    ");
    // What it says depends on whether this build reads S3.
    assert!(read(&[("PAYLOAD_BUCKETS", "s3://orders")]).unwrap_err().starts_with("PAYLOAD_BUCKETS "));
}

#[test]
fn plain_http_is_allowed_to_loopback_only() {
    for url in ["http://127.0.0.1:1/c", "http://localhost/c", "http://[::1]:9/c"] {
        assert!(read(&[("GATEWAY_URL", url)]).is_ok(), "{url}");
    }
    for url in ["http://127.0.0.1.evil.example/c", "http://10.0.0.1/c", "ftp://localhost/c"] {
        assert!(read(&[("GATEWAY_URL", url)]).is_err(), "{url}");
    }
}

#[test]
fn a_secret_never_shows_in_errors_or_debug_prints() {
    let config = read(&[("GATEWAY_SECRET", "sk_live_hush")]).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert!(!read(&[("GATEWAY_SECRET", "sk_live_hush\u{1}x")]).unwrap_err().contains("hush"));
}

#[test]
fn buckets_are_a_list_of_names_for_builds_that_read_s3() {
    let read = |text: &str, can_read_s3| {
        let get = |name: &str| (name == "PAYLOAD_BUCKETS").then(|| text.to_owned());
        payload_buckets(&Reader(&get), can_read_s3).map_err(|error| error.to_string())
    };
    assert_eq!(read(" shop-orders, other.bucket ,", true).unwrap(), ["shop-orders", "other.bucket"]);
    for text in ["s3://orders", "Orders", "ab", "orders/prefix", "shop orders"] {
        assert!(read(text, true).unwrap_err().starts_with("PAYLOAD_BUCKETS must be names"), "{text}");
    }
    let error = "PAYLOAD_BUCKETS is set, but this build cannot read S3: build it with the feature `s3`";
    assert_eq!(read("shop-orders", false).unwrap_err(), error);
    assert_eq!(read("", false).unwrap(), [""; 0]);
}
