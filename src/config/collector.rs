//! Where spans go, from the variables that OpenTelemetry has standardised
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>). They belong to the whole
//! environment, so what is for others is passed over; an address that cannot be one is refused.

use http::Uri;

use super::{ConfigError, Environment, reader::Reader, wrong};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// What the general endpoint lacks; the one for traces is used as it is.
const PATH: &str = "/v1/traces";

/// The URL that takes spans; `None` if none are wanted.
pub(super) fn read<E: Environment>(env: &Reader<'_, E>) -> Result<Option<Uri>, ConfigError> {
    let is = |name: &str, value: &str| env.text(name).is_some_and(|text| text.eq_ignore_ascii_case(value));
    if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
        return Ok(None);
    }
    match (env.text(TRACES_ENDPOINT), env.text(ENDPOINT)) {
        (Some(url), _) => uri(TRACES_ENDPOINT, &url).map(Some),
        (None, Some(url)) => uri(ENDPOINT, &format!("{}{PATH}", url.trim_end_matches('/'))).map(Some),
        (None, None) => Ok(None),
    }
}

fn uri(variable: &'static str, url: &str) -> Result<Uri, ConfigError> {
    let uri = url.parse::<Uri>().ok();
    let usable = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    usable.map_or_else(|| wrong(variable, "must be an http or https URL, such as http://127.0.0.1:4318"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let get = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        let read = read(&Reader(&get)).map_err(|error| error.to_string())?;
        Ok(read.map(|uri| uri.to_string()))
    }

    #[test]
    fn the_general_endpoint_gets_the_path_and_the_special_one_keeps_its_own() {
        let general = (ENDPOINT, "http://127.0.0.1:4318/");
        let special = (TRACES_ENDPOINT, "https://traces.example/in?key=1");
        assert_eq!(collector(&[general]).unwrap().as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(
            collector(&[general, special]).unwrap().as_deref(),
            Some("https://traces.example/in?key=1")
        );
    }

    #[test]
    fn nothing_is_sent_unless_it_is_asked_for() {
        let endpoint = (ENDPOINT, "http://127.0.0.1:4318");
        assert_eq!(collector(&[]), Ok(None));
        assert_eq!(collector(&[(ENDPOINT, " ")]), Ok(None));
        assert_eq!(collector(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        assert_eq!(collector(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
    }

    #[test]
    fn an_address_that_is_none_is_refused_by_name() {
        for url in ["collector:4318", "grpc://collector", "http://", "http://a b"] {
            let error = collector(&[(ENDPOINT, url)]).unwrap_err();
            assert!(error.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT must be an http"), "{url}: {error}");
        }
        assert!(collector(&[(TRACES_ENDPOINT, "x")]).unwrap_err().starts_with(TRACES_ENDPOINT));
    }
}
