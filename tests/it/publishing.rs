//! The event source mapping works with a published version of the function: what changes a setting has to publish one,
//! and a deployment must not put back what somebody has set.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a template that lacks what is asked for fails the test"
)]

use std::{collections::BTreeSet, path::Path, process::Command};

use charge_once::backoff::Random;
use serde_yaml_ng::Value;

use crate::template::TEMPLATE;

/// Lambda's limit for the description of a version, in characters.
const LONGEST_DESCRIPTION: usize = 256;

/// The parameters and conditions that an expression names.
fn names_in<'a>(expression: &'a Value, found: &mut BTreeSet<&'a str>) {
    match expression {
        Value::Tagged(tagged) => match (tagged.tag.to_string().as_str(), &tagged.value) {
            ("!Ref", Value::String(name)) => drop(found.insert(name)),
            ("!Sub", Value::String(text)) => found.extend(substituted(text)),
            ("!If", Value::Sequence(parts)) => {
                found.insert(parts[0].as_str().unwrap());
                parts.iter().for_each(|part| names_in(part, found));
            }
            (_, value) => names_in(value, found),
        },
        Value::Sequence(items) => items.iter().for_each(|item| names_in(item, found)),
        Value::Mapping(entries) => entries.values().for_each(|value| names_in(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The names in `${Name}`.
fn substituted(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// The most characters that a parameter's value can have.
fn longest(parameter: &Value) -> usize {
    if let Some(allowed) = parameter["AllowedValues"].as_sequence() {
        return allowed.iter().map(|value| value.as_str().unwrap().len()).max().unwrap();
    }
    if parameter["AllowedPattern"].as_str() == Some("^([A-Z]{3})?$") {
        return 3;
    }
    let text = parameter["MaxLength"].as_u64().map(|most| usize::try_from(most).unwrap());
    text.unwrap_or_else(|| parameter["MaxValue"].as_u64().unwrap().to_string().len())
}

#[test]
fn a_change_of_a_setting_publishes_the_function() {
    let template: Value = serde_yaml_ng::from_str(TEMPLATE).unwrap();
    let function = &template["Resources"]["ChargeFunction"]["Properties"];
    let text = |name: &str| {
        let Value::Tagged(tagged) = &function[name] else { panic!("{name} is no !Sub") };
        tagged.value.as_str().unwrap()
    };
    let described = text("VersionDescription");
    assert_eq!(text("Description"), described, "else there may be nothing new to publish");

    let mut named = BTreeSet::new();
    for part in ["MemorySize", "Timeout", "Architectures", "KmsKeyArn", "Environment"] {
        names_in(&function[part], &mut named);
    }
    let conditions: Vec<&str> =
        named.iter().copied().filter(|name| template["Conditions"].get(name).is_some()).collect();
    conditions.iter().for_each(|name| names_in(&template["Conditions"][*name], &mut named));
    let mut settings: BTreeSet<&str> =
        named.into_iter().filter(|name| template["Parameters"].get(name).is_some()).collect();
    // Too long for a description: that of `Release` names them.
    for long in ["GatewayUrl", "GatewaySecretArn", "KmsKeyArn", "PayloadBucket"] {
        assert!(settings.remove(long), "{long}");
        assert!(template["Parameters"]["Release"]["Description"].as_str().unwrap().contains(long), "{long}");
    }
    settings.insert("Release");
    assert_eq!(substituted(described).collect::<BTreeSet<_>>(), settings);

    let values: usize = settings.iter().map(|name| longest(&template["Parameters"][*name])).sum();
    assert!(values + settings.len() - 1 <= LONGEST_DESCRIPTION, "{values} and what is between them");
}

/// What `make deploy` types, with a SAM that finds a stack or finds none, and what the first deployment wrote down.
struct Deployment<'a> {
    finds: &'a str,
    parameters: &'a str,
    written: &'a str,
}

impl Deployment<'_> {
    /// Whether it went well, and what was typed.
    fn typed(&self) -> (bool, String) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = std::env::temp_dir().join(format!("charge-once-{}", Random::System.token()));
        std::fs::create_dir(&folder).unwrap();
        let [sam, log, settings] = ["sam", "log", "samconfig.toml"].map(|name| folder.join(name));
        let answer = match self.finds {
            "a stack" => "exit 0",
            "none" => "echo 'The input stack s does not exist on Cloudformation in the region r' >&2; exit 1",
            error => &format!("echo '{error}' >&2; exit 1"),
        };
        let script =
            format!("#!/bin/sh\necho \"$*\" >> {}\ncase \"$1\" in list) {answer} ;; esac\n", log.display());
        std::fs::write(&sam, script).unwrap();
        std::fs::write(
            &settings,
            format!(
                "[prod.global.parameters]\nstack_name = \"s\"\n\n[prod.deploy.parameters]\n{}",
                self.written
            ),
        )
        .unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&sam).status().unwrap().success());
        let output = Command::new(root.join("scripts/deploy"))
            .env("SAM", &sam)
            .env("SAMCONFIG", &settings)
            .envs([("CONFIG", "prod"), ("RELEASE", "r1"), ("PARAMETERS", self.parameters)])
            .output()
            .unwrap();
        let typed = std::fs::read_to_string(&log).unwrap_or_default();
        let typed = typed.replace(&format!(" --config-file {}", settings.display()), "");
        std::fs::remove_dir_all(folder).unwrap();
        (output.status.success(), typed)
    }
}

const EPOCH: &str = "LedgerEpoch=2026-11-30T12:00:00Z";
const LOOK: &str = "list stack-outputs --config-env prod --output json\n";

fn typed(finds: &str, parameters: &str) -> (bool, String) {
    Deployment { finds, parameters, written: "" }.typed()
}

#[test]
fn what_a_stack_has_is_kept_by_the_next_deployment() {
    let deploys = format!("{LOOK}deploy --config-env prod --parameter-overrides Release=r1 {EPOCH}\n");
    assert_eq!(typed("a stack", EPOCH), (true, deploys));
}

#[test]
fn the_stack_is_looked_for_where_the_first_deployment_put_it() {
    let written = "region = \"eu-west-1\" # here\n  stack_name='shop'\n[other]\nregion = \"x\"\n";
    let (_, typed) = Deployment { finds: "a stack", parameters: "", written }.typed();
    let look =
        "list stack-outputs --config-env prod --region eu-west-1 --stack-name shop --output json\ndeploy ";
    assert!(typed.starts_with(look), "{typed}");
}

#[test]
fn the_first_deployment_asks() {
    let asks = format!("{LOOK}deploy --guided --config-env prod\n");
    assert_eq!(typed("none", ""), (true, asks));
    // What is not heard must not be said in vain.
    assert_eq!(typed("none", EPOCH), (false, LOOK.to_owned()));
}

/// Guided, it would put defaults in the place of what the stack has.
#[test]
fn nothing_is_deployed_where_nobody_knows_whether_there_is_a_stack() {
    for error in ["Unable to locate credentials", "Profile x does not exist"] {
        assert_eq!(typed(error, ""), (false, LOOK.to_owned()));
    }
}

/// SAM drops both without a word.
#[test]
fn a_misspelt_parameter_and_one_without_a_value_deploy_nothing() {
    for parameters in ["LedgrEpoch=2026-11-30T12:00:00Z", "ProducerArn=", "ProducerArn"] {
        assert_eq!(typed("a stack", parameters), (false, String::new()), "{parameters}");
    }
}
