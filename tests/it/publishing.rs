//! The event source mapping works with a published version of the function: what changes a setting has to publish one,
//! and a deployment must not put back what somebody has set.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a template that lacks what is asked for fails the test"
)]

use std::{collections::BTreeSet, path::Path, process::Command};

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

/// What `make deploy` types, with a SAM that finds a stack or finds none; whether that went well.
fn typed(finds: &str, parameters: &str) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stub = std::env::temp_dir().join(format!(
        "charge-once-sam-{}-{finds}-{}",
        std::process::id(),
        parameters.len()
    ));
    let log = stub.with_extension("log");
    let answer = match finds {
        "a-stack" => "exit 0",
        "no-stack" => "echo 'The input stack s does not exist on Cloudformation in the region r' >&2; exit 1",
        "no-profile" => "echo 'Profile x does not exist' >&2; exit 1",
        _ => "echo 'Unable to locate credentials' >&2; exit 1",
    };
    let script =
        format!("#!/bin/sh\necho \"$*\" >> {}\ncase \"$1\" in list) {answer} ;; esac\n", log.display());
    std::fs::write(&stub, script).unwrap();
    let stub_path = stub.to_str().unwrap();
    assert!(Command::new("chmod").args(["+x", stub_path]).status().unwrap().success());
    let _ = std::fs::remove_file(&log);
    let status = Command::new(root.join("scripts/deploy"))
        .env("SAM", stub_path)
        .envs([("CONFIG", "prod"), ("RELEASE", "r1"), ("PARAMETERS", parameters)])
        .output()
        .unwrap()
        .status;
    let lines = std::fs::read_to_string(&log).unwrap_or_default();
    for file in [stub, log] {
        drop(std::fs::remove_file(file));
    }
    (status.success(), lines)
}

const EPOCH: &str = "LedgerEpoch=2026-11-30T12:00:00Z";
const LOOK: &str = "list stack-outputs --config-env prod --output json\n";

#[test]
fn what_a_stack_has_is_kept_by_the_next_deployment() {
    let deploys = format!("{LOOK}deploy --config-env prod --parameter-overrides Release=r1 {EPOCH}\n");
    assert_eq!(typed("a-stack", EPOCH), (true, deploys));
}

#[test]
fn the_first_deployment_asks() {
    let asks = format!("{LOOK}deploy --guided --config-env prod\n");
    assert_eq!(typed("no-stack", ""), (true, asks));
    // What is not heard must not be said in vain.
    assert_eq!(typed("no-stack", EPOCH), (false, LOOK.to_owned()));
}

/// Guided, it would put defaults in the place of what the stack has.
#[test]
fn nothing_is_deployed_where_nobody_knows_whether_there_is_a_stack() {
    assert_eq!(typed("no-credentials", ""), (false, LOOK.to_owned()));
    assert_eq!(typed("no-profile", ""), (false, LOOK.to_owned()));
}

#[test]
fn a_misspelt_parameter_deploys_nothing() {
    assert_eq!(typed("a-stack", "LedgrEpoch=2026-11-30T12:00:00Z"), (false, String::new()));
}
