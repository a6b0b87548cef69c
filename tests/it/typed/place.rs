//! Where the commands are typed: a folder that looks like the clone, queues with orders and dead letters, a ledger, a
//! provider and a deployed stack, under the names that the documents use.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use charge_once::{
    backoff::Random,
    clock::Clock,
    gateway::simulated::{Script, Simulated},
    queue::{Outgoing, memory::QueueSettings},
    record::{MessageGroupId, TextAttribute},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use super::commands::Typed;
use crate::{
    operations::{Bench, order, text},
    support::{cloud_control::FakeCloudControl, deployed_template::deployed},
    template::TEMPLATE,
};

/// What is written, and what is typed for it: less of the same, a free port, or the stand-in's name.
const INSTEAD: [(&str, &str); 11] = [
    ("--queue 2000 ", "--queue 10 "),
    ("--queue 20000 ", "--queue 10 "),
    ("--queue 150 ", "--queue 60 "),
    ("--count 20000 ", "--count 200 "),
    ("--port 9000", "--port 0"),
    ("--table LEDGER_TABLE", "--table ledger"),
    ("$LEDGER_TABLE-restored", "$LEDGER_TABLE"),
    ("--stack charge-once-prod", "--stack shop"),
    ("111122223333/orders", "111122223333/shop-orders"),
    ("--template FILE", "--template template.yaml"),
    ("local FILE", "local events/01-one-order.json"),
];

/// Commands that end with something else than 0, and what the document says that they find.
const FINDS: [(&str, i32, &str); 1] = [("charge-once local --gateway http --queue 150", 1, "double: ")];

/// Commands that go on until they are told to end, and what they write once they do what they are for.
const GOES_ON: [(&str, &str); 2] =
    [("charge-once worker ", "record done"), ("charge-once local --serve", "The function is up on http://")];

/// How long ago what lies in the ledger was written, in milliseconds: two hours.
const AGO: i64 = 7_200_000;

/// What of a command makes it special here.
pub(super) fn special() -> impl Iterator<Item = &'static str> {
    let instead = INSTEAD.iter().map(|(written, _)| *written);
    instead.chain(FINDS.iter().map(|(start, _, _)| *start)).chain(GOES_ON.iter().map(|(start, _)| *start))
}

