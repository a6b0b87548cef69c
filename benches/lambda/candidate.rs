//! What is measured, and beside what.

use std::path::{Path, PathBuf};

/// A function that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
    /// Whether it does the work, or only answers.
    pub(crate) works: bool,
}

/// The crate's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of a build, beside the build of this harness: `target/PROFILE/NAME`.
pub(crate) fn built(profile: &str, name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap_or_default();
    deps.ancestors().nth(3).unwrap_or(Path::new("target")).join(profile).join(name)
}

/// The binary that is deployed.
pub(crate) fn charge_once() -> Candidate {
    Candidate {
        name: "charge-once",
        command: vec![built("release", "bootstrap").to_string_lossy().into_owned()],
        works: true,
    }
}

/// Everything that is there: what needs python3 or node is left out without them.
pub(crate) fn all() -> Vec<Candidate> {
    let empty = built("release", "examples/empty_function");
    let mut candidates = vec![
        charge_once(),
        Candidate {
            name: "an empty function",
            command: vec![empty.to_string_lossy().into_owned()],
            works: false,
        },
    ];
    candidates.extend([python(), node()].into_iter().flatten());
    candidates
}

/// Where `scripts/tools` has installed a peer; none where the tools for that are missing, and it says which.
fn installed(set: &str) -> Option<String> {
    let output = std::process::Command::new(root().join("scripts/tools"))
        .arg(set)
        .stderr(std::process::Stdio::inherit())
        .output()
        .ok()?;
    let folder = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    Some(folder).filter(|_folder| output.status.success())
}

fn python() -> Option<Candidate> {
    let programs = installed("bench")?;
    let folder = root().join("benches/peers/python");
    let start = format!(
        "import sys, runpy; sys.path.insert(0, {:?}); sys.argv = ['awslambdaric', 'handler.handler']; \
         runpy.run_module('awslambdaric', run_name='__main__')",
        folder.to_string_lossy()
    );
    let command = vec![format!("{programs}/python"), "-c".to_owned(), start];
    Some(Candidate { name: "Powertools for Python", command, works: true })
}

fn node() -> Option<Candidate> {
    let modules = installed("bench-node")?;
    let start = root().join("benches/peers/node/runtime.cjs");
    let command = vec!["node".to_owned(), start.to_string_lossy().into_owned(), modules];
    Some(Candidate { name: "Powertools for Node", command, works: true })
}
