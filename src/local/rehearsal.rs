//! The whole life of generated orders on one machine, with an audit at the end.
//!
//! They are sent, delivered through the event source mapping to the real function, retried and dead-lettered, while
//! the function is killed now and then.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, interval};

use crate::{
    generate::{self, Generated, Recipe},
    local::{
        audit::{Audit, Books, Evidence},
        aws_metrics::{AwsMetrics, Totals},
        log::{RecordLine, words},
        mapping::{Counts, Invoke, Mapping, MappingError},
        runtime_api::InvocationOutcome,
        stack::{DEAD_LETTER_QUEUES, Stack, StackError},
        worker_process::{WorkerCommand, WorkerProcess},
    },
    queue::{
        Receive,
        memory::{MemoryQueues, QueueSettings, RedrivePolicy, SqsError},
    },
};

/// The function's timeout in a rehearsal.
pub const FUNCTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a crashed batch stays hidden. AWS advises six times the function's timeout; here nobody has that much
/// time, and what comes back too early meets the lease.
const VISIBILITY: Duration = Duration::from_secs(12);
/// Orders a FIFO group has about: groups run side by side, so many of them end sooner.
const ORDERS_PER_GROUP: u32 = 10;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal {
    /// The messages.
    pub recipe: Recipe,
    /// How often the function's process is killed with SIGKILL.
    pub kill_every: Option<Duration>,
    /// How many batches run at once; with a worker, how many receives.
    pub concurrency: u16,
}

/// Who works on the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// The Lambda function behind the event source mapping.
    Function,
    /// `charge-once worker`, this binary.
    Worker(PathBuf),
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// Messages sent.
    pub messages: usize,
    /// Messages handed to the function, each as often as it was.
    pub deliveries: u64,
    /// Batches handed to the function.
    pub invocations: u64,
    /// Batches without an answer, most of them because the function was killed.
    pub failed: u64,
    /// How often the function was killed.
    pub kills: u64,
    /// Records by decision and reason, as the function logged them.
    pub decisions: BTreeMap<(String, String), u64>,
    /// Messages in the dead-letter queue.
    pub dead: usize,
    /// Who was asked what became of the orders.
    pub books: Books,
    /// Where every order ended.
    pub audit: Audit,
    /// From the first receive to the empty queue.
    pub took: Duration,
    /// The most memory one process of the function has held, in bytes.
    pub peak_memory: Option<u64>,
}

