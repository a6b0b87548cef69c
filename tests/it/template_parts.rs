//! What `template.yaml` must have beside what the doctor's rules are about: alarms that are heard, a dashboard and
//! queries that ask for what exists, policies that reach no further than they must. Each part has edits that break it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a template that lacks what is asked for fails the test"
)]

use std::collections::{BTreeMap, BTreeSet};

use charge_once::{
    doctor::{Resource, template::read},
    metrics::Counts,
};
use serde_json::Value;

use crate::{docs, template::TEMPLATE};

const KEY: &str = "arn:aws:kms:eu-central-1:111122223333:key/k";
const TOPIC: &str = "arn:aws:sns:eu-central-1:111122223333:alarms";
/// Everything that is optional.
const PARAMETERS: [(&str, &str); 4] = [
    ("KmsKeyArn", KEY),
    ("AlarmTopicArn", TOPIC),
    ("GatewaySecretArn", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:key"),
    ("PayloadBucket", "payloads"),
];

/// A part, how to tell that it is there, and edits after which it is not: what to find (once), what to put there.
struct Part {
    name: &'static str,
    is_missing: fn(&Stack) -> bool,
    edits: &'static [(&'static str, &'static str)],
}

const PARTS: &[Part] = &[
    Part {
        name: "every alarm is heard, also when it is over, and silent without data",
        is_missing: |stack| {
            let heard = |alarm: &Value| ["AlarmActions", "OKActions"].iter().all(|to| alarm[to][0] == TOPIC);
            let calm = |alarm: &Value| alarm["TreatMissingData"] == "notBreaching";
            stack.of("CloudWatch::CompositeAlarm").any(|(_, alarm)| !heard(alarm))
                || stack.of("CloudWatch::Alarm").any(|(_, alarm)| !heard(alarm) || !calm(alarm))
        },
        edits: &[
            (
                "ALARM(\"${ContradictionAlarm}\")\n      AlarmActions: !If [HasAlarmTopic, [!Ref AlarmTopicArn], !Ref AWS::NoValue]\n",
                "ALARM(\"${ContradictionAlarm}\")\n",
            ),
            (
                "      Threshold: 96000\n      ComparisonOperator: GreaterThanOrEqualToThreshold\n      TreatMissingData: notBreaching\n",
                "      Threshold: 96000\n      ComparisonOperator: GreaterThanOrEqualToThreshold\n",
            ),
        ],
    },
    Part {
        name: "every alarm says more than the name of its heading in the runbook, which exists",
        is_missing: |stack| {
            let runbook = docs::read("docs/operations.md");
            let alarms = stack.of("CloudWatch::CompositeAlarm").chain(stack.of("CloudWatch::Alarm"));
            alarms.map(|(_, alarm)| alarm["AlarmDescription"].as_str().unwrap()).any(|says| {
                let Some((what, heading)) = says.split_once("Runbook: docs/operations.md, \"") else {
                    return true;
                };
                let heading = heading.trim_end().trim_end_matches("\".");
                what.len() < 20 || !runbook.contains(&format!("\n## {heading}\n"))
            })
        },
        edits: &[(
            "then the alarm that is red.\n        Runbook: docs/operations.md, \"Payment provider outage\".",
            "then the alarm that is red.\n        Runbook: docs/operations.md, \"Provider outage\".",
        )],
    },
    Part {
        name: "one alarm stands for those that mean harm to payments",
        is_missing: |stack| {
            let (_, composite) = stack.of("CloudWatch::CompositeAlarm").next().unwrap();
            let rule = composite["AlarmRule"].as_str().unwrap();
            let pages = stack
                .of("CloudWatch::Alarm")
                .filter(|(_, it)| it["AlarmDescription"].as_str().unwrap().starts_with("PAGE."));
            let pages: Vec<&str> = pages.map(|(id, _)| id).collect();
            let others =
                ["DeadLettersAlarm", "OrderAgeAlarm", "HeldAlarm", "AuthConfigAlarm", "FunctionErrorsAlarm"];
            pages.len() < 3
                || pages.iter().chain(&others).any(|id| !rule.contains(&format!("ALARM(\"{id}\")")))
        },
        edits: &[("ALARM(\"${DoubleChargeAlarm}\") OR ", ""), ("ALARM(\"${DeadLettersAlarm}\") OR ", "")],
    },
    Part {
        name: "a release is rolled back by our own metrics: Lambda's errors do not see a failed order",
        is_missing: |stack| {
            let alarms = &stack.function()["DeploymentPreference"]["Alarms"];
            let namespace = |id: &Value| &stack.properties(id.as_str().unwrap())["Namespace"];
            let names = |wanted: &str| alarms.as_array().unwrap().iter().any(|id| id == wanted);
            let others = alarms.as_array().unwrap().iter().any(|id| *namespace(id) == "AWS/Lambda");
            others
                || ![
                    "RetriedAlarm",
                    "PoisonedAlarm",
                    "AuthConfigAlarm",
                    "DoubleChargeAlarm",
                    "UnreadableRecordsAlarm",
                ]
                .iter()
                .all(|id| names(id))
        },
        edits: &[
            ("          - !Ref UnreadableRecordsAlarm\n", "          - !Ref FunctionErrorsAlarm\n"),
            ("          - !Ref RetriedAlarm\n", ""),
        ],
    },
    Part {
        name: "the dashboard shows each of our metrics, no other, and its widgets side by side",
        is_missing: |stack| {
            let widgets = widgets(stack);
            let ours: BTreeSet<&str> =
                Counts::NAMES.iter().copied().chain(docs::TIMES).filter(|name| *name != "Records").collect();
            shown(&widgets) != ours
                || widgets
                    .iter()
                    .enumerate()
                    .any(|(at, one)| widgets[..at].iter().any(|other| overlap(one, other)))
        },
        edits: &[
            ("\"OrderAgeMs\", \"service\"", "\"OrderAge\", \"service\""),
            (", [\".\", \"LeaseTakeovers\", \".\", \".\"]", ""),
            ("\"x\": 8, \"y\": 12", "\"x\": 4, \"y\": 12"),
        ],
    },
    Part {
        name: "four saved queries, of fields that are logged, and as in docs/observability.md",
        is_missing: |stack| {
            let (document, fields) = (docs::read("docs/observability.md"), docs::log_fields());
            let queries: Vec<&Value> = stack.of("Logs::QueryDefinition").map(|(_, query)| query).collect();
            let text = |query: &Value| query["QueryString"].as_str().unwrap().to_owned();
            let made_here = ["count_distinct", "most_receives"];
            let unknown = |query: &&Value| {
                text(query)
                    .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
                    .any(|word| word.contains('_') && !made_here.contains(&word) && !fields.contains(word))
            };
            let elsewhere = |query: &&Value| query["LogGroupNames"][0] != "FunctionLogGroup";
            queries.len() != 4
                || queries
                    .iter()
                    .filter(|query| document.contains(&format!("```\n{}```", text(query))))
                    .count()
                    != 3
                || queries.iter().any(|query| unknown(query) || elsewhere(query))
        },
        edits: &[
            (
                "order_id, decision, reason, receive_count, request_id, message",
                "order_id, decision, reason, receives_count, request_id, message",
            ),
            ("        | filter charges > 1\n", ""),
        ],
    },
    Part {
        name: "nobody can delete what is remembered or waits, and each policy names what it reaches",
        is_missing: |stack| {
            let grants: Vec<Value> = stack
                .of("IAM::ManagedPolicy")
                .flat_map(|(_, policy)| policy["PolicyDocument"]["Statement"].as_array().unwrap().clone())
                .collect();
            // The objects of one bucket are the one thing that cannot be named one by one.
            let granted = Value::from(grants.clone()).to_string();
            let granted = granted.replace("/*\"", "\"");
            let says = |text: &str| granted.contains(text);
            let attached = stack
                .of("IAM::ManagedPolicy")
                .any(|(_, policy)| ["Users", "Roles", "Groups"].iter().any(|to| policy.get(to).is_some()));
            attached
                || grants.is_empty()
                || ["*", "dynamodb:DeleteItem", "dynamodb:PutItem", "sqs:PurgeQueue", "sqs:DeleteQueue"]
                    .iter()
                    .any(|never| says(never))
        },
        edits: &[
            (
                "[sqs:SendMessage, sqs:GetQueueUrl, sqs:GetQueueAttributes]",
                "[sqs:SendMessage, sqs:PurgeQueue]",
            ),
            (
                "            Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n            Resource: !GetAtt LedgerTable.Arn",
                "            Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n            Resource: '*'",
            ),
        ],
    },
    Part {
        name: "producer, operator and worker may do their work",
        is_missing: |stack| {
            let may = |policy: &str, actions: &[&str]| {
                let policy = stack.properties(policy).to_string();
                actions.iter().all(|action| policy.contains(&format!("\"{action}\"")))
            };
            let works = [
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:ChangeMessageVisibility",
                "dynamodb:UpdateItem",
                "dynamodb:GetItem",
                "sqs:SendMessage",
                "secretsmanager:GetSecretValue",
                "s3:GetObject",
                "kms:Decrypt",
            ];
            let redrives = [
                "sqs:StartMessageMoveTask",
                "sqs:CancelMessageMoveTask",
                "sqs:ListMessageMoveTasks",
                "sqs:SendMessage",
                "sqs:DeleteMessage",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ];
            !may("ProducerPolicy", &["sqs:SendMessage", "kms:GenerateDataKey"])
                || !may("RedriveOperatorPolicy", &redrives)
                || !may("WorkerPolicy", &works)
        },
        edits: &[
            ("              - sqs:ListMessageMoveTasks\n", ""),
            (
                "            - {Sid: Payloads, Effect: Allow, Action: s3:GetObject,",
                "            - {Sid: Payloads, Effect: Allow, Action: s3:GetBucketLocation,",
            ),
            (
                "            Action: sqs:SendMessage\n            Resource: !GetAtt OrdersDlq.Arn\n",
                "            Action: sqs:GetQueueUrl\n            Resource: !GetAtt OrdersDlq.Arn\n",
            ),
        ],
    },
    Part {
        name: "a key of your own encrypts all that is kept",
        is_missing: |stack| {
            let kept = [
                ("OrdersQueue", "/KmsMasterKeyId"),
                ("OrdersDlq", "/KmsMasterKeyId"),
                ("LedgerTable", "/SSESpecification/KMSMasterKeyId"),
                ("FunctionLogGroup", "/KmsKeyId"),
                ("ChargeFunction", "/KmsKeyArn"),
            ];
            kept.iter().any(|(id, at)| stack.properties(id).pointer(at).is_none_or(|key| key != KEY))
        },
        edits: &[("      KmsKeyId: !If [HasKms, !Ref KmsKeyArn, !Ref AWS::NoValue]\n", "")],
    },
    Part {
        name: "the function is traced, logs JSON into a log that is kept for a while, and ends loops",
        is_missing: |stack| {
            let function = stack.function();
            let never =
                ["VpcConfig", "DeadLetterQueue", "SnapStart"].iter().any(|name| function.get(name).is_some());
            let log = &function["LoggingConfig"];
            never
                || function["Tracing"] != "Active"
                || function["RecursiveLoop"] != "Terminate"
                || function["AutoPublishAlias"].is_null()
                || log["LogFormat"] != "JSON"
                || log["LogGroup"] != "FunctionLogGroup"
                || stack.properties("FunctionLogGroup")["RetentionInDays"].is_null()
                || !stack.resource("FunctionLogGroup").retained.unwrap()
        },
        edits: &[
            ("      Tracing: Active\n", ""),
            ("      RecursiveLoop: Terminate\n", "      RecursiveLoop: Allow\n"),
            ("      RetentionInDays: !Ref LogRetentionDays\n", ""),
            (
                "    Type: AWS::Logs::LogGroup\n    DeletionPolicy: Retain\n",
                "    Type: AWS::Logs::LogGroup\n",
            ),
            ("        LogFormat: JSON\n", "        LogFormat: Text\n"),
        ],
    },
    Part {
        name: "every parameter says what it is for and stands in one group of the console",
        is_missing: |stack| {
            let names: Vec<&String> = stack
                .section("Parameters")
                .iter()
                .filter(|(_, it)| it.get("Description").is_some())
                .map(|(name, _)| name)
                .collect();
            let groups = stack.raw["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
                .as_array()
                .unwrap();
            let mut grouped: Vec<&str> = groups
                .iter()
                .flat_map(|group| group["Parameters"].as_array().unwrap())
                .map(|name| name.as_str().unwrap())
                .collect();
            grouped.sort_unstable();
            grouped != names || names.len() != stack.section("Parameters").len()
        },
        edits: &[
            ("[Stage, QueueType, Architecture, Paused,", "[Stage, QueueType, Architecture,"),
            ("    Description: MB; CPU comes with it.\n", ""),
        ],
    },
    Part {
        name: "the outputs name what one needs afterwards",
        is_missing: |stack| {
            let wanted = [
                "QueueUrl",
                "QueueArn",
                "DlqUrl",
                "DlqArn",
                "LedgerTableName",
                "FunctionArn",
                "AliasArn",
                "EventSourceMappingId",
                "LogGroupName",
                "FunctionRoleArn",
                "ProducerPolicyArn",
                "RedriveOperatorPolicyArn",
                "WorkerPolicyArn",
                "DashboardUrl",
            ];
            wanted.iter().any(|name| {
                stack.section("Outputs").get(*name).is_none_or(|output| output["Description"].is_null())
            })
        },
        edits: &[(
            "  AliasArn: {Description: The alias that the queue invokes, Value: !Ref ChargeFunction.Alias}\n",
            "",
        )],
    },
];

/// The template's resources with all that is optional, and its text as it stands.
struct Stack {
    resources: Vec<Resource>,
    raw: Value,
}

impl Stack {
    fn read(text: &str) -> Self {
        let parameters: BTreeMap<_, _> =
            PARAMETERS.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        // The sections that are asked for hold no function but below `Value`.
        let plain = serde_yaml_ng::from_str::<serde_yaml_ng::Value>(text).unwrap();
        Self { resources: read(text, &parameters).unwrap().resources, raw: untagged(plain) }
    }

    /// Name and properties of each resource of a type of AWS.
    fn of(&self, kind: &str) -> impl Iterator<Item = (&str, &Value)> {
        let kind = format!("AWS::{kind}");
        self.resources
            .iter()
            .filter(move |it| it.kind == kind)
            .map(|it| (it.reference.as_str(), &it.properties))
    }

    fn resource(&self, id: &str) -> &Resource {
        self.resources.iter().find(|it| it.reference == id).unwrap()
    }

    fn properties(&self, id: &str) -> &Value {
        &self.resource(id).properties
    }

    fn function(&self) -> &Value {
        self.properties("ChargeFunction")
    }

    fn section(&self, name: &str) -> &serde_json::Map<String, Value> {
        self.raw[name].as_object().unwrap()
    }
}

/// YAML as JSON, without the names of functions.
fn untagged(yaml: serde_yaml_ng::Value) -> Value {
    use serde_yaml_ng::Value as Yaml;
    match yaml {
        Yaml::Tagged(tagged) => untagged(tagged.value),
        Yaml::Sequence(items) => items.into_iter().map(untagged).collect(),
        Yaml::Mapping(entries) => entries
            .into_iter()
            .map(|(key, value)| (key.as_str().unwrap().to_owned(), untagged(value)))
            .collect(),
        plain @ (Yaml::Null | Yaml::Bool(_) | Yaml::Number(_) | Yaml::String(_)) => {
            serde_json::to_value(plain).unwrap()
        }
    }
}

fn widgets(stack: &Stack) -> Vec<Value> {
    let (_, dashboard) = stack.of("CloudWatch::Dashboard").next().unwrap();
    let body: Value = serde_json::from_str(dashboard["DashboardBody"].as_str().unwrap()).unwrap();
    body["widgets"].as_array().unwrap().clone()
}

/// Our metrics on the dashboard: "." and "..." repeat what stands above.
fn shown(widgets: &[Value]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for widget in widgets {
        let (mut namespace, mut name) = ("", "");
        for row in widget["properties"]["metrics"].as_array().into_iter().flatten() {
            let cell = |at: usize| row[at].as_str().filter(|cell| !cell.starts_with('.'));
            namespace = cell(0).unwrap_or(namespace);
            name = cell(1).unwrap_or(name);
            if namespace == "ChargeOnce" {
                found.insert(name);
            }
        }
    }
    found
}

fn overlap(one: &Value, other: &Value) -> bool {
    let side_by_side = |at: &str, size: &str| {
        let [a, b] = [one, other]
            .map(|it| (it[at].as_u64().unwrap(), it[at].as_u64().unwrap() + it[size].as_u64().unwrap()));
        a.1 <= b.0 || b.1 <= a.0
    };
    !side_by_side("x", "width") && !side_by_side("y", "height")
}

fn missing(template: &str) -> Vec<&'static str> {
    let stack = Stack::read(template);
    PARTS.iter().filter(|part| (part.is_missing)(&stack)).map(|part| part.name).collect()
}

#[test]
fn the_template_has_every_part() {
    assert_eq!(missing(TEMPLATE), [""; 0]);
}

#[test]
fn each_part_that_is_broken_is_missed_and_no_other() {
    let mut unnoticed = Vec::new();
    for part in PARTS {
        for (find, replace) in part.edits {
            assert_eq!(TEMPLATE.matches(find).count(), 1, "{find:?} is not unique");
            let missing = missing(&TEMPLATE.replace(find, replace));
            if missing != [part.name] {
                unnoticed
                    .push(format!("{replace:?} instead of {find:?} gave {missing:?}, not {:?}", part.name));
            }
        }
    }
    assert_eq!(unnoticed, [""; 0]);
}

/// The parameters of `samconfig.toml` in that environment, with what `make deploy` asks for.
fn configured(environment: &str, asked: &[(&str, &str)]) -> BTreeMap<String, String> {
    let text = docs::read("samconfig.toml");
    let section = text.split(&format!("[{environment}.deploy.parameters]")).nth(1).unwrap();
    let line = section.lines().find_map(|line| line.strip_prefix("parameter_overrides = ")).unwrap();
    let set = line.split('"').skip(1).step_by(2).map(|set| set.split_once('=').unwrap());
    set.chain(asked.iter().copied()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn samconfig_deploys_both_stages_and_prod_only_with_what_it_demands() {
    let refusals =
        |environment, asked: &[_]| read(TEMPLATE, &configured(environment, asked)).unwrap().refusals.len();
    let [_, topic, secret, _] = PARAMETERS;
    assert_eq!(refusals("default", &[secret]), 0);
    assert_eq!(refusals("prod", &[secret, topic]), 0);
    assert_eq!(refusals("prod", &[secret]), 1);
    let kept = configured("prod", &[]);
    assert_eq!((kept["Stage"].as_str(), kept["DeletionProtection"].as_str()), ("prod", "true"));
}

/// `make dashboard` drew it from this template.
#[test]
fn the_picture_of_the_dashboard_has_every_widget_and_metric() {
    let picture = docs::read("docs/dashboard.svg");
    let widgets = widgets(&Stack::read(TEMPLATE));
    let titles = widgets.iter().map(|widget| widget["properties"]["title"].as_str().unwrap());
    let rows =
        widgets.iter().flat_map(|widget| widget["properties"]["metrics"].as_array().into_iter().flatten());
    let names = rows.filter_map(|row| row[1].as_str()).filter(|name| name.len() > 1);
    let missing: Vec<&str> =
        titles.chain(names).filter(|text| !picture.contains(&format!(">{text}"))).collect();
    assert_eq!(missing, [""; 0]);
    assert!(picture.contains("prefers-color-scheme:dark"));
}
