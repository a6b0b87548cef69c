//! `charge-once worker` as a child process, in the place of the function.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use tokio::process::{Child, Command};

use crate::local::{function, stack::Stack};

/// How to start the worker.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The command line's own binary.
    pub charge_once: PathBuf,
    /// The queue's name.
    pub queue: &'static str,
    /// How many receives wait side by side.
    pub loops: u16,
    /// For how long a message is hidden at a time.
    pub visibility: Duration,
}

impl WorkerCommand {
    /// Starts the worker with the environment of the function; it writes to the function's log.
    ///
    /// # Errors
    /// The binary cannot be run.
    pub fn start(&self, stack: &Stack) -> io::Result<WorkerProcess> {
        let child = Command::new(&self.charge_once)
            .args(["worker", "--queue-url", &stack.queue_url(self.queue)])
            .args(["--loops", &self.loops.to_string()])
            .args(["--visibility", &format!("{}s", self.visibility.as_secs())])
            .env_clear()
            .envs(stack.environment())
            .stdin(Stdio::null())
            .stdout(stack.log().writer()?)
            .stderr(stack.log().writer()?)
            .kill_on_drop(true)
            .spawn()?;
        Ok(WorkerProcess { child })
    }
}

/// A running worker; killed when dropped.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
}

impl WorkerProcess {
    /// Kills the process (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Waits until the process ends by itself, which a worker does only if it cannot work.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn ended(&mut self) -> io::Result<()> {
        self.child.wait().await.map(drop)
    }

    /// The most memory the process has held so far, in bytes; `None` where the system does not tell.
    pub fn peak_memory(&self) -> Option<u64> {
        function::peak_memory(self.child.id()?)
    }
}
