//! Which traces a message comes from: X-Ray's header, which SQS carries as a system attribute, and W3C's, which
//! producers send as a message attribute. What cannot be read is left out; it does not matter to the order.

use std::str::FromStr;

use opentelemetry::trace::{Link, SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use crate::record::{Record, TextAttribute};

/// A link to each span that the record names, each span once.
///
/// A link and no parent, because one batch has records of many traces.
pub(super) fn links(record: &Record) -> Vec<Link> {
    let xray = record.trace_header.as_deref().and_then(xray);
    let w3c = w3c(&record.attributes).filter(|w3c| {
        xray.as_ref().is_none_or(|xray| (xray.trace_id(), xray.span_id()) != (w3c.trace_id(), w3c.span_id()))
    });
    xray.into_iter().chain(w3c).map(|context| Link::new(context, Vec::new(), 0)).collect()
}

/// Reads `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`, in any order. Without a
/// parent there is no span to link to.
fn xray(header: &str) -> Option<SpanContext> {
    let field = |name: &str| {
        let mut fields = header.split(';').filter_map(|field| field.trim().split_once('='));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let (seconds, unique) = field("Root")?.strip_prefix("1-")?.split_once('-')?;
    let (seconds, unique) = (seconds.to_ascii_lowercase(), unique.to_ascii_lowercase());
    let trace_id = hex(&seconds, 8)?.to_owned() + hex(&unique, 24)?;
    let sampled = field("Sampled") == Some("1");
    context(&trace_id, &field("Parent")?.to_ascii_lowercase(), sampled, TraceState::default())
}

/// Reads the attributes `traceparent` and `tracestate`, see <https://www.w3.org/TR/trace-context/>.
fn w3c(attributes: &[TextAttribute]) -> Option<SpanContext> {
    let attribute = |name: &str| {
        let mut named = attributes.iter().filter(|attribute| attribute.name.eq_ignore_ascii_case(name));
        named.next().map(|attribute| attribute.value.trim())
    };
    let mut parts = attribute("traceparent")?.split('-');
    let version = hex(parts.next()?, 2).filter(|version| *version != "ff")?;
    let (trace_id, span_id, flags) = (parts.next()?, parts.next()?, hex(parts.next()?, 2)?);
    // Later versions may have more parts, this one has not.
    if version == "00" && parts.next().is_some() {
        return None;
    }
    let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    let state = attribute("tracestate").and_then(|state| TraceState::from_str(state).ok());
    context(trace_id, span_id, sampled, state.unwrap_or_default())
}

/// `None` for an identifier of the wrong length or of zeroes only.
fn context(trace_id: &str, span_id: &str, sampled: bool, state: TraceState) -> Option<SpanContext> {
    let trace_id = TraceId::from_hex(hex(trace_id, 32)?).ok()?;
    let span_id = SpanId::from_hex(hex(span_id, 16)?).ok()?;
    let flags = TraceFlags::default().with_sampled(sampled);
    Some(SpanContext::new(trace_id, span_id, flags, true, state)).filter(SpanContext::is_valid)
}

/// The text, if it is so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<&str> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_hex)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "5759e988bd862e3fe1be46a994272793";
    const SPAN: &str = "53995c3f42cd8ad8";

    fn shown(context: Option<SpanContext>) -> Option<(String, String, bool)> {
        context.map(|it| (it.trace_id().to_string(), it.span_id().to_string(), it.is_sampled()))
    }

    fn read(sampled: bool) -> Option<(String, String, bool)> {
        Some((TRACE.to_owned(), SPAN.to_owned(), sampled))
    }

    fn attributes(pairs: &[(&str, &str)]) -> Vec<TextAttribute> {
        let attribute = |(name, value): &(&str, &str)| TextAttribute {
            name: (*name).to_owned(),
            data_type: "String".to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(attribute).collect()
    }

    #[test]
    fn an_x_ray_header_is_read_in_any_order() {
        for (header, sampled) in [
            ("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", true),
            ("Sampled=0; Parent=53995C3F42CD8AD8; Root=1-5759E988-bd862e3fe1be46a994272793", false),
            ("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Lineage=a:0;Sampled=?", false),
        ] {
            assert_eq!(shown(xray(header)), read(sampled), "{header}");
        }
    }

    #[test]
    fn a_broken_x_ray_header_is_left_out() {
        for header in [
            "",
            "Root=1-x",
            "Root=1-5759e988-bd862e3fe1be46a994272793",
            "Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
            "Root=1-5759e98-bd862e3fe1be46a9942727933;Parent=53995c3f42cd8ad8",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=+3995c3f42cd8ad8",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0000000000000000",
            "Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8",
            "Root=1-5759é988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
        ] {
            assert_eq!(shown(xray(header)), None, "{header}");
        }
    }

    #[test]
    fn a_traceparent_is_read_with_its_state() {
        let value = format!("00-{TRACE}-{SPAN}-01");
        let context = w3c(&attributes(&[("traceparent", &value), ("tracestate", "shop=7")])).unwrap();
        assert_eq!(context.trace_state().get("shop"), Some("7"));
        assert_eq!(shown(Some(context)), read(true));
        let later = format!("01-{TRACE}-{SPAN}-02-more");
        assert_eq!(shown(w3c(&attributes(&[("Traceparent", &later), ("tracestate", "=")]))), read(false));
    }

    #[test]
    fn a_broken_traceparent_is_left_out() {
        let zero = "0".repeat(32);
        for value in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{zero}-{SPAN}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(shown(w3c(&attributes(&[("traceparent", &value)]))), None, "{value}");
        }
    }
}
