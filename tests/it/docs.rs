//! The documents are held to the code: what they list must be all there is, and what they name must exist.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a document that cannot be read fails the test"
)]
#![expect(clippy::print_stdout, reason = "the run in the documentation is what this prints")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use charge_once::{
    clock::Clock,
    config::SETTINGS,
    doctor::RULES,
    gateway::simulated::Script,
    local::{
        environment::Provider,
        sample::freshened,
        stack::{Stack, StackConfig},
    },
    metrics::Counts,
};
use serde_json::Value;

/// The metrics that are no counters.
pub(crate) const TIMES: [&str; 3] = ["OrderAgeMs", "ProviderLatencyMs", "StoreLatencyMs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every document of the repository.
pub(crate) fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "events", "tests/cases"];
    let mut found: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(root().join(folder)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

/// The cells of every table row below the heading `## {heading}`, without the head of the table.
fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let start = format!("## {heading}");
    let section = document.lines().skip_while(|line| *line != start).skip(1);
    let rows: Vec<Vec<String>> = section
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|') && !line.starts_with("|-"))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert!(rows.len() > 1, "there is no table below \"{start}\"");
    rows.into_iter().skip(1).collect()
}

/// Every text between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// What the first cells below the heading name, in backticks.
fn named(document: &str, heading: &str) -> BTreeSet<String> {
    let rows = rows(document, heading);
    rows.iter().flat_map(|row| quoted(&row[0])).map(str::to_owned).collect()
}

#[test]
fn the_settings_in_the_documentation_are_those_of_the_code() {
    let document = read("docs/configuration.md");
    let documented: BTreeMap<String, String> = rows(&document, "Every variable")
        .iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].trim_matches('`').to_owned()))
        .collect();
    let read_by_the_code: BTreeMap<String, String> =
        SETTINGS.iter().map(|setting| (setting.name.to_owned(), setting.default.to_owned())).collect();
    assert_eq!(documented, read_by_the_code);
}

#[test]
fn the_metrics_in_the_documentation_are_those_of_the_code() {
    let documented = named(&read("docs/observability.md"), "Metrics");
    let written: BTreeSet<String> =
        Counts::NAMES.iter().chain(&TIMES).map(|name| (*name).to_owned()).collect();
    assert_eq!(documented, written);
}

/// The documented fields of log lines.
pub(crate) fn log_fields() -> BTreeSet<String> {
    named(&read("docs/observability.md"), "Log fields")
}

/// The JSON lines that the document shows of a run.
fn sample(document: &str) -> Vec<Value> {
    let lines = document.lines().skip_while(|line| *line != "## A run");
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn fields(lines: &[Value]) -> BTreeSet<String> {
    let objects = lines.iter().filter_map(Value::as_object).filter(|line| !line.contains_key("_aws"));
    objects.flat_map(serde_json::Map::keys).cloned().collect()
}

/// The line without what is different in every run; of several values, how many.
fn steady(line: &Value) -> Value {
    const CHANGING: [&str; 7] = [
        "/timestamp",
        "/request_id",
        "/duration_ms",
        "/_aws/Timestamp",
        "/OrderAgeMs",
        "/ProviderLatencyMs",
        "/StoreLatencyMs",
    ];
    let mut line = line.clone();
    for place in CHANGING {
        if let Some(value) = line.pointer_mut(place) {
            *value = value.as_array().map_or(0, Vec::len).into();
        }
    }
    line
}

/// `cargo test --all-features --test it docs::the_run -- --nocapture` prints what the document shows.
#[tokio::test]
async fn the_run_in_the_documentation_is_a_real_one() {
    let stack = Stack::start(StackConfig {
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")),
        provider: Provider::Http,
        script: Script::default(),
        data: None,
        log: None,
        // One after the other, so that the charges have the same names each time.
        settings: BTreeMap::from([("CONCURRENCY".to_owned(), "1".to_owned())]),
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    })
    .await
    .unwrap();
    let event = freshened(read("events/02-mixed-batch.json").as_bytes(), Clock::system().now());
    let log = stack.invoke(event).await.unwrap().log;
    log.iter().for_each(|line| println!("{line}"));
    let real: Vec<Value> = log.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();

    let document = read("docs/observability.md");
    let shown = sample(&document);
    let same = |lines: &[Value]| lines.iter().map(steady).collect::<Vec<_>>();
    assert_eq!(same(&shown), same(&real));
    let documented = log_fields();
    let missing: Vec<_> = fields(&real).difference(&documented).cloned().collect();
    assert_eq!(missing, [""; 0], "fields that are logged and not documented");
}

/// The names in `tracing` calls and spans, such as `receive_count = ...`.
#[test]
fn every_field_that_the_code_logs_is_documented() {
    let documented = log_fields();
    let mut unknown = BTreeSet::new();
    for (file, text) in crate::layering::sources() {
        for call in calls(&text) {
            for field in fields_of(&call) {
                if !documented.contains(&field) {
                    unknown.insert(format!("{field} in {file}"));
                }
            }
        }
    }
    assert_eq!(unknown, BTreeSet::new());
}

/// Texts in capitals, such as `AMOUNT_PRECISION`: the codes of reasons.
fn codes(text: &str) -> BTreeSet<&str> {
    let is_code = |text: &&str| {
        text.len() > 3
            && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_:".contains(c))
    };
    text.split('"').skip(1).step_by(2).filter(is_code).collect()
}

#[test]
fn every_reason_is_documented() {
    let document = read("docs/observability.md");
    const FILES: [&str; 7] =
        ["record.rs", "envelope.rs", "money.rs", "order/", "decision.rs", "charge/", "ledger/lease.rs"];
    let mut unknown = BTreeSet::new();
    for (file, text) in crate::layering::sources() {
        if FILES.iter().any(|name| file.starts_with(name)) {
            let missing = codes(&text).into_iter().filter(|code| !document.contains(code));
            unknown.extend(missing.map(|code| format!("{code} in {file}")));
        }
    }
    assert_eq!(unknown, BTreeSet::new());
}

/// The arguments of every log macro and span.
fn calls(text: &str) -> Vec<String> {
    const MACROS: [&str; 7] =
        ["error!(", "warn!(", "info!(", "debug!(", "trace!(", "info_span!(", "$level!("];
    let mut calls = Vec::new();
    for name in MACROS {
        for (at, _) in text.match_indices(&format!("tracing::{name}")) {
            let open = at + "tracing::".len() + name.len();
            let mut depth = 1;
            let inside = text[open..].chars().take_while(|c| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                depth > 0
            });
            calls.push(inside.collect());
        }
    }
    calls
}

