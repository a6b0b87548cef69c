//! One function process under measurement, and the stand-ins it talks to.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use charge_once::{
    backoff::Random,
    clock::Clock,
    gateway::simulated::{Script, Simulated},
    generate::{self, Recipe},
    local::{
        dynamodb::DynamoDb,
        environment::{Endpoints, Provider, environment},
        runtime_api::{InvocationOutcome, RuntimeApi},
        sqs_endpoint::SqsEndpoint,
        stack::LEDGER_TABLE,
    },
    queue::memory::MemoryQueues,
};

use super::{BoxError, delay::Delay};

/// What a function runs against.
pub(crate) struct World {
    pub(crate) runtime: RuntimeApi,
    _provider: Simulated,
    environment: BTreeMap<String, String>,
    _dynamodb: DynamoDb,
    _queue: SqsEndpoint,
    _delay: Option<Delay>,
}

/// How long the store and the provider take for one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latency {
    pub(crate) store: Duration,
    pub(crate) provider: Duration,
}

impl World {
    pub(crate) async fn start(
        contract: Provider,
        latency: Latency,
        settings: &[(&str, &str)],
    ) -> Result<Self, BoxError> {
        let clock = Clock::system();
        let dynamodb = DynamoDb::start(None).await?;
        dynamodb.create_table(LEDGER_TABLE)?;
        let latency_ms = u64::try_from(latency.provider.as_millis())?;
        let provider = Simulated::start(clock.clone(), Script { latency_ms, ..Script::default() }).await?;
        let queue = SqsEndpoint::start(MemoryQueues::new(clock.clone(), Random::System)).await?;
        queue.accept_unknown_visibility();
        let runtime = RuntimeApi::start(clock).await?;
        let delay = match latency.store.is_zero() {
            true => None,
            false => Some(Delay::start(&dynamodb.url(), latency.store).await?),
        };
        let dynamodb_url = delay.as_ref().map_or_else(|| dynamodb.url(), Delay::url);
        let mut environment = environment(&Endpoints {
            runtime: runtime.address(),
            dynamodb: &dynamodb_url,
            sqs: queue.url(),
            provider: &provider.base_url(),
            contract,
            table: LEDGER_TABLE,
        });
        environment.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(Self {
            runtime,
            _provider: provider,
            environment,
            _dynamodb: dynamodb,
            _queue: queue,
            _delay: delay,
        })
    }

    /// Starts `command` and waits for its first request for an event; tells how long that took.
    pub(crate) async fn spawn(&self, command: &[String]) -> Result<(Process, Duration), BoxError> {
        let (program, arguments) = command.split_first().ok_or("an empty command")?;
        let mut polls = self.runtime.polls();
        polls.mark_unchanged();
        let began = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .env("PATH", "/usr/bin:/bin")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        let process = Process(child);
        let ready = tokio::time::timeout(Duration::from_secs(30), polls.changed()).await;
        ready.map_err(|_elapsed| format!("{program} did not ask for an event within 30 s"))??;
        Ok((process, began.elapsed()))
    }

    /// Invokes with `event`; an answer that lists a failure is an error here.
    pub(crate) async fn invoke(&self, event: Vec<u8>) -> Result<Duration, BoxError> {
        let began = Instant::now();
        let outcome = self.runtime.invoke(event.into(), Duration::from_secs(600)).await;
        let took = began.elapsed();
        match outcome {
            InvocationOutcome::Response(answer) => {
                let text = String::from_utf8_lossy(&answer).replace(' ', "");
                match text.contains("itemIdentifier") {
                    false => Ok(took),
                    true => Err(format!("failures in {}", text.chars().take(200).collect::<String>()).into()),
                }
            }
            outcome @ (InvocationOutcome::Error(_)
            | InvocationOutcome::Crashed
            | InvocationOutcome::TimedOut) => Err(format!("{outcome:?}").into()),
        }
    }
}

/// A batch of `count` good orders that no other call gives.
pub(crate) fn batch(count: u32, seed: u64) -> Vec<u8> {
    let recipe = Recipe { count, fifo: false, duplicates_percent: 0, poison_percent: 0, seed };
    generate::event(&recipe, Clock::system().now()).to_string().into_bytes()
}

/// A child process, killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    /// The highest resident memory so far, in KiB.
    pub(crate) fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    /// User and system time so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()?.checked_add(fields.get(12)?.parse().ok()?)?;
        // Linux counts in hundredths of a second.
        Some(Duration::from_millis(ticks.checked_mul(10)?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
