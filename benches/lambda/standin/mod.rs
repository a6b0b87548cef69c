//! What a function runs against: Runtime API, store and provider on loopback, all in the process of the bench.

pub(crate) mod http;
pub(crate) mod provider;
pub(crate) mod runtime;
pub(crate) mod store;

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use self::{
    http::{Response, Server},
    runtime::{Runtime, Said},
    store::{Store, Usage},
};
use crate::{BoxError, candidate::Candidate, process::Process};

/// Which of the provider's contracts is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contract {
    /// One call that charges: claim, charge, record.
    #[default]
    OneShot,
    /// Claim, prepare, store, commit, record.
    TwoPhase,
}

impl Contract {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneShot => "one-shot",
            Self::TwoPhase => "two-phase",
        }
    }
}

/// How long the store and the provider take for one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latency {
    pub(crate) store: Duration,
    pub(crate) provider: Duration,
}

impl Latency {
    pub(crate) fn millis(store: u64, provider: u64) -> Self {
        Self { store: Duration::from_millis(store), provider: Duration::from_millis(provider) }
    }
}

/// The stand-ins, and how a function is told of them.
pub(crate) struct World {
    pub(crate) contract: Contract,
    pub(crate) latency: Latency,
    pub(crate) concurrency: u32,
}

impl Default for World {
    fn default() -> Self {
        Self { contract: Contract::default(), latency: Latency::default(), concurrency: 10 }
    }
}

/// A running function with its own stand-ins.
pub(crate) struct Function {
    // The process first, so that it is gone before its stand-ins are.
    pub(crate) process: Process,
    pub(crate) runtime: Runtime,
    store: Store,
    _provider: Server,
    _queue: Server,
    /// From exec to the first request for an event.
    pub(crate) start: Duration,
}

/// How long a function may take to ask for an event; under valgrind it does.
const PATIENCE: Duration = Duration::from_secs(60);

impl World {
    /// Starts the candidate and waits until it asks for an event.
    pub(crate) fn start(&self, candidate: &Candidate) -> Result<Function, BoxError> {
        let runtime = Runtime::start()?;
        let store = Store::start(self.latency.store)?;
        let provider = provider::start(self.latency.provider)?;
        // Accepts whatever it is asked; only what fails is made visible again.
        let queue = Server::start(|_request| Some(Response::json(200, r#"{"Successful":[],"Failed":[]}"#)))?;
        let (program, arguments) = candidate.command.split_first().ok_or("an empty command")?;
        let began = Instant::now();
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(self.environment(&runtime, &store, &provider, &queue))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let ready = wait(&runtime, &mut child);
        let stderr = child.stderr.take();
        let process = Process(child);
        match ready {
            Ok(at) => {
                // Read by nobody: a function that writes much there must not wait.
                std::thread::spawn(move || {
                    stderr.map(|mut pipe| std::io::copy(&mut pipe, &mut std::io::sink()))
                });
                let start = at.duration_since(began);
                Ok(Function { process, runtime, store, _provider: provider, _queue: queue, start })
            }
            Err(why) => {
                drop(process);
                let mut words = String::new();
                stderr.map(|mut pipe| pipe.read_to_string(&mut words)).transpose()?;
                Err(format!("{} {why}\n{words}", candidate.name).into())
            }
        }
    }

    /// What Lambda sets, and the settings.
    fn environment(
        &self,
        runtime: &Runtime,
        store: &Store,
        provider: &Server,
        queue: &Server,
    ) -> Vec<(&'static str, String)> {
        let (gateway, path) = match self.contract {
            Contract::OneShot => ("http", "/charges"),
            Contract::TwoPhase => ("stripe", ""),
        };
        let fixed = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LANG", "en_US.UTF-8"),
            ("AWS_REGION", "eu-central-1"),
            // The SDKs for Python and Node look at this one alone or first; Lambda sets both.
            ("AWS_DEFAULT_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            ("AWS_SESSION_TOKEN", "token"),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
            ("AWS_LAMBDA_FUNCTION_NAME", "charge-once"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("LEDGER_TABLE", "ledger"),
            ("GATEWAY", gateway),
            ("GATEWAY_SECRET", "sk_test_bench"),
        ];
        let mut variables: Vec<_> = fixed.map(|(name, value)| (name, value.to_owned())).into();
        variables.extend([
            ("AWS_LAMBDA_RUNTIME_API", runtime.server.address.to_string()),
            ("AWS_ENDPOINT_URL_DYNAMODB", store.url()),
            ("AWS_ENDPOINT_URL_SQS", queue.url()),
            ("GATEWAY_URL", format!("{}{path}", provider.url())),
            ("CONCURRENCY", self.concurrency.to_string()),
        ]);
        variables
    }
}

/// When the function asked for its first event, or why it did not.
fn wait(runtime: &Runtime, child: &mut Child) -> Result<Instant, String> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match runtime.listen(Duration::from_millis(50)) {
            Some(Said::Next(at)) => return Ok(at),
            Some(Said::Error(words)) => return Err(format!("could not start: {words}")),
            Some(Said::Answer(..)) | None => {}
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("ended with {status} before it asked for an event"));
        }
    }
    Err("did not ask for an event".to_owned())
}

impl Function {
    pub(crate) fn invoke(&self, event: Vec<u8>) -> Result<Duration, BoxError> {
        self.runtime.invoke(event)
    }

    /// What the store was asked for so far.
    pub(crate) fn usage(&self) -> Usage {
        self.store.usage()
    }
}
