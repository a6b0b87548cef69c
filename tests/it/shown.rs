//! What a person sees: local mode's tables, and the picture of them in the README.

#![expect(clippy::unwrap_used, reason = "a command that cannot be run fails the test")]

use std::{path::Path, process::Command};

const PICTURE: &str = include_str!("../../docs/run.svg");

/// What `charge-once` prints into a pipe, without the spaces that end its lines.
fn printed(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_charge-once"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn a_redelivery_is_shown_as_a_duplicate_with_the_same_charge() {
    insta::assert_snapshot!(printed(&["local", "events/01-one-order.json", "--twice"]), @r#"
    01-one-order
    ──────────────────────────────────────────────────────────────────────────────────
     message    order       decision   reason    amount      visible again   charge
    ══════════════════════════════════════════════════════════════════════════════════
     1d6618f7   shop-1001   ack        CHARGED   49.90 EUR                   ch_sim_1
    ──────────────────────────────────────────────────────────────────────────────────
    answer  {"batchItemFailures":[]}
    lambda  deletes all messages

    01-one-order, again
    ────────────────────────────────────────────────────────────────────────────────────
     message    order       decision   reason      amount      visible again   charge
    ════════════════════════════════════════════════════════════════════════════════════
     1d6618f7   shop-1001   ack        DUPLICATE   49.90 EUR                   ch_sim_1
    ────────────────────────────────────────────────────────────────────────────────────
    answer  {"batchItemFailures":[]}
    lambda  deletes all messages

    The ledger, 1 row
    ──────────────────────────────────────────────────────────────────────────────
     order       state   amount      attempt   fence   receives   proof or reason
    ══════════════════════════════════════════════════════════════════════════════
     shop-1001   PAID    49.90 EUR   1         1       1          ch_sim_1
    ──────────────────────────────────────────────────────────────────────────────

    2 events, 2 records: 1 charged, 1 duplicate, 0 poison, 0 retried, 0 held; double charges 0
    "#);
}

/// Without tags, and `&lt;` and its like as what they mean.
fn plain(line: &str) -> String {
    let outside = line.split('<').filter_map(|part| part.split_once('>')).map(|(_tag, text)| text);
    outside.collect::<String>().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// A terminal's width breaks lines and pads columns, so only what is not white is compared.
fn ink(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn the_picture_in_the_readme_is_of_a_real_run() {
    let title = PICTURE.lines().find(|line| line.starts_with("<title>")).map(plain).unwrap();
    // One after the other, so that the charges have the same names each time.
    let words: Vec<&str> = title.split_whitespace().skip(1).chain(["--set", "CONCURRENCY=1"]).collect();
    let texts: String = PICTURE.lines().filter(|line| line.starts_with("<text")).map(plain).collect();
    assert_eq!(ink(&texts), ink(&format!("$ {title} {}", printed(&words))));
}
