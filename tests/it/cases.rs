//! Behaviour cases: every file of `tests/cases/`, and of the folder `CASES_DIR`, through the real bootstrap.
//!
//! The format is described in `tests/cases/README.md`.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

mod case;
mod check;
mod run;
mod tool;

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokio::task::JoinSet;

use case::Case;

#[tokio::test]
async fn every_case_holds() {
    let mut files = json_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"));
    assert!(!files.is_empty(), "tests/cases holds no case");
    files.extend(folder_named_by("CASES_DIR").iter().flat_map(|folder| json_files(folder)));
    let count = files.len();
    let failures = run_all(files).await;
    assert!(failures.is_empty(), "{} of {count} cases failed:\n{}", failures.len(), failures.join("\n"));
    println!("{count} cases passed");
}

/// Runs the cases a few at a time, each with a stack of its own, and tells what failed.
async fn run_all(files: Vec<PathBuf>) -> Vec<String> {
    const AT_ONCE: usize = 4;
    let (mut running, mut failures) = (JoinSet::new(), Vec::new());
    let mut files = files.into_iter();
    loop {
        while running.len() < AT_ONCE
            && let Some(file) = files.next()
        {
            running.spawn(async move { problems(&file).await });
        }
        match running.join_next().await {
            Some(problems) => failures.extend(problems.unwrap()),
            None => break,
        }
    }
    failures.sort();
    failures
}

/// What is wrong with one case, in one text that begins with the file's name.
async fn problems(file: &Path) -> Option<String> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(file).unwrap();
    let problems = match serde_json::from_str::<Case>(&text) {
        Ok(case) => run::problems(&case).await,
        Err(error) => vec![format!("cannot be read: {error}")],
    };
    (!problems.is_empty()).then(|| format!("{name}\n  {}", problems.join("\n  ")))
}

#[expect(clippy::disallowed_methods, reason = "tests have no settings of their own to read it through")]
fn folder_named_by(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(name).filter(|value| !value.is_empty())?);
    // `cargo test` runs in the package's folder, as whoever typed the path most likely did.
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}
