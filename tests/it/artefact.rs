//! What the Lambda binary links: nothing of the command line, of local mode, or with known vulnerabilities.

use std::process::Command;

/// Never in the Lambda binary.
const FOREIGN: [&str; 16] = [
    "aws-lc-sys",
    "aws-sdk-cloudcontrol",
    "aws-sdk-s3",
    "axum",
    "clap",
    "clap_builder",
    "comfy-table",
    "dynoxide-rs",
    "indicatif",
    "libsqlite3-sys",
    "native-tls",
    "openssl-sys",
    "opentelemetry",
    "opentelemetry_sdk",
    "rusqlite",
    "serde_yaml_ng",
];
/// Versions that the default features of the AWS crates would bring, with open advisories.
const OUTDATED: [&str; 4] = ["h2 v0.3.", "hyper v0.14.", "rustls v0.21.", "rustls-webpki v0.101."];

/// `name vX.Y.Z` of every crate linked with these features.
#[expect(clippy::unwrap_used, reason = "a cargo that does not answer fails the test")]
fn linked(features: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--no-default-features"])
        .args(["--features", features, "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_lambda_binary_links_no_command_line_and_no_emulator() {
    let crates = linked("lambda");
    assert!(crates.iter().any(|line| line.starts_with("lambda_runtime v")), "{crates:?}");
    let foreign: Vec<_> = crates
        .iter()
        .filter(|line| FOREIGN.iter().any(|name| line.split(' ').next() == Some(name)))
        .collect();
    assert_eq!(foreign, [""; 0]);
}

#[test]
fn nothing_outdated_is_linked_even_with_every_feature() {
    for features in ["lambda", "lambda,s3,otel", "worker", "lambda,local"] {
        let crates = linked(features);
        let outdated: Vec<_> =
            crates.iter().filter(|line| OUTDATED.iter().any(|prefix| line.starts_with(prefix))).collect();
        assert_eq!(outdated, [""; 0], "{features}");
    }
}
