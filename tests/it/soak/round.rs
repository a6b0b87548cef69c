//! One round of the soak: orders in, everything failing, every order looked for at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
    time::{Duration, Instant},
};

use charge_once::{
    clock::Clock,
    gateway::simulated::Script,
    generate::{self, Generated, Recipe},
    local::{
        audit::{Audit, Books, Evidence},
        environment::Provider,
        mapping::Counts,
        rehearsal::Rehearsal,
        stack::{DEAD_LETTER_QUEUES, LEDGER_TABLE, Stack, StackConfig},
    },
    queue::{
        Outgoing, Receive,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy},
    },
};
use tokio::{process::Command, time::interval};

use super::{
    consumers::{SKEWS, Sandbox, VISIBILITY, worker},
    throttle::Throttle,
};

/// One of the three processes is killed so often.
const KILL_EVERY: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(250);
const TELL_EVERY: Duration = Duration::from_secs(15);
/// How often a message may be received; the settings of [`Rehearsal`] say the same to the function.
const MAX_RECEIVE_COUNT: u32 = 16;
/// A dead letter is sent back so often at most. Chance alone decides what the provider does, so few need a second time.
const REDRIVES: u32 = 10;
const ORDERS_PER_GROUP: u32 = 10;

/// What a round was like.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) messages: usize,
    pub(super) deliveries: u64,
    pub(super) kills: u64,
    pub(super) throttled: usize,
    pub(super) redriven: usize,
    pub(super) took: Duration,
    /// When the queue was empty for the first time.
    pub(super) before: Audit,
    /// After the sweep, and after what it could not settle was sent again.
    pub(super) after: Audit,
}

struct Field {
    stack: Stack,
    sandboxes: Vec<Sandbox>,
    recipe: Recipe,
    throttle: Throttle,
}

pub(super) async fn round(seed: u64, orders: u32) -> Round {
    let begun = Instant::now();
    let fifo = seed.is_multiple_of(2);
    let recipe = Recipe { count: orders, fifo, duplicates_percent: 5, poison_percent: 1, seed };
    let field = Field::lay_out(recipe).await;
    let sent = field.send();
    let mut round = Round { messages: sent.len(), ..Round::default() };
    field.work(&mut round).await;
    let mut dead = field.drain().await;
    round.before = field.audit(&sent, &dead, fifo);
    for _ in 0..REDRIVES {
        field.sweep().await;
        let (open, settled) = field.unsettled(&sent, dead);
        dead = settled;
        if open.is_empty() {
            break;
        }
        round.redriven += open.len();
        open.into_iter().enumerate().for_each(|(number, body)| field.put(number, body));
        field.work(&mut round).await;
        dead.extend(field.drain().await);
    }
    // What was sent again is late on purpose, so order is judged by what was so before.
    round.after = field.audit(&sent, &dead, false);
    round.throttled = field.throttle.throttled();
    round.took = begun.elapsed();
    round
}

impl Field {
    async fn lay_out(recipe: Recipe) -> Self {
        let throttle = Throttle::start().await;
        let rehearsal = Rehearsal { recipe, kill_every: None, concurrency: 1 };
        let mut settings: BTreeMap<_, _> = rehearsal.settings();
        settings.insert("AWS_ENDPOINT_URL_DYNAMODB".into(), throttle.url());
        let config = StackConfig {
            bootstrap: env!("CARGO_BIN_EXE_bootstrap").into(),
            provider: Provider::Stripe,
            script: Script::parse(&format!("mixed,seed={}", recipe.seed)).unwrap(),
            data: None,
            log: None,
            settings,
            timeout: Duration::from_secs(10),
            clock: Clock::system(),
        };
        let stack = Stack::without_function(config).await.unwrap();
        throttle.connect_to(&stack.dynamodb_url());
        let mut sandboxes = Vec::new();
        for skew in SKEWS {
            sandboxes.push(Sandbox::start(&stack, skew).await);
        }
        Self { stack, sandboxes, recipe, throttle }
    }

