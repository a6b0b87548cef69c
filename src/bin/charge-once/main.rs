//! The command line `charge-once`: one file a command, wiring only.

mod aws;
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

use clap::{Parser, Subcommand};

use screen::Screen;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing wrong
  1  something went wrong; standard error says what, or the summary names it
  2  the command line could not be read";

/// Charge every order of an SQS queue at most once and lose none.
#[derive(Debug, Parser)]
#[command(name = "charge-once", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "local")]
    Local(local::Args),
    Worker(worker::Args),
    Queue(queue::Args),
    Dlq(dlq::Args),
    Ledger(ledger::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
}

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
    let cli = Cli::parse();
    let mut screen = Screen::stdout();
    let result = match cli.command {
        #[cfg(feature = "local")]
        Command::Local(args) => local::run(args, &mut screen).await,
        Command::Worker(args) => worker::run(args).await,
        Command::Queue(args) => queue::run(args, &mut screen).await,
        Command::Dlq(args) => dlq::run(args, &mut screen).await,
        Command::Ledger(args) => ledger::run(args, &mut screen).await,
        Command::Doctor(args) => doctor::run(args, &mut screen).await,
        Command::Completions(args) => completions::run(args, &mut screen),
    };
    match result {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command) {
            for command in command.get_subcommands() {
                if command.has_subcommands() {
                    check(command);
                } else {
                    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains("Example"), "{} has no example", command.get_name());
                }
            }
        }
        check(&Cli::command());
    }
}
