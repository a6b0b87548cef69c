//! What the Lambda binary and the container's link: nothing of local mode, or with known vulnerabilities; the Lambda
//! binary nothing of the command line either.

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

/// `name vX.Y.Z` of every crate linked with these features alone.
fn linked(features: &str) -> Vec<String> {
    tree(&["--no-default-features", "--features", features])
}

#[expect(clippy::unwrap_used, reason = "a cargo that does not answer fails the test")]
fn tree(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Also as `make build`, `sam build` and a plain `cargo lambda build` make it: with the default features.
#[test]
fn the_lambda_binary_links_no_command_line_no_emulator_and_nothing_that_was_not_asked_for() {
    for crates in [linked("lambda"), tree(&[])] {
        assert!(crates.iter().any(|line| line.starts_with("lambda_runtime v")), "{crates:?}");
        let foreign: Vec<_> = crates
            .iter()
            .filter(|line| FOREIGN.iter().any(|name| line.split(' ').next() == Some(name)))
            .collect();
        assert_eq!(foreign, [""; 0]);
    }
}

/// The Dockerfile's build command fits `Cargo.toml`, and what it copies is there. That the image runs is not tried
/// here: Docker is not needed for the tests.
#[test]
fn the_container_is_built_of_what_exists_and_holds_no_emulator() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let [dockerfile, manifest] =
        ["Dockerfile", "Cargo.toml"].map(|name| std::fs::read_to_string(root.join(name)).unwrap());
    let features = dockerfile.lines().find_map(|line| line.strip_prefix("ARG FEATURES=")).unwrap().to_owned();
    let build = dockerfile.lines().find(|line| line.contains("cargo build")).unwrap();
    assert!(build.contains(r#"--no-default-features --features "$FEATURES" --bin charge-once"#), "{build}");
    let binary = manifest.split("[[bin]]").skip(1).find(|it| it.contains("\"charge-once\"\n")).unwrap();
    assert!(binary.contains(&format!("required-features = [\"{features}\"]")), "{binary}");
    assert!(dockerfile.contains("install -D target/release/charge-once /out/charge-once"));
    assert!(dockerfile.contains("COPY --from=build /out/charge-once /charge-once"));

    let crates = linked(&features);
    assert!(crates.iter().any(|line| line.starts_with("clap v")), "{crates:?}");
    let emulators = ["axum", "dynoxide-rs", "libsqlite3-sys", "rusqlite"];
    let foreign: Vec<_> = crates
        .iter()
        .filter(|line| emulators.iter().any(|name| line.split(' ').next() == Some(name)))
        .collect();
    assert_eq!(foreign, [""; 0]);
    // What the README and the comment in the Dockerfile offer besides.
    linked("cli,s3,otel");
}

/// Of all HTTP stacks only the one that is there anyway.
#[test]
fn its_features_link_what_they_are_for_and_no_other_http_stack() {
    let crates = linked("lambda,s3,otel");
    let links = |name: &str| crates.iter().any(|line| line.split(' ').next() == Some(name));
    for name in ["aws-sdk-s3", "opentelemetry_sdk", "opentelemetry-otlp"] {
        assert!(links(name), "{name}");
    }
    for name in ["aws-lc-sys", "native-tls", "openssl-sys", "reqwest", "tonic", "clap", "axum"] {
        assert!(!links(name), "{name}");
    }
}

#[test]
fn nothing_outdated_is_linked_even_with_every_feature() {
    for features in ["lambda", "lambda,s3,otel", "worker", "cli,s3,otel", "lambda,local"] {
        let crates = linked(features);
        let outdated: Vec<_> =
            crates.iter().filter(|line| OUTDATED.iter().any(|prefix| line.starts_with(prefix))).collect();
        assert_eq!(outdated, [""; 0], "{features}");
    }
}
