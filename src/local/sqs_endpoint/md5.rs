//! The digests that SQS sends along, by which clients check what arrived.

use crate::record::TextAttribute;

/// The MD5 of a body, in hexadecimal.
pub(super) fn of_body(body: &str) -> String {
    format!("{:x}", md5::compute(body))
}

/// The MD5 of the message attributes, `None` without any: name, type and value of each in the order of the names,
/// every text behind its length, and a 1 that says that the value is text.
pub(super) fn of_attributes(attributes: &[TextAttribute]) -> Option<String> {
    const TEXT: u8 = 1;
    let mut sorted: Vec<_> = attributes.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut bytes = Vec::new();
    for attribute in sorted {
        put(&mut bytes, &attribute.name);
        put(&mut bytes, &attribute.data_type);
        bytes.push(TEXT);
        put(&mut bytes, &attribute.value);
    }
    (!bytes.is_empty()).then(|| format!("{:x}", md5::compute(bytes)))
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sqs() {
        // The body and digest of AWS's own sample event.
        assert_eq!(of_body("Hello from SQS!"), "7b270e59b47ff90a553787216d55d91d");
        assert_eq!(of_attributes(&[]), None);
        let (name, data_type) = ("timestamp".to_owned(), "Number".to_owned());
        let attribute = TextAttribute { name, data_type, value: "1493147359900".to_owned() };
        // The value that moto's tests hold for the same attribute.
        assert_eq!(of_attributes(&[attribute]).as_deref(), Some("235c5c510d26fb653d073faed50ae77c"));
    }
}
