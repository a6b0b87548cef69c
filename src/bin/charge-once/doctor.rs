//! `charge-once doctor`: what is deployed, or a template, against the rules that no tool of AWS checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path, PathBuf},
};

use charge_once::{
    doctor::{
        Deployment, Finding as Broken, Piece, RULES, Severity, check,
        deployed::{CloudControl, Names, survey},
        template,
    },
    telemetry::ErrorChain,
};
use serde_json::{Value, json};

use crate::{
    CommandError, CommandResult, Finding,
    aws::AwsArgs,
    screen::{Screen, plural},
};

const EXAMPLES: &str = "\
Examples:
  charge-once doctor --stack charge-once                   what the stack deployed
  charge-once doctor --queue-url https://sqs.eu-central-1.amazonaws.com/111122223333/orders --profile ops
  charge-once doctor                                       template.yaml in this folder
  charge-once doctor --template packaged.yaml --parameter QueueType=fifo --parameter MaxReceiveCount=10
  charge-once doctor --json | jq -r '.findings[].fix'

What it must be allowed to read is in docs/operations.md, \"Checking what is deployed\". It changes nothing.

Exit codes:
  0  no error; there may be warnings
  1  an error, or there is nothing to check: no such template, stack or queue, no answer from AWS
  2  the command line could not be read";

/// Check what is deployed, or a template: can an order be lost, stuck or charged twice?
///
/// Checks queue, dead-letter queue, event source mapping, function, role, table and alarms; of a template those that
/// `sam deploy` would deploy with the template's defaults and the parameters given. Each finding says what breaks
/// and what to type.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A deployed stack of the template, by name or ARN
    #[arg(long, value_name = "NAME", group = "deployed")]
    stack: Option<String>,
    /// A deployed queue; the rest is found through it
    #[arg(long, value_name = "URL", group = "deployed", value_parser = crate::aws::queue_url)]
    queue_url: Option<String>,
    /// The ledger's table, if it is not the one that the function is told
    #[arg(long, value_name = "NAME", requires = "deployed")]
    table: Option<String>,
    /// The function, by name or ARN, if it is not the one that the queue is mapped to
    #[arg(long, value_name = "NAME", requires = "deployed")]
    function: Option<String>,
    /// The template, a SAM or `CloudFormation` file
    #[arg(long, value_name = "FILE", default_value = "template.yaml", conflicts_with = "deployed")]
    template: PathBuf,
    /// A parameter of the template; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter, conflicts_with = "deployed")]
    parameters: Vec<(String, String)>,
    #[command(flatten)]
    aws: AwsArgs,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// What was found.
struct Diagnosis {
    /// What was looked at, as the person named it.
    subject: String,
    findings: Vec<Broken>,
    /// What was not read, so that rules about it are silent.
    unread: BTreeSet<Piece>,
}

impl Diagnosis {
    fn new(
        subject: String,
        mut findings: Vec<Broken>,
        deployment: &Deployment,
        unread: BTreeSet<Piece>,
    ) -> Self {
        findings.extend(check(deployment));
        Self { subject, findings, unread }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

pub(crate) async fn run(args: Args, screen: &mut Screen) -> CommandResult {
    let Args { stack, queue_url, table, function, template, parameters, aws, json } = args;
    let diagnosis = if stack.is_some() || queue_url.is_some() {
        let subject = match (&stack, &queue_url) {
            (Some(stack), _) => format!("stack {stack}"),
            (None, url) => format!("queue {}", url.as_deref().unwrap_or_default()),
        };
        let account = CloudControl::new(aws.clients().await?.cloud_control());
        let deployed = survey(&account, Names { stack, queue_url, function, table }).await?;
        Diagnosis::new(subject, deployed.findings.clone(), &deployed.deployment(), deployed.unread)
    } else {
        of_template(&template, &parameters.into_iter().collect())?
    };
    if json {
        writeln!(screen, "{:#}", document(&diagnosis))?;
    } else {
        write(&diagnosis, screen)?;
    }
    Ok(if diagnosis.count(Severity::Error) > 0 { Finding::Wrong } else { Finding::Clean })
}

fn of_template(file: &Path, parameters: &BTreeMap<String, String>) -> Result<Diagnosis, CommandError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let of_file = |error| format!("{}: {}", file.display(), ErrorChain(&error));
    let template = template::read(&text, parameters).map_err(of_file)?;
    let deployment = template.deployment().map_err(of_file)?;
    let subject = file.display().to_string();
    Ok(Diagnosis::new(subject, template.refusals, &deployment, BTreeSet::new()))
}

fn document(diagnosis: &Diagnosis) -> Value {
    let findings = diagnosis.findings.iter().map(|finding| {
        json!({
            "rule": finding.rule,
            "severity": severity(finding),
            "breaks": finding.breaks,
            "fix": finding.fix,
        })
    });
    let unread = diagnosis.unread.iter().map(|piece| piece.name());
    json!({
        "checked": diagnosis.subject,
        "rules": rules(),
        "findings": Value::from_iter(findings),
        "not_checked": Value::from_iter(unread),
    })
}

/// How a fix begins that changes parameters.
const DEPLOY: &str = "sam deploy --parameter-overrides ";

/// Not a table: what breaks and what to type are sentences, and a command must be copied in one piece.
fn write(diagnosis: &Diagnosis, screen: &mut Screen) -> std::io::Result<()> {
    for finding in &diagnosis.findings {
        writeln!(screen, "{:<7} {}", severity(finding), finding.rule)?;
        writeln!(screen, "        breaks  {}", finding.breaks)?;
        writeln!(screen, "        fix     {}\n", finding.fix)?;
    }
    let changes = diagnosis.findings.iter().filter_map(|finding| finding.fix.strip_prefix(DEPLOY));
    // Some leave the value to whoever types it.
    let changes: Vec<&str> = changes.filter(|change| !change.contains("VALUE")).collect();
    if !changes.is_empty() {
        writeln!(
            screen,
            "all in one, in a checkout of what runs (CONFIG=prod for that section of samconfig.toml):\n        \
             make deploy PARAMETERS=\"{}\"\n",
            changes.join(" ")
        )?;
    }
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| diagnosis.count(severity));
    let unread: Vec<&str> = diagnosis.unread.iter().map(|piece| piece.name()).collect();
    if !unread.is_empty() {
        writeln!(screen, "not checked: what concerns {}", unread.join(", "))?;
    }
    writeln!(
        screen,
        "{}, {}: {}, {}",
        diagnosis.subject,
        plural(rules(), "rule"),
        plural(errors, "error"),
        plural(warnings, "warning")
    )
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
