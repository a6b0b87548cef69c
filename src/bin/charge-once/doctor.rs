//! `charge-once doctor`: a template against the rules that no tool of AWS checks.

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use charge_once::doctor::{Finding as Broken, RULES, Severity, check, template::deployment};
use serde_json::{Value, json};

use crate::{CommandResult, Finding, screen::Screen};

const EXAMPLES: &str = "\
Examples:
  charge-once doctor                                       template.yaml in this folder
  charge-once doctor --template packaged.yaml --parameter QueueType=fifo --parameter MaxReceiveCount=10
  charge-once doctor --json | jq -r '.findings[].fix'

Exit codes:
  0  no error; there may be warnings
  1  an error, or the template cannot be read
  2  the command line could not be read";

/// Check a SAM or `CloudFormation` template: can an order be lost, stuck or charged twice?
///
/// Checks what `sam deploy` would deploy with the template's defaults and the parameters given: queue, dead-letter
/// queue, event source mapping, function, role, table and alarms. Each finding says what breaks and what to type.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The template
    #[arg(long, value_name = "FILE", default_value = "template.yaml")]
    template: PathBuf,
    /// A parameter of the template; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, screen: &mut Screen) -> CommandResult {
    let text = std::fs::read_to_string(&args.template)
        .map_err(|error| format!("{} cannot be read: {error}", args.template.display()))?;
    let parameters: BTreeMap<_, _> = args.parameters.iter().cloned().collect();
    let findings = check(&deployment(&text, &parameters)?);
    if args.json {
        writeln!(screen, "{:#}", document(&findings))?;
    } else {
        write(&findings, screen)?;
    }
    let errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if errors { Finding::Wrong } else { Finding::Clean })
}

fn document(findings: &[Broken]) -> Value {
    let findings = findings.iter().map(|finding| {
        json!({
            "rule": finding.rule,
            "severity": severity(finding),
            "breaks": finding.breaks,
            "fix": finding.fix,
        })
    });
    json!({ "rules": rules(), "findings": Value::from_iter(findings) })
}

/// Not a table: what breaks and what to type are sentences, and a command must be copied in one piece.
fn write(findings: &[Broken], screen: &mut Screen) -> std::io::Result<()> {
    for finding in findings {
        writeln!(screen, "{:<7} {}", severity(finding), finding.rule)?;
        writeln!(screen, "        breaks  {}", finding.breaks)?;
        writeln!(screen, "        fix     {}\n", finding.fix)?;
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let warnings = findings.len().saturating_sub(errors);
    writeln!(screen, "{} rules checked: {errors} errors, {warnings} warnings", rules())
}

fn severity(finding: &Broken) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn rules() -> usize {
    RULES.iter().copied().flatten().count()
}

fn parameter(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
