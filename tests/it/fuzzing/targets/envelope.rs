//! A body: an envelope gives back what was put into it, and never more than there was.

use charge_once::envelope::Envelope;
use serde_json::value::RawValue;

use super::{assert_loggable, order};

/// The input is the message's body.
pub(crate) fn run(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    match Envelope::open(body) {
        Ok(Envelope::Order(text)) => {
            assert!(text.len() <= body.len());
            order::run(text.as_bytes());
        }
        Ok(Envelope::S3Pointer(pointer)) => {
            assert!(pointer.s3_bucket_name.len() + pointer.s3_key.len() < body.len());
        }
        Err(error) => assert_loggable(&format!("{error} {}", error.code())),
    }
    comes_back(body);
}

fn comes_back(body: &str) {
    let message = serde_json::to_string(body).expect("text is JSON");
    let sns = format!(r#"{{"Type":"Notification","TopicArn":"t","Message":{message}}}"#);
    // SNS may carry a pointer, too, and nothing else is opened twice.
    let list = body.trim_start().starts_with('[');
    let inside = if list { Envelope::open(body) } else { Ok(Envelope::Order(body.into())) };
    assert_eq!(Envelope::open(&sns), inside);
    // A detail that is null is none.
    if serde_json::from_str::<&RawValue>(body).is_ok_and(|raw| raw.get() != "null") {
        let event = format!(r#"{{"detail-type":"t","source":"s","detail":{body}}}"#);
        let inside = body.trim_matches([' ', '\t', '\r', '\n']);
        assert_eq!(Envelope::open(&event), Ok(Envelope::Order(inside.into())));
    }
}
