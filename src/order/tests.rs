use super::*;
use crate::clock::Timestamp;

const RULES: OrderRules = OrderRules { default_currency: None, max_amount_minor: 99_999_999 };

fn parse(body: &str) -> Result<Order, &'static str> {
    Order::parse(body, &RULES).map_err(OrderError::code)
}

fn with(field: &str) -> Result<Order, &'static str> {
    parse(&format!(r#"{{"order_id":"o-1","amount":49.90,"currency":"EUR",{field}}}"#))
}

#[test]
fn a_full_order_is_read() {
    let order = parse(
        r#"{"order_id":"o-1","amount":"49.90","currency":"eur","customer":"cus_1","payment_method":"pm_1",
            "attempt":2,"created_at":"2026-01-01T00:00:00.5Z","note":{"any":[1,"\ud800"]}}"#,
    )
    .unwrap();
    assert_eq!(order.id().as_str(), "o-1");
    assert_eq!((order.money().minor(), order.money().currency().code()), (4990, "EUR"));
    assert_eq!((order.customer(), order.payment_method()), (Some("cus_1"), Some("pm_1")));
    assert_eq!((order.attempt(), order.created_at()), (2, Some(Timestamp::from_millis(1_767_225_600_500))));
}

#[test]
fn absent_fields_have_defaults() {
    let order = with(r#""customer":null,"payment_method":"","attempt":null"#).unwrap();
    assert_eq!((order.customer(), order.payment_method(), order.attempt()), (None, None, 1));
    assert_eq!(parse(r#"{"order_id":"o-1","total":1,"currency":"EUR"}"#).unwrap().money().minor(), 100);
    let rules = OrderRules { default_currency: Currency::parse("JPY"), ..RULES };
    let order = Order::parse(r#"{"order_id":"o-1","amount":5}"#, &rules).unwrap();
    assert_eq!(order.money().currency().code(), "JPY");
}

#[test]
fn an_integer_order_id_is_its_decimal_text() {
    let number = parse(r#"{"order_id":1001,"amount":1,"currency":"EUR"}"#).unwrap();
    assert_eq!(number, parse(r#"{"order_id":"1001","amount":1,"currency":"EUR"}"#).unwrap());
    for id in ["1.0", "1e3", "true", "[1]", "-0", r#""""#, r#""a b""#, r#""café""#, r#""\ud800""#] {
        let body = format!(r#"{{"order_id":{id},"amount":1,"currency":"EUR"}}"#);
        assert_eq!(parse(&body), Err("ORDER_ID_INVALID"), "{id}");
    }
    let long = format!(r#"{{"order_id":"{}","amount":1,"currency":"EUR"}}"#, "x".repeat(129));
    assert_eq!(parse(&long), Err("ORDER_ID_INVALID"));
}

#[test]
fn bodies_that_are_no_order_are_told_apart() {
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(128), "]".repeat(128));
    let cases = [
        ("", "BODY_EMPTY"),
        (" \n", "BODY_EMPTY"),
        ("hello", "BODY_NOT_JSON"),
        ("{&quot;order_id&quot;:1}", "BODY_NOT_JSON"),
        (r#"{"order_id":"o-1","amount":NaN,"currency":"EUR"}"#, "BODY_NOT_JSON"),
        (r#"{"order_id":"o-1","amount": "#, "BODY_NOT_JSON"),
        ("null", "BODY_NOT_AN_OBJECT"),
        (r#"["o-1",1,"EUR"]"#, "BODY_NOT_AN_OBJECT"),
        (r#""{\"order_id\":\"o-1\"}""#, "BODY_NOT_AN_OBJECT"),
        (r#"{"order_id":"o-1","amount":1,"currency":"EUR"} }"#, "BODY_TRAILING_BYTES"),
        (&deep, "BODY_TOO_DEEP"),
        (r#"{"amount":1,"currency":"EUR"}"#, "ORDER_ID_MISSING"),
        (r#"{"order_id":"o-1","amount":null,"currency":"EUR"}"#, "AMOUNT_MISSING"),
        (r#"{"order_id":"o-1","amount":1,"total":1,"currency":"EUR"}"#, "AMOUNT_AND_TOTAL"),
        (r#"{"order_id":"o-1","amount":1}"#, "CURRENCY_MISSING"),
        (r#"{"order_id":"o-1","amount":1,"currency":"XXX"}"#, "CURRENCY_INVALID"),
        (r#"{"order_id":"o-1","amount":1,"currency":9}"#, "CURRENCY_INVALID"),
        (r#"{"order_id":"o-1","amount":true,"currency":"EUR"}"#, "AMOUNT_FORMAT"),
        (r#"{"order_id":"o-1","amount":1.005,"currency":"EUR"}"#, "AMOUNT_PRECISION"),
    ];
    for (body, code) in cases {
        assert_eq!(parse(body), Err(code), "{body}");
    }
}

#[test]
fn fields_that_break_a_rule_are_named() {
    let cases = [
        (r#""order_id":"o-1""#, "DUPLICATE_FIELD"),
        (r#""x":1,"x":1"#, "DUPLICATE_FIELD"),
        (r#""customer":5"#, "CUSTOMER_INVALID"),
        (r#""customer":"a\nb""#, "CUSTOMER_INVALID"),
        (r#""payment_method":"\udfff""#, "PAYMENT_METHOD_INVALID"),
        (r#""attempt":0"#, "ATTEMPT_INVALID"),
        (r#""attempt":"2""#, "ATTEMPT_INVALID"),
        (r#""attempt":1.5"#, "ATTEMPT_INVALID"),
        (r#""created_at":"yesterday""#, "CREATED_AT_INVALID"),
        (r#""created_at":-1"#, "CREATED_AT_INVALID"),
        (r#""created_at":[]"#, "CREATED_AT_INVALID"),
    ];
    for (field, code) in cases {
        assert_eq!(with(field), Err(code), "{field}");
    }
}

#[test]
fn a_byte_order_mark_is_skipped_and_brackets_in_strings_do_not_nest() {
    assert!(parse("\u{feff}{\"order_id\":\"o-1\",\"amount\":1,\"currency\":\"EUR\"}").is_ok());
    assert!(with(&format!(r#""note":"\"{}""#, "[".repeat(500))).is_ok());
}

#[test]
fn epochs_are_read_in_seconds_and_milliseconds() {
    let seconds = with(r#""created_at":1767225600"#).unwrap();
    assert_eq!(seconds.created_at(), with(r#""created_at":1767225600000"#).unwrap().created_at());
}

#[test]
fn the_fingerprint_covers_what_is_charged_and_nothing_else() {
    let print = |field| with(field).unwrap().fingerprint();
    let plain = print(r#""note":1"#);
    insta::assert_snapshot!(plain, @"1ee418fa86bb78f77fb5d4b7810f25788544c973c89349cef94f8fe9f6d88efc");
    assert_eq!(plain, print(r#""attempt":3"#));
    assert_ne!(plain, print(r#""customer":"c""#));
    assert_ne!(
        print(r#""customer":"a|b","payment_method":"c""#),
        print(r#""customer":"a","payment_method":"b|c""#)
    );
}

#[test]
fn no_error_and_no_debug_print_quotes_a_value() {
    let order = with(r#""customer":"4242424242424242","payment_method":"pm_secret""#).unwrap();
    let debug = format!("{order:?}");
    assert!(!debug.contains("4242") && !debug.contains("pm_secret"), "{debug}");
    for body in [r#"{"order_id":"4242 4242","amount":1,"currency":"EUR"}"#, r#"{"4242":"#, r#"{"a":4242x}"#] {
        let error = Order::parse(body, &RULES).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("4242"), "{error:?}");
    }
}
