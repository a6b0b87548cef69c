//! Reads single variables: an empty one counts as not set, and what cannot be read is refused by name.

use std::{net::IpAddr, time::Duration};

use http::Uri;

use super::{ConfigError, wrong};
use crate::clock::{Timestamp, parse_duration, parse_instant};

/// The environment: a variable's value by its name.
pub trait Environment {
    /// The value, or `None` if the variable is not set.
    fn get(&self, name: &str) -> Option<String>;
}

/// The environment of this process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    fn get(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }
}

impl<F: Fn(&str) -> Option<String>> Environment for F {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// 2015: Lambda's first year. What is earlier is a date in another form, such as 20261130, which as seconds is in 1970.
const EARLIEST_MOMENT: i64 = 1_420_070_400;

/// Reads variables; an empty one counts as not set, because templates cannot leave one out.
pub(super) struct Reader<'a, E>(pub(super) &'a E);

impl<E: Environment> Reader<'_, E> {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    pub(super) fn required(&self, name: &'static str, hint: &str) -> Result<String, ConfigError> {
        self.text(name).map_or_else(|| wrong(name, format!("is not set: {hint}")), Ok)
    }

    /// The name or ARN of a DynamoDB table.
    pub(super) fn table(&self, name: &'static str) -> Result<String, ConfigError> {
        let table = self.required(name, "name the DynamoDB table of the ledger")?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-:/".contains(&byte);
        match table.len() <= 1024 && table.bytes().all(letter) {
            true => Ok(table),
            false => wrong(name, "must be the name or ARN of a DynamoDB table"),
        }
    }

    pub(super) fn integer(
        &self,
        name: &'static str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => wrong(name, format!("must be an integer from {min} to {max}")),
        }
    }

    pub(super) fn moment(&self, name: &'static str) -> Result<Option<Timestamp>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match parse_instant(&text).filter(|instant| instant.as_secs() >= EARLIEST_MOMENT) {
            Some(instant) => Ok(Some(instant)),
            None => wrong(
                name,
                "must be RFC 3339 such as 2026-01-01T00:00:00Z, or an epoch in seconds or milliseconds, and not before 2015",
            ),
        }
    }

    pub(super) fn duration(
        &self,
        name: &'static str,
        default: Duration,
        min: Duration,
        max: Duration,
    ) -> Result<Duration, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match parse_duration(&text) {
            Some(duration) if (min..=max).contains(&duration) => Ok(duration),
            _ => wrong(
                name,
                format!(
                    "must be a duration such as 500ms, 10s, 5m or 20h, from {} to {}",
                    show(min),
                    show(max)
                ),
            ),
        }
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                wrong(name, format!("must be one of {}", words.join(", ")))
            }
        }
    }

    pub(super) fn switch(&self, name: &'static str) -> Result<bool, ConfigError> {
        self.choice(name, &[("on", true), ("off", false), ("true", true), ("false", false)], false)
    }

    /// An address that paths are added to.
    pub(super) fn base_url(&self, name: &'static str, text: &str) -> Result<Uri, ConfigError> {
        match self.https_url(name, text)? {
            uri if uri.query().is_none() => Ok(uri),
            _ => wrong(name, "must not have a query: the path of each call follows it"),
        }
    }

    pub(super) fn https_url(&self, name: &'static str, text: &str) -> Result<Uri, ConfigError> {
        let Ok(uri) = text.parse::<Uri>() else { return wrong(name, "must be a URL") };
        let Some(host) = uri.host() else {
            return wrong(name, "must be an absolute URL such as https://host/path");
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return wrong(name, "must not hold a user or a password: addresses are printed");
        }
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if is_loopback(host) => Ok(uri),
            Some("http") => wrong(name, "must be https: plain http is allowed to a loopback address only"),
            _ => wrong(name, "must start with https://"),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn show(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis.checked_rem(3_600_000) == Some(0) && millis > 0 => {
            format!("{}h", millis / 3_600_000)
        }
        millis if millis.checked_rem(1000) == Some(0) => format!("{}s", millis / 1000),
        millis => format!("{millis}ms"),
    }
}
