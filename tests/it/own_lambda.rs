//! The page "Use the core in your own Lambda", typed as it is written.

#![expect(clippy::unwrap_used, reason = "a page that cannot be followed fails the test")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use uuid::Uuid;

const PAGE: &str = include_str!("../../docs/your-own-lambda.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The insides of the page's code blocks of one language, "" for what is shown.
fn blocks(language: &str) -> Vec<&'static str> {
    let inside = PAGE.split("\n```").skip(1).step_by(2);
    inside
        .filter_map(|block| block.split_once('\n'))
        .filter(|(of, _)| *of == language)
        .map(|(_, text)| text)
        .collect()
}

/// A folder of its own, with the clone beside what is made in it; removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("own-lambda-{}", Uuid::new_v4().simple()));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(root(), folder.join("charge-once")).unwrap();
        Self(folder)
    }

    /// Runs the lines in a shell, as a person would, and gives back what they print.
    fn types(&self, lines: &str, folder: &str) -> String {
        let commands = Path::new(env!("CARGO_BIN_EXE_charge-once")).parent().unwrap();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("PATH=\"$COMMANDS:$PATH\"\n{lines}")])
            .current_dir(self.0.join(folder))
            .env("COMMANDS", commands)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{lines}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What was built is kept between runs, and the versions are those that everything else is tested with.
    fn prepare(&self, folder: &str) {
        let kept =
            Path::new(env!("CARGO_BIN_EXE_charge-once")).ancestors().nth(2).unwrap().join("own-lambda");
        std::fs::create_dir_all(&kept).unwrap();
        std::os::unix::fs::symlink(kept, self.0.join(folder).join("target")).unwrap();
        std::fs::copy(root().join("Cargo.lock"), self.0.join(folder).join("Cargo.lock")).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn trimmed(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

#[test]
fn the_page_shows_the_example() {
    let example = std::fs::read_to_string(root().join("examples/own_function.rs")).unwrap();
    let (_header, code) = example.split_once("\n\n").unwrap();
    assert_eq!(blocks("rust"), [code.trim_end()]);
}

/// Builds the AWS clients with other features than the tests do, so it takes minutes the first time.
#[test]
#[ignore = "long: make peers"]
fn the_page_typed_as_written_does_what_it_shows() {
    let (folder, commands) = (Folder::new(), blocks("sh"));
    folder.types(commands[0], "");
    folder.prepare("receipts");
    std::fs::write(folder.0.join("receipts/src/main.rs"), blocks("rust")[0]).unwrap();
    let shown = folder.types(commands[1], "receipts");
    assert_eq!(trimmed(&shown), trimmed(blocks("")[0]));
}