pub(super) struct Place {
    bench: Bench,
    provider: Simulated,
    cloud: FakeCloudControl,
    folder: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Place {
    /// The place that a section is about.
    pub(super) async fn of(section: &str) -> Self {
        let bench = match section {
            "FIFO group stuck" => Bench::fifo().await,
            // The page makes its own queue.
            "A load test" => Bench::with(QueueSettings::standard(), "others", "others-dlq").await,
            _ => Bench::start().await,
        };
        let folder = std::env::temp_dir().join(format!("charge-once-typed-{}", Random::System.token()));
        std::fs::create_dir(&folder).unwrap();
        for name in ["events", "scripts", "template.yaml"] {
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            std::os::unix::fs::symlink(there, folder.join(name)).unwrap();
        }
        let provider = Simulated::start(Clock::system(), Script::default()).await.unwrap();
        let cloud = FakeCloudControl::start(deployed(TEMPLATE, &[])).await;
        let place = Self { bench, provider, cloud, folder };
        place.fill(section);
        place
    }

    /// Orders in every state that the runbook knows, and their messages.
    fn fill(&self, section: &str) {
        let record = |id: &str, state: &str, more: Value| {
            let then = Clock::system().now().as_millis() - AGO;
            let mut all = json!({ "first_seen_at": then, "first_sent_at": then, "state_changed_at": then, "lease_until": 0 });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            self.bench.record(&order(id), state, all);
        };
        for n in 11..=20 {
            let id = format!("o-10{n}");
            record(&id, "SENT", json!({ "attention": "UNSETTLED", "error": "GATEWAY:UNKNOWN" }));
            self.bury(&order(&id), None);
        }
        for id in ["o-1002", "o-1003"] {
            record(id, "HELD", json!({ "held_reason": "UNKNOWN_EXPIRED", "attention": "HELD" }));
            self.bury(&order(id), Some("HELD:UNKNOWN_EXPIRED"));
        }
        match section {
            "Suspected double charge" => {
                record("o-1001", "DECLINED", json!({ "fence": 3, "error": "card_declined" }))
            }
            _ => record(
                "o-1001",
                "HELD",
                json!({ "fence": 3, "held_reason": "RESTORED", "attention": "HELD" }),
            ),
        }
        for id in ["o-1006", "first-1"] {
            record(id, "PAID", json!({ "charge_id": format!("ch_{id}") }));
            self.bury(&order(id), None);
        }
        record("o-1007", "SENT", json!({ "lease_until": Clock::system().now().as_millis() - AGO }));
        self.bury("{\"order_id\":\"o-1030\",", Some("BODY_NOT_JSON"));
        for id in ["o-1031", "o-1032"] {
            self.bury(&format!(r#"{{"order_id":"{id}","amount":49.90}}"#), Some("CURRENCY_MISSING"));
        }
        self.bury(&order("o-1002").replace("49", "48"), Some("MISMATCH"));
    }

    fn bury(&self, body: &str, reason: Option<&str>) {
        self.put(self.bench.dlq, body, reason);
    }

    fn put(&self, queue: &str, body: &str, reason: Option<&str>) {
        let attribute = |value: &str| TextAttribute {
            name: "reason".to_owned(),
            data_type: "String".to_owned(),
            value: value.to_owned(),
        };
        let fifo = queue.ends_with(".fifo");
        let message = Outgoing {
            body: body.to_owned(),
            attributes: reason.map(attribute).into_iter().collect(),
            group: fifo.then(|| MessageGroupId::new("customer-7")).flatten(),
            deduplication_id: fifo.then(|| Random::System.token()),
            ..Outgoing::default()
        };
        self.bench.sqs.queues().send_one(queue, message).unwrap();
    }

    /// Types one command: it must end as the document says, and have done something.
    pub(super) async fn types(&self, typed: &Typed) {
        let line = &typed.line;
        if typed.language.is_none() && is_a_name(line) {
            let output = self.command(&format!("{line} --help")).output().await.unwrap();
            assert!(output.status.success(), "{typed:?}: {}", text(&output.stderr));
        } else if let Some((_, sign)) = GOES_ON.iter().find(|(start, _)| line.starts_with(start)) {
            self.until(line, sign).await;
        } else if line == "charge-once dlq cancel --confirm" {
            self.cancel(line).await;
        } else {
            let finds = FINDS.iter().find(|(start, _, _)| line.starts_with(start));
            let output = self.command(line).output().await.unwrap();
            let (code, says) = finds.map_or((0, ""), |(_, code, says)| (*code, *says));
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(code), "{typed:?}: {out}{err}");
            assert!(out.contains(says), "{typed:?}: {out}");
            check(typed, &out);
        }
    }

    fn command(&self, line: &str) -> Command {
        let line = INSTEAD.iter().fold(format!("{line} "), |line, (from, to)| line.replace(from, to));
        let bin = Path::new(env!("CARGO_BIN_EXE_charge-once")).parent().unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec {line}")).current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        self.bench.environment(&mut command);
        command
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("AWS_ENDPOINT_URL_CLOUDCONTROL", self.cloud.url())
            .env("GATEWAY", "http")
            .env("GATEWAY_URL", format!("{}/charges", self.provider.base_url().trim_end_matches('/')))
            .env("GATEWAY_SECRET", "sk_test_local")
            .env("GATEWAY_LOOKUP", "on");
        command
    }

    /// Types it, waits until it writes `sign`, and ends it as Ctrl-C does.
    async fn until(&self, line: &str, sign: &str) {
        self.put("orders", &order("o-2001"), None);
        let mut child = self.command(line).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = async {
            while let Some(written) = lines.next_line().await.unwrap() {
                if written.contains(sign) {
                    return;
                }
            }
            panic!("{line} ended without {sign:?}");
        };
        tokio::time::timeout(Duration::from_secs(60), begun).await.unwrap();
        let id = child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().await.unwrap().success());
        while let Ok(Some(_rest)) = lines.next_line().await {}
        assert_eq!(child.wait().await.unwrap().code(), Some(0), "{line}");
    }

    /// Types it while a task moves slowly.
    async fn cancel(&self, line: &str) {
        for n in 0..100 {
            self.bury(&order(&format!("o-3{n}")), None);
        }
        self.bench.drain("orders").await;
        let watching = self.command("charge-once dlq redrive --native --rate 5 --confirm").spawn().unwrap();
        assert!(!self.bench.receive("orders", Duration::from_secs(20)).await.is_empty(), "the task moves");
        let output = self.command(line).output().await.unwrap();
        assert!(text(&output.stdout).starts_with("CANCELLED: "), "{output:?}");
        assert!(watching.wait_with_output().await.unwrap().status.success());
    }
}

/// `charge-once dlq stats` in a sentence names a command; one with options is meant to be typed.
fn is_a_name(line: &str) -> bool {
    line.split(' ')
        .all(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'))
}

/// A command that found nothing to do has not shown what the document has it for.
fn check(typed: &Typed, out: &str) {
    let Typed { document, line, .. } = typed;
    assert!(line.contains(" > ") || !out.is_empty(), "{typed:?} says nothing");
    let idle = ["0 of ", "0 messages", "nothing", "no order", "[]"];
    assert!(
        !idle.iter().any(|start| out.starts_with(start)) && !out.contains(": no record"),
        "{typed:?}: {out}"
    );
    if line == "charge-once local" {
        let last = out.lines().next_back().unwrap();
        assert!(
            crate::docs::read(document).contains(&format!("\n{last}\n")),
            "{document} shows another end than: {last}"
        );
    }
}
