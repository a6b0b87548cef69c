//! Every command of the documents is typed as it is written. What no test can type stands in a list, with the reason.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a command that cannot be typed fails the test")]

mod commands;
mod place;

use std::{collections::BTreeSet, process::Command};

use self::{
    commands::{Typed, commands, every},
    place::{Place, special},
};
use crate::operations::text;

/// Commands that begin so are not typed here, each with what holds them instead, or why nothing can.
const NOT_TYPED: &[(&str, &str)] = &[
    ("aws", "needs an AWS account"),
    ("sam", "needs an AWS account"),
    ("cdk synth", "writes what the doctor's test reads as a template; needs npm"),
    ("docker build", "needs Docker, and the network for the base image"),
    (
        "cargo install --locked --path . --features local",
        "an optimised build of ten minutes; `make test` builds the same",
    ),
    (
        "cargo install --locked --path . --no-default-features",
        "as above, of the binary that `Dockerfile` makes",
    ),
    ("cargo install cargo-deny", "another project's tool, from the network"),
    ("cargo deny", "`make check` runs it"),
    ("cargo info", "a look at another project, over the network"),
    ("pip download", "a look at another project, over the network"),
    ("npm pack", "a look at another project, over the network"),
    ("cargo new", "the test of docs/your-own-lambda.md types it"),
    ("cargo tree", "`artefact.rs` asks it"),
    ("export", "what every place has set"),
    ("date -u", "tells the time"),
    ("cargo test", "runs tests that run anyway, beside this one; that they exist is held below"),
    ("python3 scripts/lib/picture.py", "draws what `shown.rs` compares with a run"),
    ("scripts/tools", "installs from the network; `make peers` and `make bench` do"),
    ("scripts/fuzz keep", "renews the corpus, which takes minutes; `make fuzz` runs the targets"),
    (
        "charge-once local --bootstrap scripts/powertools",
        "needs `scripts/tools bench`; `make bench` runs the function",
    ),
    ("make run", "is `charge-once local`, which is typed"),
    ("make test", "continuous integration types it"),
    ("make check", "continuous integration types it"),
    ("make peers", "continuous integration types it"),
    ("make cases", "is a part of `make test`"),
    ("make abuse", "is a part of `make test`"),
    ("make help", "lists the targets, whose names are held to the documents"),
    ("make build", "makes what is released; needs python3 and the network"),
    ("make deploy", "needs an AWS account"),
    ("make bench", "an optimised build, and minutes of measuring"),
    ("make bench-worker", "an optimised build, and minutes of measuring"),
    ("make dashboard", "draws the picture of minutes of a run"),
    ("make budget", "changes what `make check` compares with"),
    ("make soak", "half an hour"),
    ("make prove", "minutes to hours"),
    ("make fuzz", "ten minutes a target; needs a C++ compiler"),
];

/// Blocks that another test types to the last word, output included.
const TYPED_ELSEWHERE: [(&str, &str, &str); 3] = [
    (
        "docs/operations.md",
        "console",
        "tests/it/operations/runbook.rs::the_transcript_is_what_the_commands_print",
    ),
    ("docs/operations.md", "text", "tests/it/deployed.rs::the_command_prints_what_the_runbook_shows"),
    ("docs/your-own-lambda.md", "sh", "tests/it/own_lambda.rs::the_page_typed_as_written_does_what_it_shows"),
];

fn listed(line: &str) -> Option<&'static str> {
    let begins =
        |start: &&str| line.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    NOT_TYPED.iter().map(|(start, _)| *start).filter(begins).max_by_key(|start| start.len())
}

fn elsewhere(typed: &Typed) -> Option<&'static str> {
    let is_it = |(document, language, _): &&(&str, &str, &str)| {
        typed.document == *document && typed.language.as_deref() == Some(*language)
    };
    TYPED_ELSEWHERE.iter().find(is_it).map(|(_, _, test)| *test)
}

#[test]
fn every_command_is_typed_or_has_a_reason_and_no_reason_is_left_over() {
    let (mut unused, mut unknown): (BTreeSet<&str>, _) =
        (NOT_TYPED.iter().map(|(start, _)| *start).collect(), vec![]);
    let mut unused_tests: BTreeSet<&str> = TYPED_ELSEWHERE.iter().map(|(_, _, test)| *test).collect();
    for typed in every() {
        if let Some(test) = elsewhere(&typed) {
            unused_tests.remove(test);
            assert!(crate::docs::is_a_test(test), "there is no {test}");
        } else if let Some(start) = listed(&typed.line) {
            unused.remove(start);
        } else if !typed.line.starts_with("charge-once ") {
            unknown.push(typed);
        }
    }
    assert!(unknown.is_empty(), "neither typed nor listed: {unknown:#?}");
    unused.extend(
        special().filter(|part| !every().iter().any(|typed| format!("{} ", typed.line).contains(part))),
    );
    assert_eq!((unused, unused_tests), (BTreeSet::new(), BTreeSet::new()), "listed, but in no document");
}

/// `cargo test ... --test it NAME` and `cargo test ... --lib MODULE::tests::NAME` must run something.
#[test]
fn every_test_that_a_document_runs_exists() {
    let own = std::env::current_exe().unwrap();
    let run = |args: &[&str]| text(&Command::new(&own).args(args).output().unwrap().stdout);
    for typed in every().into_iter().filter(|typed| typed.line.starts_with("cargo test ")) {
        let name = typed.line.split(" -- ").next().unwrap().split(' ').next_back().unwrap();
        let exists = match name.split_once("::tests::") {
            Some((module, function)) => crate::docs::is_a_test(&format!("src/{module}.rs::{function}")),
            None => run(&["--list", name]).contains(": test"),
        };
        assert!(exists, "{typed:?}");
    }
}

/// Types what is to be typed of these commands, each section's in a place of its own, one after the other.
async fn type_all(all: Vec<Typed>) {
    let mut place: Option<(String, Place)> = None;
    for typed in all.into_iter().filter(|typed| elsewhere(typed).is_none() && listed(&typed.line).is_none()) {
        let key = format!("{}#{}", typed.document, typed.section);
        let here = match place.take() {
            Some((at, here)) if at == key => here,
            Some(_) | None => Place::of(&typed.section).await,
        };
        here.types(&typed).await;
        place = Some((key, here));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_does_what_it_says() {
    type_all(commands("README.md")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runbook_does_what_it_says() {
    type_all(commands("docs/operations.md")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_the_worker_does_what_it_says() {
    type_all(commands("docs/worker.md")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_document_does_what_it_says() {
    const ABOVE: [&str; 3] = ["README.md", "docs/operations.md", "docs/worker.md"];
    type_all(every().into_iter().filter(|typed| !ABOVE.contains(&typed.document.as_str())).collect()).await;
}
