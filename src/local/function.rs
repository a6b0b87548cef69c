//! The deployed binary as a child process: the very `bootstrap` that Lambda runs.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::{
    process::{Child, Command},
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::local::{
    log::{Log, words},
    runtime_api::RuntimeApi,
};

/// How long Lambda gives a function to become ready.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the function does not run.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// There is no such file.
    #[error("there is no function at {}: build it with `cargo build --bin bootstrap`, or name it with --bootstrap PATH", .0.display())]
    Missing(PathBuf),
    /// The process could not be made.
    #[error("{} could not be started", .path.display())]
    Spawn {
        /// The binary.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It ended, or was silent for too long, before it asked for an event.
    #[error("the function did not become ready: {0}")]
    Init(String),
}

/// A running function; killed when dropped.
#[derive(Debug)]
pub struct Function {
    process: Option<u32>,
    kill: Arc<Notify>,
    ended: watch::Receiver<bool>,
    supervisor: JoinSet<()>,
}

impl Function {
    /// Where the binary lies unless told otherwise: beside the running executable.
    ///
    /// # Errors
    /// The system does not say where the running executable lies.
    pub fn beside_this_executable() -> io::Result<PathBuf> {
        let name = format!("bootstrap{}", std::env::consts::EXE_SUFFIX);
        Ok(std::env::current_exe()?.with_file_name(name))
    }

    /// Whether this is the binary that was built with this executable, and not a function of somebody's own.
    pub fn is_own(bootstrap: &Path) -> bool {
        let real = |path: PathBuf| path.canonicalize().ok();
        let own = Self::beside_this_executable().ok().and_then(real);
        own.is_some() && own == real(bootstrap.to_owned())
    }

    /// Starts `bootstrap` with exactly the variables of `environment` and waits until it asks for an event.
    ///
    /// # Errors
    /// The file is missing or cannot be run, or the function ended instead of becoming ready.
    pub async fn start(
        bootstrap: &Path,
        environment: &BTreeMap<String, String>,
        log: &Log,
        runtime: Arc<RuntimeApi>,
    ) -> Result<Self, FunctionError> {
        let mut polls = runtime.polls();
        polls.mark_unchanged();
        let child = spawn(bootstrap, environment, log)?;
        let process = child.id();
        let kill = Arc::new(Notify::new());
        let (ending, mut ended) = watch::channel(false);
        let mut supervisor = JoinSet::new();
        supervisor.spawn(supervise(child, Arc::clone(&kill), ending, Arc::clone(&runtime)));
        let ready = tokio::time::timeout(INIT_TIMEOUT, async {
            tokio::select! {
                polled = polls.changed() => polled.is_ok(),
                _ = ended.wait_for(|ended| *ended) => false,
            }
        });
        if ready.await.unwrap_or(false) {
            return Ok(Self { process, kill, ended, supervisor });
        }
        Err(FunctionError::Init(last_words(&runtime, log)))
    }

    /// Whether the process is gone.
    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Kills the process (SIGKILL) and waits until it is gone and its invocations have failed.
    pub async fn kill(mut self) {
        self.kill.notify_one();
        self.supervisor.join_next().await;
    }

    /// The most memory the process has held so far, in bytes; `None` where the system does not tell.
    pub fn peak_memory(&self) -> Option<u64> {
        peak_memory(self.process?)
    }
}

/// The most memory a process, or one that it has started, has held so far, in bytes; `None` where the system does not
/// tell. The runtimes of some languages serve invocations from children.
pub(crate) fn peak_memory(process: u32) -> Option<u64> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(process).chain(children).filter_map(peak_of_one).max()
}

fn peak_of_one(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn spawn(
    bootstrap: &Path,
    environment: &BTreeMap<String, String>,
    log: &Log,
) -> Result<Child, FunctionError> {
    let failed = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound {
            FunctionError::Missing(bootstrap.to_owned())
        } else {
            FunctionError::Spawn { path: bootstrap.to_owned(), source }
        }
    };
    Command::new(bootstrap)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(log.writer().map_err(failed)?)
        .stderr(log.writer().map_err(failed)?)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)
}

/// Waits for the process to end, or ends it, and fails the invocations that wait for it.
async fn supervise(
    mut child: Child,
    kill: Arc<Notify>,
    ending: watch::Sender<bool>,
    runtime: Arc<RuntimeApi>,
) {
    let killed = tokio::select! {
        _status = child.wait() => false,
        () = kill.notified() => true,
    };
    if killed {
        // It can only fail for a process that has ended by itself.
        drop(child.kill().await);
    }
    ending.send_replace(true);
    runtime.function_ended();
}

/// The reason a function did not start: what it told Lambda, else the last thing it wrote.
fn last_words(runtime: &RuntimeApi, log: &Log) -> String {
    if let Some(error) = runtime.take_init_error() {
        return error.error_message;
    }
    let lines = log.take().unwrap_or_default();
    let last = lines.iter().rev().find(|line| !line.is_empty());
    last.map_or_else(|| "it ended without a word".into(), |line| words(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn a_missing_binary_says_what_to_type() {
        let runtime = Arc::new(RuntimeApi::start(Clock::system()).await.unwrap());
        let missing = Path::new("/nowhere/bootstrap");
        let error =
            Function::start(missing, &BTreeMap::new(), &Log::create().unwrap(), runtime).await.unwrap_err();
        assert!(error.to_string().contains("cargo build --bin bootstrap"), "{error}");
    }

    #[tokio::test]
    async fn a_process_that_ends_before_it_is_ready_is_an_error() {
        let runtime = Arc::new(RuntimeApi::start(Clock::system()).await.unwrap());
        let error =
            Function::start(Path::new("/bin/false"), &BTreeMap::new(), &Log::create().unwrap(), runtime)
                .await
                .unwrap_err();
        assert_eq!(error.to_string(), "the function did not become ready: it ended without a word");
    }
}
