//! The command line as a whole: which commands there are, and what is said of one that cannot be read.

use clap::{
    Command as Known, CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

#[cfg(feature = "local")]
use crate::local;
use crate::{CommandResult, completions, dlq, doctor, ledger, queue, screen::Screen, worker};

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing wrong
  1  something went wrong; standard error says what, or the summary names it
  2  the command line could not be read";

/// Charge every order of an SQS queue at most once and lose none.
#[derive(Debug, Parser)]
#[command(name = "charge-once", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
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

impl Cli {
    /// The command line of this process; ends it where that cannot be read.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_variables(error).exit())
    }

    pub(crate) async fn run(self, screen: &mut Screen) -> CommandResult {
        match self.command {
            #[cfg(feature = "local")]
            Command::Local(args) => local::run(args, screen).await,
            Command::Worker(args) => worker::run(args).await,
            Command::Queue(args) => queue::run(args, screen).await,
            Command::Dlq(args) => dlq::run(args, screen).await,
            Command::Ledger(args) => ledger::run(args, screen).await,
            Command::Doctor(args) => doctor::run(args, screen).await,
            Command::Completions(args) => completions::run(args, screen),
        }
    }
}

/// Names the environment variables that would do instead of what is missing: clap does so in the help alone.
fn with_variables(mut error: clap::Error) -> clap::Error {
    let missing = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => missing.clone(),
        _ => return error,
    };
    let mut cli = Cli::command();
    cli.build();
    let tips = missing.iter().filter_map(|usage| {
        Some(format!("the variable {} is taken for {usage}", variable_of(&cli, usage)?).into())
    });
    let tips: Vec<_> = tips.collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The variable of the argument that is shown as `usage`: wherever one of that form has a variable, it is the same.
fn variable_of(command: &Known, usage: &str) -> Option<String> {
    let here = command
        .get_arguments()
        .find(|argument| argument.to_string() == usage && argument.get_env().is_some());
    let here = here.and_then(|argument| Some(argument.get_env()?.to_string_lossy().into_owned()));
    here.or_else(|| command.get_subcommands().find_map(|command| variable_of(command, usage)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &Known) {
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

    #[test]
    fn what_is_missing_may_be_a_variable() {
        let said = |words: &str| {
            let error = Cli::try_parse_from(words.split_whitespace()).unwrap_err();
            with_variables(error).to_string()
        };
        insta::assert_snapshot!(said("charge-once dlq redrive"), @r"
        error: the following required arguments were not provided:
          --dlq-url <URL>
          --table <NAME>

          tip: the variable DLQ_URL is taken for --dlq-url <URL>
          tip: the variable LEDGER_TABLE is taken for --table <NAME>

        Usage: charge-once dlq redrive --dlq-url <URL> --table <NAME>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(said("charge-once queue send"), @r"
        error: the following required arguments were not provided:
          --queue-url <URL>

          tip: the variable QUEUE_URL is taken for --queue-url <URL>

        Usage: charge-once queue send --queue-url <URL> [QUEUE]

        For more information, try '--help'.
        ");
        assert!(!said("charge-once completions").contains("tip"));
    }
}
