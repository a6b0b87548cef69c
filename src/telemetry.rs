//! Log lines: one flat JSON object each, with an RFC 3339 `timestamp` and a `level`, as Lambda's log controls need.
//!
//! Bodies, secrets and card data never get here. The crate's own lines follow `LOG_LEVEL`; of all others only
//! warnings and errors are written, because at lower levels libraries print requests.

use std::{fmt, io::Write, sync::Mutex};

use serde_json::{Map, Value};
use time::OffsetDateTime;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

use crate::clock::{Clock, Timestamp};

/// Prints an error with its whole chain of causes, the only way errors are logged: the usual formatters show the
/// outermost one alone.
#[derive(Debug)]
pub struct ErrorChain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// A subscriber that writes JSON lines to `out`.
pub fn subscriber<W: Write + Send + 'static>(
    level: LevelFilter,
    clock: Clock,
    out: W,
) -> impl Subscriber + Send + Sync {
    Registry::default().with(JsonLines { level, clock, out: Mutex::new(out) })
}

/// What our own targets start with.
const OURS: &str = "charge_once";

struct JsonLines<W> {
    level: LevelFilter,
    clock: Clock,
    out: Mutex<W>,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    fn writes(&self, metadata: &tracing::Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with(OURS);
        *metadata.level() <= if ours { self.level } else { self.level.min(LevelFilter::WARN) }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _context: Context<'_, S>) -> bool {
        metadata.is_span() || self.writes(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Spans give lines their identifiers at every level.
        Some(self.level.max(LevelFilter::INFO))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // The spans of libraries name the same request in other words.
        if !attributes.metadata().target().starts_with(OURS) {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.0.clone());
            }
        }
        event.record(&mut fields);
        let line = line(self.clock.now(), event.metadata().level(), fields.0);
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Nobody is left to tell if standard output is gone.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

fn line(now: Timestamp, level: &Level, mut fields: Map<String, Value>) -> String {
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), rfc3339(now).into());
    line.insert("level".to_owned(), level.as_str().into());
    line.insert("message".to_owned(), fields.remove("message").unwrap_or_else(|| "".into()));
    line.append(&mut fields);
    format!("{}\n", escape_controls(&Value::Object(line).to_string()))
}

/// An instant as `2026-01-01T00:00:00.500Z`: RFC 3339, always with milliseconds, so that lines sort as text.
pub fn rfc3339(instant: Timestamp) -> String {
    let nanos = i128::from(instant.as_millis()).saturating_mul(1_000_000);
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second, milli) = time.time().as_hms_milli();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z", u8::from(month))
}

/// JSON leaves some characters as they are that move a terminal's cursor, end a line for some readers, or turn the
/// direction of what follows.
pub(crate) fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Collects fields; an absent optional one leaves no trace.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.insert(field.name().to_owned(), ErrorChain(value).to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

/// Writes a line that is complete as it is, such as one of metrics, to standard output.
pub fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to tell if standard output is gone.
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(level: LevelFilter, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let clock = Clock::from_fn(|| Timestamp::from_millis(1_767_225_600_500));
        tracing::subscriber::with_default(subscriber(level, clock, buffer.clone()), log);
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_is_flat_and_carries_the_fields_of_its_spans() {
        let line = lines(LevelFilter::INFO, || {
            let outer = tracing::info_span!("invocation", request_id = "r-1").entered();
            let inner = tracing::info_span!("record", order_id = "o-1", group_id = None::<&str>).entered();
            tracing::info!(receive_count = 2_u32, charge_id = None::<&str>, "record done");
            drop((inner, outer));
        });
        let expected = r#"{"level":"INFO","message":"record done","order_id":"o-1","receive_count":2,"request_id":"r-1","timestamp":"2026-01-01T00:00:00.500Z"}"#;
        assert_eq!(line.trim_end(), expected);
    }

    #[test]
    fn nothing_from_outside_can_forge_a_line() {
        let line = lines(LevelFilter::INFO, || {
            tracing::info!(reason = "a\n{\"level\":\"ERROR\"}\u{1b}[2J\u{9b}\u{2028}\u{202e}\u{7f}", "x");
        });
        assert_eq!(line.matches('\n').count(), 1);
        assert!(
            line.trim_end().chars().all(|c| !c.is_control() && !['\u{2028}', '\u{202e}'].contains(&c)),
            "{line:?}"
        );
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["reason"], "a\n{\"level\":\"ERROR\"}\u{1b}[2J\u{9b}\u{2028}\u{202e}\u{7f}");
    }

    #[test]
    fn levels_are_ours_and_of_others_only_warnings_count() {
        let all = || {
            tracing::debug!("ours");
            tracing::info!(target: "hyper", "theirs, with a request");
            tracing::warn!(target: "hyper", "theirs");
        };
        assert_eq!(lines(LevelFilter::TRACE, all).lines().count(), 2);
        assert_eq!(lines(LevelFilter::INFO, all).lines().count(), 1);
        assert_eq!(lines(LevelFilter::ERROR, all), "");
    }

    #[test]
    fn an_error_is_printed_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] fmt::Error);
        assert_eq!(ErrorChain(&Outer(fmt::Error)).to_string(), format!("outer: {}", fmt::Error));
    }
}
