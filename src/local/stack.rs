//! Everything the function needs, on loopback: ledger table, provider, queue endpoint, Runtime API and the
//! function's own process, started again after it died, as Lambda does.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{
    backoff::Random,
    clock::Clock,
    gateway::simulated::{Script, Simulated, SimulatedCharge},
    local::{
        answer::{self, Reading},
        audit::Books,
        dynamodb::{DatabaseError, DynamoDb, Row},
        environment::{Endpoints, Provider, environment},
        function::{Function, FunctionError},
        log::{Log, RecordLine},
        runtime_api::{InvocationOutcome, RuntimeApi},
        sqs_endpoint::{SqsEndpoint, VisibilityCall},
    },
    queue::memory::{MemoryQueues, QueueSettings, SqsError},
};

/// The ledger's table in local mode.
pub const LEDGER_TABLE: &str = "charge-once-local";

/// The dead-letter queues that `DLQ_URL` may name; only the last part of the URL counts.
pub const DEAD_LETTER_QUEUES: [&str; 2] = ["orders-dlq", "orders-dlq.fifo"];

/// What to start.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The function's binary.
    pub bootstrap: PathBuf,
    /// Which of the provider's contracts the function speaks.
    pub provider: Provider,
    /// What goes wrong at the provider.
    pub script: Script,
    /// Where the ledger is kept; in memory if `None`.
    pub data: Option<PathBuf>,
    /// Where the function's log is kept; in a file without a name if `None`.
    pub log: Option<PathBuf>,
    /// Settings of the function beside those that local mode makes; they win.
    pub settings: BTreeMap<String, String>,
    /// The function's timeout.
    pub timeout: Duration,
    /// The time of provider, queue and deadlines. The function's process always has the machine's.
    pub clock: Clock,
}

