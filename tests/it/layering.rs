//! The shape of the source: imports point one way, AWS is named at the edges only, files and functions stay small.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a source file that cannot be read fails the test"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The modules of the library from the ground up. Each may import those before it and nothing else of the crate.
const LAYERS: [&str; 32] = [
    "clock",
    "deadline",
    "backoff",
    "telemetry",
    "money",
    "record",
    "order",
    "envelope",
    "payload",
    "decision",
    "event",
    "queue",
    "ledger",
    "gateway",
    "charge",
    "batch",
    "visibility",
    "metrics",
    "response",
    "report",
    "spans",
    "heartbeat",
    "handler",
    "worker",
    "config",
    "clients",
    "wiring",
    "lambda",
    "generate",
    "local",
    "redrive",
    "doctor",
];

/// Where crates of AWS may be named. `event.rs` reads events without them, because their types refuse a whole
/// batch for one bad record.
const AWS_EDGES: [&str; 9] = [
    "response",
    "handler",
    "lambda",
    "clients",
    "ledger/dynamodb",
    "queue/sqs",
    "payload/s3",
    "doctor/deployed/cloud_control",
    "bin/",
];
const AWS_CRATES: [&str; 5] = ["aws_sdk_", "aws_config", "aws_smithy", "aws_lambda_events", "lambda_runtime"];

/// Lines of code: without tests, comments and empty lines.
const LONGEST_FILE: usize = 300;
/// Files with more lines of code, each with the reason why it stays whole.
const LONG_FILES: [(&str, &str); 1] =
    [("ledger/transition.rs", "the table of transitions with its conditions")];

const LONGEST_FUNCTION: usize = 50;
/// Functions with more lines, and why they stay whole.
const LONG_FUNCTIONS: &[(&str, &str)] = &[
    ("ledger/transition.rs: apply", "the table of transitions, one arm a row"),
    ("ledger/dynamodb/expression.rs: from", "the same table as expressions, one arm a row"),
    ("gateway/simulated/refusal.rs: answer", "the table of refusals, one arm a row"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every source file by its path below `src/`, without comments and tests.
pub(crate) fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&root, &mut found);
    found
        .into_iter()
        .map(|path| (path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(name, _)| !name.ends_with("tests.rs") && !name.contains("/tests/"))
        .map(|(name, path)| (name, code(&std::fs::read_to_string(path).unwrap())))
        .collect()
}

fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")).collect()
}

/// The top-level module that a file belongs to.
fn module(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The top-level modules named behind `crate::`, also in `use crate::{a, b::c}`.
fn imports(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut at_start = true;
        for (at, c) in list.char_indices() {
            if at_start && depth == 0 && !c.is_whitespace() && c != '}' {
                found.insert(name(&list[at..]));
                at_start = false;
            }
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => at_start = true,
                _ => {}
            }
        }
    }
    found.remove("");
    found
}

#[test]
fn imports_point_one_way() {
    let rank = |module: &str| LAYERS.iter().position(|layer| *layer == module);
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        let module = module(&file);
        if ["bin", "lib"].contains(&module) {
            continue;
        }
        let Some(own) = rank(module) else {
            wrong.push(format!("{file}: give its module a place in LAYERS"));
            continue;
        };
        for import in imports(&code) {
            match rank(&import) {
                _ if import == module => {}
                Some(other) if other < own => {}
                Some(_) => wrong.push(format!("{file}: {module} must not import {import}")),
                None => wrong.push(format!("{file}: {import} has no place in LAYERS")),
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_order_in_the_documentation_is_this_one() {
    let document =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let line = document.lines().find(|line| line.starts_with("`clock` ")).unwrap();
    let shown: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    let sources = sources();
    let exists = |layer: &&str| sources.keys().any(|file| module(file) == *layer);
    assert_eq!(shown, LAYERS.into_iter().filter(exists).collect::<Vec<_>>());
}

#[test]
fn the_import_check_sees_every_form() {
    let code = "use crate::clock::Clock;\nuse crate::{\n    order::{Order, OrderId},\n    record,\n};\nlet x = crate::money::f();";
    assert_eq!(imports(code), ["clock", "money", "order", "record"].map(str::to_owned).into());
}

#[test]
fn aws_is_named_at_the_edges_only() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|(file, _)| !AWS_EDGES.iter().any(|edge| file.starts_with(edge)))
        .filter(|(_, code)| AWS_CRATES.iter().any(|name| code.contains(name)))
        .map(|(file, _)| file)
        .collect();
    assert_eq!(wrong, [""; 0]);
}

/// What is begun belongs to whoever began it: a `JoinSet` ends its tasks. A task that nobody owns would stop in the
/// middle when Lambda freezes the process after the answer. The invocation is
/// such a task; on its way there is none.
#[test]
fn nothing_is_left_running() {
    const DETACHED: [&str; 5] =
        ["tokio::spawn(", "task::spawn(", "spawn_blocking(", "spawn_local(", "thread::spawn("];
    let way = &LAYERS[..=LAYERS.iter().position(|layer| *layer == "handler").unwrap()];
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|(file, code)| {
            let on_the_way = way.contains(&module(file)) && !file.starts_with("gateway/simulated");
            DETACHED.iter().any(|call| code.contains(call)) || on_the_way && code.contains(".spawn(")
        })
        .map(|(file, _)| file)
        .collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn long_files_are_the_known_ones() {
    let long: BTreeSet<String> = sources()
        .into_iter()
        .filter(|(_, code)| code.lines().count() > LONGEST_FILE)
        .map(|(file, _)| file)
        .collect();
    assert_eq!(long, LONG_FILES.iter().map(|(file, _)| (*file).to_owned()).collect());
}

/// Name and length of every function; the formatter puts the closing brace below the first letter of its line.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let qualifiers = ["async", "const", "pub", "pub(super)", "pub(crate)"];
        if !before.split_whitespace().all(|word| qualifiers.contains(&word)) {
            continue;
        }
        // A signature of a trait without a body ends in a semicolon.
        let signature_ends = lines[at..].iter().find(|line| line.ends_with(['{', ';', '}']));
        if !signature_ends.is_some_and(|line| line.ends_with('{')) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let name = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if let Some(length) = lines[at..].iter().position(|line| *line == close) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn long_functions_are_the_known_ones() {
    let long: BTreeSet<String> = sources()
        .into_iter()
        .flat_map(|(file, code)| {
            let functions = functions(&code).into_iter().filter(|(_, length)| *length > LONGEST_FUNCTION);
            functions.map(move |(name, _)| format!("{file}: {name}")).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(long, LONG_FUNCTIONS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// What `make prove`, `make soak` and `make peers` run is ignored otherwise; nothing else may be.
#[test]
fn no_test_is_switched_off() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("src"), &mut found);
    files(&root.join("tests"), &mut found);
    let mut off = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("#[ignore")) {
            let function = lines[at..].iter().find(|line| line.contains("fn ")).copied().unwrap_or_default();
            let module = path.to_string_lossy();
            if !["prove", "soak", "_peers", "own_lambda"]
                .iter()
                .any(|word| function.contains(word) || module.contains(word))
            {
                off.push(format!("{}: {function}", path.display()));
            }
        }
    }
    assert_eq!(off, [""; 0]);
}
