//! The doctor on what is deployed: the rules of the template, read back from Cloud Control.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Output;

use aws_sdk_cloudcontrol::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
};
use charge_once::doctor::{
    Finding, Piece, Severity, check,
    deployed::{CloudControl, Deployed, Names, SurveyError, survey},
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    support::{
        cloud_control::{Account, FakeCloudControl},
        deployed_template::{FUNCTION, MAPPING, QUEUE_URL, STACK, TABLE, deployed},
    },
    template::{MUTATIONS, TEMPLATE, mutated, rules},
};

/// Broken by what only a template says, or what AWS does not let happen.
const TEMPLATE_ONLY: [&str; 4] = ["own-role", "queues-retained", "ledger-retained", "dashboard"];

fn client(url: &str) -> CloudControl {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::from_static("eu-central-1"))
        .credentials_provider(Credentials::for_tests())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled())
        .endpoint_url(url);
    CloudControl::new(Client::from_conf(config.build()))
}

fn stack() -> Names {
    Names { stack: Some(STACK.to_owned()), ..Names::default() }
}

fn queue() -> Names {
    Names { queue_url: Some(QUEUE_URL.to_owned()), ..Names::default() }
}

fn findings(deployed: &Deployed) -> Vec<Finding> {
    deployed.findings.iter().cloned().chain(check(&deployed.deployment())).collect()
}

async fn examined(account: Account, names: Names) -> Deployed {
    let fake = FakeCloudControl::start(account).await;
    survey(&client(&fake.url()), names).await.unwrap()
}

#[tokio::test]
async fn a_deployed_template_keeps_every_rule() {
    for parameters in [&[][..], &[("QueueType", "fifo")], &[("ProvisionedPollers", "true")]] {
        let deployed = examined(deployed(TEMPLATE, parameters), stack()).await;
        assert_eq!(findings(&deployed), [], "{parameters:?}");
        assert_eq!(deployed.unread, [Piece::Dashboards].into());
    }
}