/// Why a rehearsal could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// A stand-in or the function failed.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A queue refused.
    #[error(transparent)]
    Queue(#[from] SqsError),
    /// The worker's process cannot be started or killed.
    #[error("the worker's process cannot be started or killed")]
    Worker(#[source] io::Error),
    /// The worker ended by itself.
    #[error("the worker ended by itself: {0}")]
    WorkerEnded(String),
}

impl From<MappingError<StackError>> for RehearsalError {
    fn from(error: MappingError<StackError>) -> Self {
        match error {
            MappingError::Queue(error) => Self::Queue(error),
            MappingError::Function(error) => Self::Stack(error),
        }
    }
}

impl Invoke for Stack {
    type Error = StackError;

    async fn invoke(&self, event: Bytes) -> Result<InvocationOutcome, StackError> {
        self.outcome_of(event).await
    }
}

impl Rehearsal {
    /// The function's settings for it: short times, so that retries come while one looks on.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let concurrency = self.concurrency.to_string();
        let mut settings = vec![
            ("AWS_LAMBDA_MAX_CONCURRENCY", concurrency.as_str()),
            ("CHARGE_TIMEOUT", "1s"),
            ("LEASE_SECONDS", "5"),
            ("BACKOFF_BASE", "1s"),
            ("BACKOFF_CAP", "15s"),
            ("MAX_RECEIVE_COUNT", MAX_RECEIVE_COUNT.1),
        ];
        let dlq_url = format!("http://127.0.0.1/{}", self.dead_letter_queue());
        if self.recipe.fifo {
            // As the template has it: a poison head leaves its group at once.
            settings.extend([("POISON_MODE", "dlq"), ("DLQ_URL", dlq_url.as_str())]);
        }
        settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Sends everything, works until the queue is empty, and looks for every order. `counts` moves meanwhile.
    ///
    /// # Errors
    /// The function does not start, or a stand-in fails. Orders lost or charged twice are no error; the audit
    /// names them.
    pub async fn run(
        &self,
        stack: &Stack,
        consumer: &Consumer,
        counts: &Counts,
    ) -> Result<Rehearsed, RehearsalError> {
        let sent = self.send(stack.queues())?;
        let begun = Instant::now();
        let Consumed { kills, peak_memory } = match consumer {
            Consumer::Function => self.through_function(stack, counts).await?,
            Consumer::Worker(charge_once) => self.through_worker(stack, charge_once).await?,
        };
        let took = begun.elapsed();
        let decisions = decisions(&stack.take_log()?);
        let dead = drain(stack.queues(), self.dead_letter_queue()).await?;
        let books = match consumer {
            Consumer::Function => stack.books()?,
            Consumer::Worker(_) => Books::Both,
        };
        let evidence =
            Evidence { books, sent: &sent, charges: &stack.charges(), ledger: &stack.ledger()?, dead: &dead };
        Ok(Rehearsed {
            messages: sent.len(),
            deliveries: match consumer {
                Consumer::Function => counts.deliveries(),
                Consumer::Worker(_) => decisions.values().fold(0, |sum, count| sum.saturating_add(*count)),
            },
            invocations: counts.invocations(),
            failed: counts.failed(),
            kills,
            decisions,
            dead: dead.len(),
            books,
            audit: Audit::of(&evidence, self.recipe.fifo),
            took,
            peak_memory,
        })
    }

    async fn through_function(&self, stack: &Stack, counts: &Counts) -> Result<Consumed, RehearsalError> {
        let mapping = Mapping {
            queues: stack.queues(),
            queue: self.queue(),
            batch_size: 10,
            concurrency: self.concurrency.into(),
        };
        let mut kills = 0;
        let mut metrics = AwsMetrics {
            stack,
            counts,
            queue: self.queue(),
            dead_letter_queue: self.dead_letter_queue(),
            sent: self.recipe.count.into(),
            told: Totals::default(),
        };
        tokio::select! {
            result = mapping.run_until_empty(stack, counts) => result?,
            result = self.kill_now_and_then(stack, &mut kills) => match result? {},
            result = metrics.tell_every_second() => match result? {},
        }
        metrics.tell()?;
        Ok(Consumed { kills, peak_memory: stack.peak_memory().await })
    }

    async fn through_worker(&self, stack: &Stack, charge_once: &Path) -> Result<Consumed, RehearsalError> {
        let command = WorkerCommand {
            charge_once: charge_once.to_owned(),
            queue: self.queue(),
            loops: self.concurrency,
            visibility: VISIBILITY,
        };
        let mut worker = command.start(stack).map_err(RehearsalError::Worker)?;
        let mut consumed = Consumed::default();
        let (mut look, mut kill) = (interval(LOOK), interval(self.kill_every.unwrap_or(Duration::MAX)));
        kill.reset();
        while stack.queues().depth(self.queue())?.total() > 0 {
            tokio::select! {
                _ = look.tick() => {}
                result = worker.ended() => return Err(gave_up(stack, result)?),
                _ = kill.tick(), if self.kill_every.is_some() => {
                    consumed.note(&worker);
                    worker.kill().await.map_err(RehearsalError::Worker)?;
                    worker = command.start(stack).map_err(RehearsalError::Worker)?;
                    consumed.kills = consumed.kills.saturating_add(1);
                }
            }
        }
        consumed.note(&worker);
        Ok(consumed)
    }

    /// The name of the queue the orders go through.
    pub fn queue(&self) -> &'static str {
        if self.recipe.fifo { "orders.fifo" } else { "orders" }
    }

    fn dead_letter_queue(&self) -> &'static str {
        let [standard, fifo] = DEAD_LETTER_QUEUES;
        if self.recipe.fifo { fifo } else { standard }
    }

    fn send(&self, queues: &MemoryQueues) -> Result<Vec<Generated>, SqsError> {
        let base = if self.recipe.fifo { QueueSettings::fifo() } else { QueueSettings::standard() };
        let redrive = RedrivePolicy {
            dead_letter_queue: MemoryQueues::arn(self.dead_letter_queue()),
            max_receive_count: MAX_RECEIVE_COUNT.0,
        };
        let settings = QueueSettings { visibility: VISIBILITY, redrive: Some(redrive), ..base };
        queues.create(self.queue(), settings)?;
        let groups = self.recipe.count.div_euclid(ORDERS_PER_GROUP);
        let sent: Vec<Generated> = generate::messages(&self.recipe, groups).collect();
        for (number, message) in sent.iter().cloned().enumerate() {
            // A producer that sends an order again gives it a new id, or the queue would drop it.
            let deduplication_id = self.recipe.fifo.then(|| number.to_string());
            queues.send_one(self.queue(), message.outgoing(deduplication_id))?;
        }
        Ok(sent)
    }

    async fn kill_now_and_then(&self, stack: &Stack, kills: &mut u64) -> Result<Infallible, StackError> {
        let Some(period) = self.kill_every else { return std::future::pending().await };
        loop {
            tokio::time::sleep(period).await;
            stack.restart_function().await?;
            *kills = kills.saturating_add(1);
        }
    }
}

/// What a consumer had to bear, and what it took.
#[derive(Debug, Default)]
struct Consumed {
    kills: u64,
    peak_memory: Option<u64>,
}

impl Consumed {
    fn note(&mut self, worker: &WorkerProcess) {
        self.peak_memory = self.peak_memory.max(worker.peak_memory());
    }
}

/// The last thing a worker wrote before it ended by itself.
fn gave_up(stack: &Stack, ended: io::Result<()>) -> Result<RehearsalError, RehearsalError> {
    ended.map_err(RehearsalError::Worker)?;
    let line = stack.take_log()?.pop().unwrap_or_default();
    Ok(RehearsalError::WorkerEnded(words(&line)))
}

/// How often one looks whether a worker has emptied the queue.
const LOOK: Duration = Duration::from_millis(100);

/// How often a message may be received: enough for a charge that takes half a minute to be decided, and for kills.
const MAX_RECEIVE_COUNT: (u32, &str) = (16, "16");

/// The bodies in a queue, which is empty afterwards.
async fn drain(queues: &MemoryQueues, queue: &str) -> Result<Vec<String>, SqsError> {
    let receive = Receive { max_messages: 10, wait: Duration::ZERO, visibility: None };
    let mut bodies = Vec::new();
    loop {
        let messages = queues.receive_from(queue, receive).await?;
        if messages.is_empty() {
            return Ok(bodies);
        }
        for message in messages {
            queues.delete_one(queue, &message.receipt_handle)?;
            bodies.push(message.body);
        }
    }
}

fn decisions(log: &[String]) -> BTreeMap<(String, String), u64> {
    let mut decisions = BTreeMap::<_, u64>::new();
    for record in log.iter().filter_map(|line| RecordLine::parse(line)) {
        let count = decisions.entry((record.text("decision"), record.text("reason"))).or_default();
        *count = count.saturating_add(1);
    }
    decisions
}
