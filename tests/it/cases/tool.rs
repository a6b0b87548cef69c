//! Cases about event files: they go through the tool that people feed files to.

use std::{path::PathBuf, process::Stdio};

use charge_once::backoff::Random;
use serde_json::Value;
use tokio::process::Command;

use super::{
    case::{Case, Charge, Ending},
    run::bytes,
};

/// Runs `charge-once local FILE` on the case's event, behind a byte order mark, and compares.
pub(super) async fn problems(case: &Case, wanted: Ending) -> Vec<String> {
    let file = EventFile::write(&[b"\xEF\xBB\xBF".as_slice(), &bytes(case).unwrap()].concat());
    let output = Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(["local", "--json", "--bootstrap", env!("CARGO_BIN_EXE_bootstrap")])
        .arg(&file.0)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let mut problems = Vec::new();
    if output.status.success() != (wanted == Ending::Ok) {
        let words = String::from_utf8_lossy(&output.stderr);
        problems.push(format!("the tool ended with {}, must be {wanted:?}: {words}", output.status));
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let charges: Vec<Charge> = report["charges"].as_array().into_iter().flatten().map(charge).collect();
    if case.expect.charges.as_ref().is_some_and(|wanted| *wanted != charges) {
        problems.push(format!("charges {charges:?}, must be {:?}", case.expect.charges));
    }
    problems
}

fn charge(charge: &Value) -> Charge {
    Charge {
        order_id: charge["order_id"].as_str().unwrap_or_default().to_owned(),
        amount_minor: charge["amount_minor"].as_i64().unwrap_or_default(),
        currency: charge["currency"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A file that is removed with this value.
struct EventFile(PathBuf);

impl EventFile {
    fn write(bytes: &[u8]) -> Self {
        let file = std::env::temp_dir().join(format!("charge-once-{}.json", Random::System.token()));
        std::fs::write(&file, bytes).unwrap();
        Self(file)
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}
