//! A child process, and what the system says of it.

use std::{path::Path, process::Child, time::Duration};

/// Killed when dropped.
pub(crate) struct Process(pub(crate) Child);

/// CPU time, in all and what of it was spent in the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) total: Duration,
    /// In steps of 10 ms.
    pub(crate) kernel: Duration,
}

impl Cpu {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            kernel: self.kernel.saturating_sub(before.kernel),
        }
    }
}

impl Process {
    /// The highest resident memory so far, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// CPU time so far, of all threads.
    pub(crate) fn cpu(&self) -> Cpu {
        let folder = format!("/proc/{}", self.0.id());
        let threads = std::fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten();
        let nanos: u64 = threads.filter_map(|thread| on_cpu(&thread.path())).sum();
        let stat = std::fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_name, fields)| fields);
        let kernel: u64 = fields.split_whitespace().nth(12).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        Cpu { total: Duration::from_nanos(nanos), kernel: Duration::from_millis(kernel * 10) }
    }

    /// Asks the process to end and waits for that.
    pub(crate) fn terminate(mut self) {
        let id = self.0.id().to_string();
        // The standard library only kills; a tool that writes its result at the end needs the gentler signal.
        drop(std::process::Command::new("kill").arg(id).status());
        drop(self.0.wait());
    }
}

/// Nanoseconds that a thread has run.
fn on_cpu(thread: &Path) -> Option<u64> {
    std::fs::read_to_string(thread.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
