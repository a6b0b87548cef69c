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
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("LEDGER_TABLE", "")], "LEDGER_TABLE is not set"),
        (&[("LEDGER_TABLE", "the ledger")], "LEDGER_TABLE must be the name"),
        (&[("GATEWAY", "paypal")], "GATEWAY must be one of stripe, http"),
        (&[("GATEWAY", "")], "GATEWAY is not set"),
        (&[("GATEWAY_URL", "")], "GATEWAY_URL is not set"),
        (&[("GATEWAY_URL", "http://pay.example")], "GATEWAY_URL must be https"),
        (&[("GATEWAY_URL", "pay")], "GATEWAY_URL must"),
        (&[("GATEWAY_URL", "https://u:p@pay.example")], "GATEWAY_URL must not hold a user"),
        (
            &[("GATEWAY", "stripe"), ("GATEWAY_URL", "https://pay.example?a=b")],
            "GATEWAY_URL must not have a query",
        ),
        (&[("GATEWAY_SECRET", "a"), ("GATEWAY_SECRET_ARN", "b")], "GATEWAY_SECRET and GATEWAY_SECRET_ARN"),
        (&[("GATEWAY_KEY_WINDOW", "20")], "GATEWAY_KEY_WINDOW must be a duration"),
        (&[("RECHARGE_AFTER_LOOKUP", "on")], "RECHARGE_AFTER_LOOKUP needs GATEWAY_LOOKUP=on"),
        (&[("GATEWAY", "stripe"), ("GATEWAY_LOOKUP", "on")], "GATEWAY_LOOKUP is for GATEWAY=http only"),
        (&[("DEFAULT_CURRENCY", "XAU")], "DEFAULT_CURRENCY must be"),
        (&[("MAX_AMOUNT_MINOR", "0")], "MAX_AMOUNT_MINOR must be"),
        (&[("CONCURRENCY", "0")], "CONCURRENCY must be"),
        (&[("CONCURRENCY", "ten")], "CONCURRENCY must be"),
        (&[("CHARGE_TIMEOUT", "99h")], "CHARGE_TIMEOUT must be"),
        (&[("LEASE_SECONDS", "5")], "LEASE_SECONDS must not be shorter"),
        (&[("BACKOFF_BASE", "20m")], "BACKOFF_BASE must not be above"),
        (&[("BACKOFF_CAP", "13h")], "BACKOFF_CAP must be"),
        (&[("MAX_RECEIVE_COUNT", "0")], "MAX_RECEIVE_COUNT must be"),
        (&[("POISON_MODE", "dlq")], "DLQ_URL is not set"),
        (
            &[("POISON_MODE", "dlq"), ("DLQ_URL", "https://q/1/o"), ("QUEUE_URL", "https://q/1/o")],
            "DLQ_URL is the queue itself",
        ),
        (&[("POISON_MODE", "drop")], "POISON_MODE must be one of redrive, dlq"),
        (&[("DECLINED", "drop")], "DECLINED must be one of poison, ack"),
        (&[("QUEUE_URL", "orders")], "QUEUE_URL must start"),
        (&[("RECORD_DAYS", "7")], "RECORD_DAYS must be"),
        (&[("LEDGER_EPOCH", "today")], "LEDGER_EPOCH must be"),
        (&[("LOG_LEVEL", "loud")], "LOG_LEVEL must be"),
        (&[("GATEWAY_ACCOUNT", "a b")], "GATEWAY_ACCOUNT must be"),
        (&[("PAYLOAD_BUCKETS", "s3://orders")], "PAYLOAD_BUCKETS "),
    ];
    for (settings, expected) in cases {
        let error = read(settings).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
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
