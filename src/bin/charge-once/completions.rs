//! `charge-once completions`: what a shell needs to complete the command line.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{Cli, CommandResult, Finding, screen::Screen};

const EXAMPLE: &str = "\
Example:
  charge-once completions bash > ~/.local/share/bash-completion/completions/charge-once";

/// Print the completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The shell to complete in
    shell: Shell,
}

pub(crate) fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "charge-once", &mut script);
    screen.write_all(&script)?;
    Ok(Finding::Clean)
}