#[tokio::test]
async fn each_rule_broken_in_what_is_deployed_is_caught_by_that_rule_alone() {
    let fake = FakeCloudControl::start(Account::default()).await;
    let client = client(&fake.url());
    let mut missed = Vec::new();
    for mutation in MUTATIONS.iter().filter(|mutation| !TEMPLATE_ONLY.contains(&mutation.rule)) {
        fake.serve(deployed(&mutated(mutation), mutation.parameters));
        let found = findings(&survey(&client, stack()).await.unwrap());
        if rules(&found) != [mutation.rule] {
            missed.push(format!("{mutation:?} gave {:?}", rules(&found)));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test]
async fn the_queue_alone_leads_to_all_but_the_alarms() {
    let deployed = examined(deployed(TEMPLATE, &[]), queue()).await;
    assert_eq!(findings(&deployed), []);
    assert_eq!(deployed.unread, [Piece::Alarms, Piece::Dashboards].into());
    let deployment = deployed.deployment();
    assert_eq!(deployment.mapping.known().unwrap().name, MAPPING);
    assert_eq!(deployment.function.known().unwrap().name, FUNCTION);
    assert_eq!(deployment.ledger.known().unwrap().name, TABLE);
}

#[tokio::test]
async fn another_table_than_the_functions_is_named() {
    let mut account = deployed(TEMPLATE, &[]);
    let kind = || "AWS::DynamoDB::Table".to_owned();
    let table = account.resources[&(kind(), TABLE.to_owned())].clone();
    account.resources.insert((kind(), "copy".to_owned()), table);
    let names = Names { table: Some("copy".to_owned()), ..queue() };
    assert_eq!(rules(&findings(&examined(account, names).await)), ["ledger-named"]);
}

/// Each type in turn may not be read: that is said, with what to allow, and nothing is made of what is not known.
#[tokio::test]
async fn what_may_not_be_read_is_named_and_the_rest_is_checked() {
    let cases = [
        ("AWS::SQS::Queue", Piece::Queue, "sqs:GetQueueAttributes"),
        ("AWS::SQS::QueueInlinePolicy", Piece::QueuePolicies, "sqs:GetQueueAttributes"),
        ("AWS::Lambda::EventSourceMapping", Piece::Mapping, "lambda:GetEventSourceMapping"),
        ("AWS::Lambda::Function", Piece::Function, "lambda:GetFunction"),
        ("AWS::IAM::Role", Piece::Role, "iam:GetRolePolicy"),
        ("AWS::DynamoDB::Table", Piece::Ledger, "dynamodb:DescribeTimeToLive"),
        ("AWS::CloudWatch::Alarm", Piece::Alarms, "cloudwatch:DescribeAlarms"),
    ];
    for (kind, piece, permission) in cases {
        let mut account = deployed(TEMPLATE, &[("MaxReceiveCount", "4")]);
        account.denied.insert(kind.to_owned());
        let deployed = examined(account, stack()).await;
        assert!(deployed.unread.contains(&piece), "{kind}");
        let found = findings(&deployed);
        let unreadable: Vec<_> = found.iter().filter(|finding| finding.rule == "readable").collect();
        assert!(!unreadable.is_empty(), "{kind}");
        for finding in unreadable {
            assert!(
                finding.breaks.contains("AccessDeniedException: User: ops is not authorized"),
                "{finding:?}"
            );
            assert!(finding.fix.contains(permission), "{finding:?}");
        }
        let rest: Vec<&str> = rules(&found).into_iter().filter(|rule| *rule != "readable").collect();
        let expected: &[&str] = if piece == Piece::Queue { &[] } else { &["enough-receives"] };
        assert_eq!(rest, expected, "{kind}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let cases = [
        ("AWS::Lambda::EventSourceMapping", MAPPING, "nothing hands the queue's orders to a function"),
        ("AWS::SQS::Queue", &format!("{QUEUE_URL}-dlq"), "as its dead-letter queue, which does not exist"),
        ("AWS::DynamoDB::Table", TABLE, "the table shop-LedgerTable-1 does not exist"),
        ("AWS::Lambda::Function", FUNCTION, "does not exist"),
        ("AWS::IAM::Role", "shop-FunctionRole-1", "no invocation can begin"),
    ];
    for names in [stack(), queue()] {
        for (kind, identifier, says) in cases {
            let mut account = deployed(TEMPLATE, &[]);
            assert!(
                account.resources.remove(&(kind.to_owned(), identifier.to_owned())).is_some(),
                "{identifier}"
            );
            let found = findings(&examined(account, names.clone()).await);
            assert_eq!(rules(&found), ["exists"], "{kind}: {found:?}");
            assert_eq!(found[0].severity, Severity::Error);
            assert!(found[0].breaks.contains(says), "{found:?}");
        }
    }
}

#[tokio::test]
async fn a_second_mapping_of_the_queue_is_checked_too() {
    let mut account = deployed(TEMPLATE, &[]);
    let kind = || "AWS::Lambda::EventSourceMapping".to_owned();
    let mut second = account.resources[&(kind(), MAPPING.to_owned())].clone();
    second["FunctionResponseTypes"] = json!([]);
    account.resources.insert((kind(), "7d9bce8e".to_owned()), second);
    for names in [stack(), queue()] {
        assert_eq!(rules(&findings(&examined(account.clone(), names).await)), ["partial-responses"]);
    }
}

#[tokio::test]
async fn a_managed_policy_is_part_of_the_role() {
    let mut account = deployed(TEMPLATE, &[]);
    let arn = "arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole";
    let role = account.resources.get_mut(&("AWS::IAM::Role".to_owned(), "shop-FunctionRole-1".to_owned()));
    role.unwrap()["ManagedPolicyArns"] = json!([arn]);
    let statement = json!({"Effect": "Allow", "Action": ["sqs:ReceiveMessage"], "Resource": "*"});
    let policy = json!({"PolicyArn": arn, "PolicyDocument": {"Statement": [statement]}});
    account.resources.insert(("AWS::IAM::ManagedPolicy".to_owned(), arn.to_owned()), policy);
    let found = findings(&examined(account.clone(), stack()).await);
    assert_eq!(rules(&found), ["role-narrow"]);

    account.denied.insert("AWS::IAM::ManagedPolicy".to_owned());
    let deployed = examined(account, stack()).await;
    assert_eq!(rules(&findings(&deployed)), ["readable"]);
    assert!(deployed.unread.contains(&Piece::Role));
}

#[tokio::test]
async fn what_does_not_exist_or_answer_is_an_error() {
    let fake = FakeCloudControl::start(deployed(TEMPLATE, &[])).await;
    let other = |name: &str| Names { stack: Some(name.to_owned()), ..Names::default() };
    let error = survey(&client(&fake.url()), other("sho")).await.unwrap_err();
    assert!(matches!(error, SurveyError::NoStack(_)), "{error}");
    let error = survey(&client(&fake.url()), other("shopping")).await.unwrap_err();
    assert!(matches!(error, SurveyError::NoQueueNamed(_)), "{error}");
    let nowhere = Names { queue_url: Some(format!("{QUEUE_URL}-2")), ..Names::default() };
    let error = survey(&client(&fake.url()), nowhere).await.unwrap_err();
    assert!(matches!(error, SurveyError::NoQueue(_)), "{error}");
    let error = survey(&client("http://127.0.0.1:1"), queue()).await.unwrap_err();
    assert!(matches!(error, SurveyError::NoAnswer(_)), "{error}");
    let mut denied = deployed(TEMPLATE, &[]);
    denied.denied.insert("AWS::CloudFormation::Stack".to_owned());
    fake.serve(denied);
    let error = survey(&client(&fake.url()), stack()).await.unwrap_err();
    assert!(error.to_string().contains("cloudformation:ListStacks"), "{error}");
}

async fn doctor(fake: &FakeCloudControl, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charge-once"));
    command.arg("doctor").args(["--endpoint-url", &fake.url(), "--region", "eu-central-1"]).args(args);
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command.kill_on_drop(true).output().await.unwrap()
}

const RUNBOOK: &str = include_str!("../../docs/operations.md");

/// The block in the runbook that follows this line.
fn shown(command: &str) -> &'static str {
    let (_, rest) = RUNBOOK.split_once(command).unwrap();
    rest.split_once("```").unwrap().0.trim_start()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_what_the_runbook_shows() {
    let mut account = deployed(TEMPLATE, &[("VisibilityTimeout", "120")]);
    account.denied.insert("AWS::IAM::Role".to_owned());
    let fake = FakeCloudControl::start(account).await;
    let output = doctor(&fake, &["--stack", STACK]).await;
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, shown("$ charge-once doctor --stack shop\n"), "it prints:\n{printed}");
    assert_eq!(output.status.code(), Some(1));

    let json: Value =
        serde_json::from_slice(&doctor(&fake, &["--stack", STACK, "--json"]).await.stdout).unwrap();
    let found: Vec<&Value> = json["findings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    assert_eq!(found, ["readable", "visibility-covers-retries"]);
    assert_eq!(json["not_checked"], json!(["role", "dashboards"]));

    fake.serve(deployed(TEMPLATE, &[]));
    let output = doctor(&fake, &["--queue-url", QUEUE_URL]).await;
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with("not checked: what concerns alarms, dashboards\n"), "{printed}");
    assert_eq!(output.status.code(), Some(0));

    let output = doctor(&fake, &["--stack", "sho"]).await;
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint, "error: there is no stack sho in this account and Region\n");
    assert_eq!(output.status.code(), Some(1));
}

/// What the runbook says must be allowed is what the doctor asks for when it is refused.
#[tokio::test]
async fn the_runbook_lists_every_permission() {
    let mut account = deployed(TEMPLATE, &[]);
    let kinds: Vec<String> = account.resources.keys().map(|(kind, _)| kind.clone()).collect();
    for kind in kinds.iter().filter(|kind| *kind != "AWS::CloudFormation::Stack") {
        account.denied = [kind.clone()].into();
        for finding in examined(account.clone(), stack()).await.findings {
            let permissions = finding.fix.strip_prefix("allow ").unwrap().split(", ");
            let missing: Vec<&str> = permissions.filter(|it| !RUNBOOK.contains(&format!("`{it}`"))).collect();
            assert_eq!(missing, [""; 0], "{kind}");
        }
    }
}