/// Fields that are given as `name = value` or as a lone name.
fn fields_of(call: &str) -> Vec<String> {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let mut fields = Vec::new();
    for argument in top_level(call) {
        let name = argument.split(" = ").next().unwrap().trim().trim_start_matches(['%', '?']);
        if is_name(name) {
            fields.push(name.to_owned());
        }
    }
    fields
}

/// Splits at the commas outside of brackets and texts.
fn top_level(call: &str) -> Vec<String> {
    let (mut depth, mut in_text) = (0, false);
    let mut parts = vec![String::new()];
    for c in call.chars() {
        match c {
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' | ']' | '}' if !in_text => depth -= 1,
            ',' if !in_text && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    parts
}

/// The anchors that GitHub gives a document's headings.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let known = file.exists()
                && (anchor.is_empty() || anchors(&std::fs::read_to_string(&file).unwrap()).contains(anchor));
            if !known {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_make_target_in_the_documents_exists() {
    let makefile = read("Makefile");
    let mut unknown = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        let commands = text.split("make ").skip(1).zip(text.split("make "));
        // Only in backticks or at the start of a line: "make" is also an English word.
        for (rest, before) in commands.filter(|(_, before)| before.ends_with(['`', '\n', '$'])) {
            let target: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
            if !target.is_empty() && !makefile.contains(&format!("\n{target}: ")) {
                unknown.push(format!(
                    "{}: make {target} (after {:?})",
                    path.display(),
                    before.lines().last()
                ));
            }
        }
    }
    assert_eq!(unknown, [""; 0]);
}

/// Paths in backticks, such as `src/batch/mod.rs` or `docs/`.
#[test]
fn every_file_that_the_documents_name_exists() {
    const FOLDERS: [&str; 6] = ["src/", "tests/", "docs/", "events/", "scripts/", "examples/"];
    let mut missing = BTreeSet::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for name in quoted(&text) {
            let is_path =
                FOLDERS.iter().any(|folder| name.starts_with(folder)) && !name.contains([' ', '*', '{']);
            // `src/clock.rs::a_test` names a test, see below.
            let file = name.split("::").next().unwrap();
            if is_path && !root().join(file).exists() {
                missing.insert(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

/// Paths such as `$root/benches/peers/python` in what is not compiled.
#[test]
fn every_file_that_a_script_names_exists() {
    const FOLDERS: [&str; 6] = ["src/", "tests/", "docs/", "events/", "benches/", "scripts/"];
    let mut scripts = vec![root().join("Makefile"), root().join("Dockerfile")];
    for folder in ["scripts", "scripts/lib"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        scripts.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    }
    let mut missing = BTreeSet::new();
    for path in scripts {
        let text = std::fs::read_to_string(&path).unwrap();
        let of_a_path = |c: char| c.is_ascii_alphanumeric() || "/._-$".contains(c);
        for word in text.split(|c| !of_a_path(c)) {
            let name = word.trim_start_matches("$root/").trim_end_matches('.');
            if FOLDERS.iter().any(|folder| name.starts_with(folder)) && !root().join(name).exists() {
                missing.insert(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

/// Whether the document's name for a test leads to one: a function of a file, a rule of doctor, each of which has a
/// mutation, or a file.
pub(crate) fn is_a_test(name: &str) -> bool {
    if let Some((file, function)) = name.split_once("::") {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        return text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<"));
    }
    let is_rule = RULES.iter().copied().flatten().any(|rule| rule.id == name);
    is_rule || root().join(name).is_file()
}

#[test]
fn every_scenario_has_a_test_or_a_reason() {
    let document = read("docs/scenarios.md");
    let mut wrong = Vec::new();
    let mut numbers = BTreeSet::new();
    for line in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| no.")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[number, _, notices] = cells.as_slice() else { panic!("three cells: {line}") };
        let named = quoted(notices);
        let tests = named.iter().filter(|name| is_a_test(name)).count();
        let unknown = named.iter().filter(|name| name.contains("::") && !is_a_test(name));
        wrong.extend(unknown.map(|name| format!("{number}: there is no {name}")));
        if tests == 0 && !notices.starts_with("does not apply: ") {
            wrong.push(format!("{number}: neither a test nor a reason"));
        }
        if !numbers.insert(number) {
            wrong.push(format!("{number}: twice"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// The names left of `=` in the dependency tables of `Cargo.toml`.
fn dependencies() -> BTreeSet<String> {
    let manifest = read("Cargo.toml");
    let mut in_table = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_table = ["[dependencies]", "[dev-dependencies]"].contains(&line);
        } else if let (true, Some((name, _))) = (in_table, line.split_once(" = ")) {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn every_dependency_has_a_reason() {
    assert_eq!(named(&read("ARCHITECTURE.md"), "Dependencies"), dependencies());
}
