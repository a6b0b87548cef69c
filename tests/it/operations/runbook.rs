//! The runbook's transcript is what its commands print.

use std::{path::Path, sync::atomic::Ordering};

use charge_once::{backoff::Random, clock::Clock, queue::Outgoing};
use serde_json::json;
use tokio::process::Command;

use super::{Bench, attribute, order, text};

const RUNBOOK: &str = include_str!("../../../docs/operations.md");

/// The lines of the runbook's blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}");
    let mut inside = false;
    let mut lines = Vec::new();
    for line in RUNBOOK.lines() {
        match line {
            "```" => inside = false,
            line if line == fence => inside = true,
            line if inside => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// A shell in which `charge-once` is what was just built.
fn shell(line: &str) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_charge-once")).parent().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).kill_on_drop(true);
    command
}

/// Twelve dead letters after an outage: in doubt, charged after all, held, malformed, declined.
async fn after_an_outage() -> Bench {
    let bench = Bench::start().await;
    // Three days and four hours, and half an hour so that the test may take its time.
    bench.ahead.store(-275_400_000, Ordering::SeqCst);
    let sent = Clock::system().now().as_millis() - 275_400_000;
    let base =
        json!({ "first_seen_at": sent, "first_sent_at": sent, "state_changed_at": sent, "lease_until": 0 });
    let with = |more: serde_json::Value| {
        let mut all = base.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for n in 1..=5 {
        let order = order(&format!("o-100{n}"));
        bench.record(&order, "SENT", with(json!({ "attention": "UNSETTLED", "error": "GATEWAY:UNKNOWN" })));
        bench.bury(&order, None);
    }
    let paid = order("o-1006");
    bench.record(&paid, "PAID", with(json!({ "charge_id": "ch_1006" })));
    bench.bury(&paid, None);
    let held = order("o-1007");
    let why =
        json!({ "held_reason": "UNKNOWN_EXPIRED", "attention": "HELD", "fence": 2, "message_id": "m-7" });
    bench.record(&held, "HELD", with(why));
    bench.bury(&held, Some("HELD:UNKNOWN_EXPIRED"));
    for n in 8..=9 {
        let order = order(&format!("o-100{n}"));
        bench.record(&order, "DECLINED", with(json!({ "error": "card_declined" })));
        bench.bury(&order, Some("DECLINED:card_declined"));
    }
    for _ in 0..3 {
        let message = Outgoing {
            body: "{\"order_id\":\"o-1010\",".to_owned(),
            attributes: vec![attribute("reason", "BODY_NOT_JSON")],
            ..Outgoing::default()
        };
        bench.sqs.queues().send_one(bench.dlq, message).unwrap();
    }
    bench.ahead.store(0, Ordering::SeqCst);
    bench
}

/// What differs from run to run: points in time.
fn timeless(line: &str) -> String {
    let words = line.trim_end().split(' ').map(|word| {
        let is_time = (20..=24).contains(&word.len()) && word.starts_with("20") && word.ends_with('Z');
        if is_time { "TIME" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transcript_is_what_the_commands_print() {
    let bench = after_an_outage().await;
    let folder = std::env::temp_dir().join(format!("charge-once-test-{}", Random::System.token()));
    std::fs::create_dir(&folder).unwrap();
    let written = blocks("console");
    let typed: Vec<&str> = written.iter().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(typed.len() > 8, "{typed:?}");
    let mut printed = Vec::new();
    for line in typed {
        printed.push(format!("$ {line}"));
        let mut command = shell(line);
        bench.environment(&mut command);
        let output = command.current_dir(&folder).output().await.unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        printed.extend(out.lines().chain(err.lines()).map(str::to_owned));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let same = |lines: &[String]| lines.iter().map(|line| timeless(line)).collect::<Vec<_>>();
    let written: Vec<String> =
        written.iter().filter(|line| !line.is_empty()).map(|line| (*line).to_owned()).collect();
    let printed: Vec<String> = printed.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(same(&written), same(&printed), "it prints:\n{}", printed.join("\n"));
}
