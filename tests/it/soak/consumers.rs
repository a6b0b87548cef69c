//! Who works on the queue in the soak: two functions and a worker, each by a clock of its own, killed now and then.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use charge_once::{
    clock::{Clock, Timestamp},
    local::{
        function::{Function, FunctionError},
        log::Log,
        mapping::{Counts, Invoke, Mapping},
        runtime_api::{InvocationOutcome, RuntimeApi},
        stack::Stack,
        worker_process::{WorkerCommand, WorkerProcess},
    },
};
use tokio::sync::Mutex;

/// How far the clocks of the functions are off; the worker's is the machine's. Ten seconds lie between the two, twice
/// what a lease allows for.
pub(super) const SKEWS: [i64; 2] = [5_000, -5_000];
/// What Lambda allows an invocation.
const TIMEOUT: Duration = Duration::from_secs(10);
/// For how long the queue hides what a consumer has received.
pub(super) const VISIBILITY: Duration = Duration::from_secs(12);
/// Batches of one function at once, and receives of the worker.
const AT_ONCE: u16 = 3;

/// The binary with a clock that can be wrong, which `cargo test` builds with the examples.
fn skewed() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bootstrap")).with_file_name("examples").join("skewed")
}

/// One function on a machine of its own: its Runtime API goes by the same wrong clock.
pub(super) struct Sandbox {
    runtime: Arc<RuntimeApi>,
    environment: BTreeMap<String, String>,
    log: Log,
    function: Mutex<Option<Function>>,
}

impl Sandbox {
    pub(super) async fn start(stack: &Stack, skew: i64) -> Self {
        let right = Clock::system();
        let clock = Clock::from_fn(move || Timestamp::from_millis(right.now().as_millis() + skew));
        let runtime = Arc::new(RuntimeApi::start(clock).await.unwrap());
        let mut environment = stack.environment().clone();
        environment.insert("AWS_LAMBDA_RUNTIME_API".into(), runtime.address().to_string());
        environment.insert("AWS_LAMBDA_MAX_CONCURRENCY".into(), AT_ONCE.to_string());
        environment.insert("SKEW_MS".into(), skew.to_string());
        Self { runtime, environment, log: Log::create().unwrap(), function: Mutex::default() }
    }

    /// Kills the process (SIGKILL); the next batch starts another.
    pub(super) async fn kill(&self) {
        if let Some(function) = self.function.lock().await.take() {
            function.kill().await;
        }
    }

    /// Works on the queue until it is empty.
    pub(super) async fn consume(&self, stack: &Stack, queue: &str, counts: &Counts) {
        let mapping = Mapping { queues: stack.queues(), queue, batch_size: 10, concurrency: AT_ONCE.into() };
        mapping.run_until_empty(self, counts).await.unwrap();
    }
}

impl Invoke for Sandbox {
    type Error = FunctionError;

    async fn invoke(&self, event: Bytes) -> Result<InvocationOutcome, FunctionError> {
        {
            let mut function = self.function.lock().await;
            if function.as_ref().is_none_or(Function::has_ended) {
                let runtime = Arc::clone(&self.runtime);
                match Function::start(&skewed(), &self.environment, &self.log, runtime).await {
                    Ok(started) => *function = Some(started),
                    // Too slow on a busy machine; Lambda would try again, too.
                    Err(FunctionError::Init(_)) => return Ok(InvocationOutcome::Crashed),
                    Err(error) => return Err(error),
                }
            }
        }
        let outcome = self.runtime.invoke(event, TIMEOUT).await;
        if outcome == InvocationOutcome::TimedOut {
            self.kill().await;
        }
        // Nobody reads it, and it would fill the disk.
        drop(self.log.take());
        Ok(outcome)
    }
}

/// The worker's process, by the machine's clock.
pub(super) fn worker(stack: &Stack, queue: &'static str) -> WorkerProcess {
    let command = WorkerCommand { charge_once: skewed(), queue, loops: AT_ONCE, visibility: VISIBILITY };
    command.start(stack).unwrap()
}
