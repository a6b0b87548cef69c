//! The command line `charge-once`: one file a command, wiring only.

mod aws;
mod command;
mod completions;
mod dlq;
mod doctor;
mod ledger;
#[cfg(feature = "local")]
mod local;
mod queue;
#[cfg(feature = "local")]
mod report;
mod screen;
mod signals;
mod table;
mod worker;

use std::{error::Error, process::ExitCode};

use command::Cli;
use screen::Screen;

/// How a command ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Nothing to complain about.
    Clean,
    /// The command's output names what is wrong.
    Wrong,
}

type CommandError = Box<dyn Error + Send + Sync>;
type CommandResult = Result<Finding, CommandError>;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::read().run(&mut Screen::stdout()).await {
        Ok(Finding::Clean) => ExitCode::SUCCESS,
        Ok(Finding::Wrong) => ExitCode::FAILURE,
        // Whoever reads the output has seen enough, as in `charge-once local | head`.
        Err(error) if screen::is_closed_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            screen::complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}
