//! `charge-once local --serve` as a place to practise: what it prints is enough for every other command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// A served function with what it says of its surroundings.
struct Served {
    _process: Child,
    variables: BTreeMap<String, String>,
}

impl Served {
    async fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_charge-once"))
            .args(["local", "--serve", "--port", "0", "--bootstrap", env!("CARGO_BIN_EXE_bootstrap")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut variables = BTreeMap::new();
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.contains("ledger list")) {
            if let Some((name, value)) = line.strip_prefix("  export ").and_then(|line| line.split_once('='))
            {
                variables.insert(name.to_owned(), value.to_owned());
            }
        }
        Self { _process: process, variables }
    }

    /// Types a command in a terminal that knows nothing but what was printed.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
        command.args(words.split_whitespace()).env_clear().envs(&self.variables);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn document(&self, words: &str) -> Value {
        let output = self.command(words).output().await.unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[tokio::test]
async fn the_other_commands_work_on_what_is_served() {
    let served = Served::start().await;
    // It is as `queue create` makes it.
    let queue = served.document("queue create orders --json").await;
    assert_eq!(queue["queue_url"], served.variables["QUEUE_URL"]);
    served.document("queue send --json --count 20 --poison 20% --seed 3").await;
    let left = async || {
        let depth = served.document("queue depth --json").await;
        ["waiting", "in_flight", "delayed"].map(|name| depth[name].as_u64().unwrap()).iter().sum::<u64>()
    };
    assert_eq!(left().await, 20);
    let _worker = served.command("worker").stdout(Stdio::null()).spawn().unwrap();
    while left().await > 0 {}
    let dead = served.document("dlq stats --json").await;
    let dead = dead["total"].as_u64().unwrap();
    assert!((1..20).contains(&dead), "{dead}");
    // Whatever left the queue otherwise was charged: nothing is held or in doubt.
    for attention in ["held", "unsettled", "abandoned"] {
        let listed = served.document(&format!("ledger list --json --attention {attention}")).await;
        assert_eq!(listed, json!([]), "{attention}");
    }
}
