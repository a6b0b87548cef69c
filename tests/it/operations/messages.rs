//! What the command line says when it was told something wrong: the thing by its name, and what to write instead.

use std::process::Output;

use tokio::process::Command;

use super::text;

/// The command with nothing of AWS in its environment.
async fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
    command.args(args).env_clear().env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", "/nonexistent");
    command.kill_on_drop(true).output().await.unwrap()
}

#[tokio::test]
async fn a_setting_that_the_function_does_not_have_is_named() {
    let output = run(&["local", "--set", "NOSUCH=1"]).await;
    assert_eq!(output.status.code(), Some(1));
    let says = text(&output.stderr);
    assert!(
        says.starts_with("error: the function has no setting NOSUCH; docs/configuration.md lists them."),
        "{says}"
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let output = run(&["local", "--data", "/proc/nope"]).await;
    assert_eq!(output.status.code(), Some(1));
    let says = text(&output.stderr);
    assert!(says.starts_with("error: the data cannot be kept in /proc/nope: "), "{says}");
}

#[tokio::test]
async fn a_template_that_is_no_yaml_is_named() {
    let output = run(&["doctor", "--template", "/proc/self/cmdline"]).await;
    let says = text(&output.stderr);
    assert!(says.starts_with("error: /proc/self/cmdline: not YAML: "), "{says}");
}

#[tokio::test]
async fn a_queue_is_named_by_its_url() {
    for queue in ["orders", "arn:aws:sqs:eu-central-1:111122223333:orders", "https://", ""] {
        for command in [
            &["worker", "--queue-url", queue][..],
            &["doctor", "--queue-url", queue],
            &["dlq", "stats", "--dlq-url", queue, "--table", "t"],
        ] {
            let output = run(command).await;
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            let says = text(&output.stderr);
            assert!(says.contains("https://sqs.eu-central-1.amazonaws.com/111122223333/orders"), "{says}");
        }
    }
}

#[tokio::test]
async fn without_region_or_credentials_it_says_what_to_do() {
    let queue = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders";
    let output = run(&["doctor", "--queue-url", queue]).await;
    let says = text(&output.stderr);
    assert!(says.starts_with("error: no Region: give --region, or set AWS_REGION"), "{says}");
    let output = run(&["doctor", "--queue-url", queue, "--region", "eu-central-1"]).await;
    let says = text(&output.stderr);
    assert!(says.starts_with("error: no credentials: give --profile, sign in (`aws sso login`)"), "{says}");
    assert_eq!(output.status.code(), Some(1));
}