    fn queue(&self) -> &'static str {
        if self.recipe.fifo { "orders.fifo" } else { "orders" }
    }

    fn dead_letter_queue(&self) -> &'static str {
        let [standard, fifo] = DEAD_LETTER_QUEUES;
        if self.recipe.fifo { fifo } else { standard }
    }

    fn send(&self) -> Vec<Generated> {
        let base = if self.recipe.fifo { QueueSettings::fifo() } else { QueueSettings::standard() };
        let redrive = RedrivePolicy {
            dead_letter_queue: MemoryQueues::arn(self.dead_letter_queue()),
            max_receive_count: MAX_RECEIVE_COUNT,
        };
        let settings = QueueSettings { visibility: VISIBILITY, redrive: Some(redrive), ..base };
        self.stack.queues().create(self.queue(), settings).unwrap();
        let sent: Vec<_> =
            generate::messages(&self.recipe, self.recipe.count.div_ceil(ORDERS_PER_GROUP)).collect();
        for (number, message) in sent.iter().cloned().enumerate() {
            let outgoing = message.outgoing(self.recipe.fifo.then(|| number.to_string()));
            self.stack.queues().send_one(self.queue(), outgoing).unwrap();
        }
        sent
    }

    /// Sends a dead letter's body again, each in a group of its own.
    fn put(&self, number: usize, body: String) {
        let message = Generated { body, order_id: None, group: format!("redriven-{number}") };
        let id =
            self.recipe.fifo.then(|| Clock::system().now().as_millis().to_string() + &number.to_string());
        let outgoing: Outgoing = message.outgoing(id);
        self.stack.queues().send_one(self.queue(), outgoing).unwrap();
    }

    /// All three work until the queue is empty, while one of them is killed now and then.
    async fn work(&self, round: &mut Round) {
        let counts = Counts::default();
        let [ahead, behind] = &self.sandboxes[..] else { unreachable!("there are two") };
        let empty = async {
            tokio::join!(
                ahead.consume(&self.stack, self.queue(), &counts),
                behind.consume(&self.stack, self.queue(), &counts)
            );
        };
        tokio::select! {
            () = empty => {}
            () = self.disturb(&mut round.kills) => {}
        }
        round.deliveries += counts.deliveries();
    }

    /// Keeps a worker at work and kills the three by turns; never ends.
    async fn disturb(&self, kills: &mut u64) {
        let mut worker_process = worker(&self.stack, self.queue());
        let (mut look, mut kill, mut tell) = (interval(LOOK), interval(KILL_EVERY), interval(TELL_EVERY));
        kill.reset();
        loop {
            tokio::select! {
                _ = look.tick() => drop(self.stack.take_log()),
                _ = tell.tick() => {
                    let left = self.stack.queues().depth(self.queue()).unwrap().total();
                    println!(
                        "  round {}: {left} messages left, {} charged, {kills} kills",
                        self.recipe.seed,
                        self.stack.charges().len()
                    );
                }
                _ = kill.tick() => {
                    match *kills % 3 {
                        0 => self.sandboxes[0].kill().await,
                        1 => self.sandboxes[1].kill().await,
                        _ => {
                            worker_process.kill().await.unwrap();
                            worker_process = worker(&self.stack, self.queue());
                        }
                    }
                    *kills += 1;
                }
            }
        }
    }

    /// The bodies in the dead-letter queue, which is empty afterwards.
    async fn drain(&self) -> Vec<String> {
        let receive = Receive { max_messages: 10, wait: Duration::ZERO, visibility: None };
        let (queues, name) = (self.stack.queues(), self.dead_letter_queue());
        let mut bodies = Vec::new();
        loop {
            let messages = queues.receive_from(name, receive).await.unwrap();
            if messages.is_empty() {
                return bodies;
            }
            for message in messages {
                queues.delete_one(name, &message.receipt_handle).unwrap();
                bodies.push(message.body);
            }
        }
    }

    /// What an operator types: `charge-once ledger sweep`.
    async fn sweep(&self) {
        let status = Command::new(env!("CARGO_BIN_EXE_charge-once"))
            .args(["ledger", "sweep", "--table", LEDGER_TABLE])
            .args(["--older-than", "0s", "--abandoned", "--limit", "100000", "--confirm"])
            .env_clear()
            .envs(self.stack.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap();
        println!("  round {}: swept: {status}", self.recipe.seed);
    }

    /// The dead letters of usable orders that have no final state, and the others.
    fn unsettled(&self, sent: &[Generated], dead: Vec<String>) -> (Vec<String>, Vec<String>) {
        let rows = self.stack.ledger().unwrap();
        let settled: BTreeSet<&str> = rows
            .iter()
            .filter(|row| ["PAID", "DECLINED", "HELD"].contains(&row["state"].as_str().unwrap_or_default()))
            .filter_map(|row| row.get("pk")?.as_str()?.strip_prefix("order#"))
            .collect();
        let open: BTreeSet<&str> = sent
            .iter()
            .filter(|message| message.order_id.as_deref().is_some_and(|order_id| !settled.contains(order_id)))
            .map(|message| message.body.as_str())
            .collect();
        dead.into_iter().partition(|body| open.contains(body.as_str()))
    }

    fn audit(&self, sent: &[Generated], dead: &[String], in_order: bool) -> Audit {
        let (charges, ledger) = (self.stack.charges(), self.stack.ledger().unwrap());
        Audit::of(&Evidence { books: Books::Both, sent, charges: &charges, ledger: &ledger, dead }, in_order)
    }
}