/// Why the stack cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A loopback port or the log file cannot be had.
    #[error("local mode could not use {what}")]
    Io {
        /// What was wanted.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The embedded DynamoDB refuses.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A queue cannot be made.
    #[error(transparent)]
    Queue(#[from] SqsError),
    /// The function does not run.
    #[error(transparent)]
    Function(#[from] FunctionError),
}

impl StackError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// What one invocation did.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What the function answered.
    pub outcome: InvocationOutcome,
    /// What became of each record, in the order of the function's log.
    pub records: Vec<RecordLine>,
    /// Everything the function wrote.
    pub log: Vec<String>,
    /// The charges that moved money meanwhile.
    pub charges: Vec<SimulatedCharge>,
    /// The visibility changes the queue was asked for meanwhile.
    pub visibility: Vec<VisibilityCall>,
}

impl Invocation {
    /// How an event source mapping reads the outcome for `event`: an error keeps the whole batch.
    pub fn reading(&self, event: &[u8]) -> Option<Reading> {
        match &self.outcome {
            InvocationOutcome::Response(answer) => Some(answer::read(answer, &message_ids(event))),
            InvocationOutcome::Error(_) | InvocationOutcome::Crashed | InvocationOutcome::TimedOut => None,
        }
    }
}

/// The message ids of an event.
pub fn message_ids(event: &[u8]) -> BTreeSet<String> {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let records = event.get("Records").and_then(Value::as_array).into_iter().flatten();
    records.filter_map(|record| record.get("messageId")?.as_str().map(str::to_owned)).collect()
}

fn dead_letter_queues(clock: &Clock) -> Result<MemoryQueues, StackError> {
    let queues = MemoryQueues::new(clock.clone(), Random::System);
    for name in DEAD_LETTER_QUEUES {
        let fifo = name.ends_with(".fifo");
        queues.create(name, if fifo { QueueSettings::fifo() } else { QueueSettings::standard() })?;
    }
    Ok(queues)
}

/// The running stack; everything ends when it is dropped.
#[derive(Debug)]
pub struct Stack {
    bootstrap: PathBuf,
    timeout: Duration,
    environment: BTreeMap<String, String>,
    runtime: Arc<RuntimeApi>,
    dynamodb: DynamoDb,
    provider: Simulated,
    queue: SqsEndpoint,
    log: Log,
    function: Mutex<Option<Function>>,
    peak_memory: AtomicU64,
}

impl Stack {
    /// Starts everything and waits until the function asks for its first event.
    ///
    /// # Errors
    /// Something cannot be started; the function's own complaint about a setting is [`FunctionError::Init`].
    pub async fn start(config: StackConfig) -> Result<Self, StackError> {
        let stack = Self::without_function(config).await?;
        stack.ensure_running().await?;
        Ok(stack)
    }

    /// Starts everything but the function, whose place another process takes; an invocation would start it.
    ///
    /// # Errors
    /// Something cannot be started.
    pub async fn without_function(config: StackConfig) -> Result<Self, StackError> {
        let port = "a loopback port";
        let dynamodb = DynamoDb::start(config.data.as_deref()).await?;
        dynamodb.create_table(LEDGER_TABLE)?;
        let provider =
            Simulated::start(config.clock.clone(), config.script).await.map_err(StackError::io(port))?;
        let queues = dead_letter_queues(&config.clock)?;
        let queue = SqsEndpoint::start(queues).await.map_err(StackError::io(port))?;
        queue.accept_unknown_visibility();
        let runtime = Arc::new(RuntimeApi::start(config.clock).await.map_err(StackError::io(port))?);
        let mut environment = environment(&Endpoints {
            runtime: runtime.address(),
            dynamodb: &dynamodb.url(),
            sqs: queue.url(),
            provider: &provider.base_url(),
            contract: config.provider,
            table: LEDGER_TABLE,
        });
        environment.extend(config.settings);
        Ok(Self {
            bootstrap: config.bootstrap,
            timeout: config.timeout,
            environment,
            runtime,
            dynamodb,
            provider,
            queue,
            log: match &config.log {
                Some(path) => Log::create_at(path).map_err(StackError::io("the file for the log"))?,
                None => Log::create().map_err(StackError::io("a temporary file"))?,
            },
            function: Mutex::new(None),
            peak_memory: AtomicU64::new(0),
        })
    }

    /// Invokes the function with `event` and tells what it did. Meant for one invocation at a time: what others
    /// do meanwhile shows in the same lists.
    ///
    /// # Errors
    /// The function died earlier and does not start again.
    pub async fn invoke(&self, event: impl Into<Bytes>) -> Result<Invocation, StackError> {
        let (charges, changes) = (self.provider.charges().len(), self.queue.visibility_changes().len());
        let outcome = self.outcome_of(event.into()).await?;
        let log = self.take_log()?;
        Ok(Invocation {
            outcome,
            records: log.iter().filter_map(|line| RecordLine::parse(line)).collect(),
            log,
            charges: self.provider.charges().split_off(charges),
            visibility: self.visibility().split_off(changes),
        })
    }

    /// Invokes the function with `event`; several calls may run at once.
    ///
    /// # Errors
    /// The function died earlier and does not start again.
    pub async fn outcome_of(&self, event: Bytes) -> Result<InvocationOutcome, StackError> {
        self.ensure_running().await?;
        let outcome = self.runtime.invoke(event, self.timeout).await;
        if outcome == InvocationOutcome::TimedOut {
            // Lambda ends the sandbox too: the function must not go on after its timeout.
            self.kill_function().await;
        }
        Ok(outcome)
    }

    /// Kills the function's process; the next invocation starts a new one.
    pub async fn kill_function(&self) {
        self.kill(&mut *self.function.lock().await).await;
    }

    /// Kills the function's process (SIGKILL) and starts a new one, before any further invocation.
    ///
    /// # Errors
    /// The function does not start again.
    pub async fn restart_function(&self) -> Result<(), StackError> {
        let mut function = self.function.lock().await;
        self.kill(&mut function).await;
        self.start_function(&mut function).await
    }

    /// The most memory that any of the function's processes has held, in bytes; `None` where the system does not
    /// tell.
    pub async fn peak_memory(&self) -> Option<u64> {
        self.note_memory(self.function.lock().await.as_ref());
        Some(self.peak_memory.load(Ordering::Relaxed)).filter(|peak| *peak > 0)
    }

    /// Every charge that moved money since the start.
    pub fn charges(&self) -> Vec<SimulatedCharge> {
        self.provider.charges()
    }

    /// Every visibility change since the start.
    pub fn visibility(&self) -> Vec<VisibilityCall> {
        self.queue.visibility_changes()
    }

    /// The ledger's rows, ordered by key.
    ///
    /// # Errors
    /// The embedded DynamoDB refuses.
    pub fn ledger(&self) -> Result<Vec<Row>, StackError> {
        Ok(self.dynamodb.rows(LEDGER_TABLE)?)
    }

    /// Puts a row into the ledger, as if an earlier delivery had left it.
    ///
    /// # Errors
    /// The embedded DynamoDB refuses.
    pub fn put_row(&self, row: &Row) -> Result<(), StackError> {
        Ok(self.dynamodb.put(LEDGER_TABLE, row)?)
    }

    /// The queues behind the SQS endpoint.
    pub fn queues(&self) -> &MemoryQueues {
        self.queue.queues()
    }

    /// The URL of the queue of that name at the SQS endpoint.
    pub fn queue_url(&self, name: &str) -> String {
        self.queue.queue_url(name)
    }

    /// Every variable of the function's process.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Where the function writes to.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Who knows what became of the orders: somebody's own function need not use the provider or the ledger.
    ///
    /// # Errors
    /// The embedded DynamoDB refuses.
    pub fn books(&self) -> Result<Books, StackError> {
        Ok(match Function::is_own(&self.bootstrap) {
            true => Books::Both,
            false => Books::of_foreign(&self.charges(), &self.ledger()?),
        })
    }

    /// Where the embedded DynamoDB listens.
    pub fn dynamodb_url(&self) -> String {
        self.dynamodb.url()
    }

    /// The simulated provider.
    pub fn provider(&self) -> &Simulated {
        &self.provider
    }

    /// What the function wrote since the last invocation or call.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn take_log(&self) -> Result<Vec<String>, StackError> {
        self.log.take().map_err(StackError::io("the function's log"))
    }

    /// Adds a line to the function's log.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn write_log(&self, line: &str) -> Result<(), StackError> {
        self.log.write(line).map_err(StackError::io("the function's log"))
    }

    async fn ensure_running(&self) -> Result<(), StackError> {
        let mut function = self.function.lock().await;
        if function.as_ref().is_none_or(Function::has_ended) {
            self.start_function(&mut function).await?;
        }
        Ok(())
    }

    async fn start_function(&self, function: &mut Option<Function>) -> Result<(), StackError> {
        let runtime = Arc::clone(&self.runtime);
        *function = Some(Function::start(&self.bootstrap, &self.environment, &self.log, runtime).await?);
        Ok(())
    }

    async fn kill(&self, function: &mut Option<Function>) {
        self.note_memory(function.as_ref());
        if let Some(function) = function.take() {
            function.kill().await;
        }
    }

    fn note_memory(&self, function: Option<&Function>) {
        let peak = function.and_then(Function::peak_memory).unwrap_or_default();
        self.peak_memory.fetch_max(peak, Ordering::Relaxed);
    }
}
