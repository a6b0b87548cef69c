//! `charge-once doctor` on the template, on one that breaks a rule, and on none.

use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use super::text;

async fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
    command.arg("doctor").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).kill_on_drop(true);
    command.output().await.unwrap()
}

#[tokio::test]
async fn the_template_is_sound() {
    let output = doctor(&[]).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("rules: 0 errors, 0 warnings\n"), "{}", text(&output.stdout));
}

#[tokio::test]
async fn an_error_is_named_with_what_breaks_and_what_to_type() {
    let given = ["--parameter", "VisibilityTimeout=120", "--parameter", "MaxBatchingWindow=5"];
    let output = doctor(&given).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    insta::assert_snapshot!(shown, @r#"
    error   visibility-covers-retries
            breaks  orders reappear after 120 s, while a batch may still be worked on for 185 s
            fix     sam deploy --parameter-overrides VisibilityTimeout=185

    all in one, in a checkout of what runs (CONFIG=prod for that section of samconfig.toml):
            make deploy PARAMETERS="VisibilityTimeout=185"

    template.yaml, 49 rules: 1 error, 0 warnings
    "#);
    let document: Value =
        serde_json::from_slice(&doctor(&[&given[..], &["--json"]].concat()).await.stdout).unwrap();
    let rules: Vec<&str> =
        document["findings"].as_array().unwrap().iter().filter_map(|one| one["rule"].as_str()).collect();
    assert_eq!(rules, ["visibility-covers-retries"]);
}

#[tokio::test]
async fn a_warning_is_no_error() {
    let path = std::env::temp_dir()
        .join(format!("charge-once-test-{}.yaml", charge_once::backoff::Random::System.token()));
    let template = include_str!("../../../template.yaml");
    let find = "MetricsConfig: {Metrics: [EventCount]}";
    assert!(template.contains(find));
    std::fs::write(&path, template.replace(find, "MetricsConfig: {Metrics: []}")).unwrap();
    let output = doctor(&["--template", path.to_str().unwrap()]).await;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("warning events-counted\n"), "{}", text(&output.stdout));
}

#[tokio::test]
async fn no_template_and_no_such_parameter_are_errors() {
    let missing = doctor(&["--template", "nowhere.yaml"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        text(&missing.stderr).starts_with("error: nowhere.yaml cannot be read"),
        "{}",
        text(&missing.stderr)
    );
    let unknown = doctor(&["--parameter", "Nothing=1"]).await;
    assert_eq!(text(&unknown.stderr), "error: template.yaml: the template has no parameter Nothing\n");
}

#[tokio::test]
async fn what_cloudformation_would_refuse_is_named() {
    let output = doctor(&["--parameter", "Gateway=http", "--parameter", "FunctionTimeout=10"]).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    for line in [
        "error   parameter-allowed\n        breaks  CloudFormation refuses FunctionTimeout=10: it must be at least 20",
        "error   template-assertion\n        breaks  CloudFormation refuses these parameters: The http gateway needs GatewayUrl.",
        "error   settings-accepted\n        breaks  the function does not start: GATEWAY_URL is not set",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}
