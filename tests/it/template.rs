//! `template.yaml` keeps every rule, and each rule would notice if it did not.
#![expect(clippy::unwrap_used, reason = "a template that cannot be read fails the test")]

use std::{collections::BTreeMap, fs, path::Path};

use charge_once::doctor::{
    Finding, RULES, Severity, check,
    template::{deployment, read},
};

pub(crate) const TEMPLATE: &str = include_str!("../../template.yaml");

/// The findings for a template deployed with these parameters.
fn findings(text: &str, parameters: &[(&str, &str)]) -> Vec<Finding> {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    check(&deployment(text, &parameters).unwrap())
}

pub(crate) fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn the_template_keeps_every_rule_in_every_variant() {
    let variants: [&[(&str, &str)]; 6] = [
        &[],
        &[("QueueType", "fifo")],
        &[("KmsKeyArn", "arn:aws:kms:eu-central-1:111122223333:key/k")],
        &[("ProvisionedPollers", "true")],
        &[("Paused", "true"), ("Architecture", "x86_64")],
        &[
            ("FunctionTimeout", "60"),
            ("VisibilityTimeout", "420"),
            ("LeaseSeconds", "90"),
            ("BatchSize", "100"),
            ("MaxBatchingWindow", "60"),
        ],
    ];
    for parameters in variants {
        assert_eq!(findings(TEMPLATE, parameters), [], "{parameters:?}");
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "names the template that SAM's own transform wrote, see scripts/peers"
)]
fn a_transformed_template_keeps_every_rule_too() {
    let path = std::env::var("TRANSFORMED_TEMPLATE").unwrap_or_else(|_| "template.yaml".into());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(findings(&text, &[]), [], "{path}");
}

/// A rule, and one edit of the template that breaks it: the text to find (once) and what to put in its place.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub(crate) rule: &'static str,
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    find: &'static str,
    replace: &'static str,
}

const fn edit(rule: &'static str, find: &'static str, replace: &'static str) -> Mutation {
    Mutation { rule, parameters: &[], find, replace }
}

const fn fifo(rule: &'static str, find: &'static str, replace: &'static str) -> Mutation {
    Mutation { rule, parameters: &[("QueueType", "fifo")], find, replace }
}

/// A rule broken by parameters alone: what `CloudFormation` itself cannot refuse.
const fn given(rule: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Mutation {
    Mutation { rule, parameters, find: "", replace: "" }
}

pub(crate) const MUTATIONS: &[Mutation] = &[
    // queue
    given("visibility-covers-retries", &[("VisibilityTimeout", "179")]),
    given("visibility-covers-retries", &[("MaxBatchingWindow", "1")]),
    given("enough-receives", &[("MaxReceiveCount", "4")]),
    edit(
        "dead-letter-queue",
        "      RedrivePolicy:\n        deadLetterTargetArn: !GetAtt OrdersDlq.Arn\n        maxReceiveCount: !Ref MaxReceiveCount\n",
        "",
    ),
    edit("dead-letters-kept-longest", "MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 604800"),
    given("dead-letters-outlive-orders", &[("SourceRetentionSeconds", "1209600")]),
    fifo(
        "dead-letter-queue-type",
        "orders-dlq']\n      FifoQueue: !If [IsFifo, true, !Ref AWS::NoValue]",
        "orders-dlq']",
    ),
    edit(
        "queues-retained",
        "  OrdersDlq:\n    Type: AWS::SQS::Queue\n    DeletionPolicy: Retain\n",
        "  OrdersDlq:\n    Type: AWS::SQS::Queue\n",
    ),
    edit(
        "queues-encrypted",
        "            - !Sub arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-orders\n      SqsManagedSseEnabled: !If [HasKms, !Ref AWS::NoValue, true]",
        "            - any",
    ),
    edit("queues-demand-tls", "Queues: [!Ref OrdersDlq]", "Queues: []"),
    // mapping
    edit(
        "partial-responses",
        "FunctionResponseTypes: [ReportBatchItemFailures]",
        "FunctionResponseTypes: []",
    ),
    edit("partial-responses", "[ReportBatchItemFailures]", "[ReportBatchItemFailure]"),
    edit(
        "no-filter",
        "# No FilterCriteria, ever: Lambda deletes what does not match.",
        "FilterCriteria: {Filters: [{Pattern: '{}'}]}",
    ),
    fifo("fifo-batch", "            BatchSize: !Ref BatchSize", "            BatchSize: 11"),
    given("large-batch-window", &[("BatchSize", "11")]),
    edit(
        "one-scaling-mode",
        "ProvisionedPollerConfig: !If [UseProvisioned, {",
        "ProvisionedPollerConfig: !If [IsRunning, {",
    ),
    edit("bounded-concurrency", "            ScalingConfig: ", "            # ScalingConfig: "),
    edit("events-counted", "MetricsConfig: {Metrics: [EventCount]}", "MetricsConfig: {Metrics: []}"),
    // function
    given("settings-accepted", &[("BackoffBase", "901s")]),
    given("settings-accepted", &[("Gateway", "http")]),
    edit("settings-accepted", "DECLINED: !Ref Declined", "DECLINED: drop"),
    given(
        "timeout-within-limit",
        &[("FunctionTimeout", "901"), ("VisibilityTimeout", "5406"), ("LeaseSeconds", "931")],
    ),
    given("charge-fits-timeout", &[("ChargeTimeout", "24s")]),
    given("lease-fits", &[("LeaseSeconds", "30")]),
    given("lease-fits", &[("LeaseSeconds", "181")]),
    edit("receive-count-known", "MAX_RECEIVE_COUNT: !Ref MaxReceiveCount", "MAX_RECEIVE_COUNT: 8"),
    given("backoff-fits", &[("BackoffCap", "43200s")]),
    edit(
        "no-reserved-concurrency",
        "      RecursiveLoop: Terminate",
        "      ReservedConcurrentExecutions: 4",
    ),
    edit("architecture-pinned", "      Architectures: [!Ref Architecture]\n", ""),
    edit("ledger-named", "LEDGER_TABLE: !Ref LedgerTable", "LEDGER_TABLE: orders"),
    fifo("fifo-poison-leaves-at-once", "POISON_MODE: !If [IsFifo, dlq, redrive]", "POISON_MODE: redrive"),
    fifo(
        "dead-letter-url",
        "DLQ_URL: !If [IsFifo, !Ref OrdersDlq,",
        "DLQ_URL: !If [IsFifo, 'https://sqs.eu-central-1.amazonaws.com/111122223333/other.fifo',",
    ),
    edit("metrics-not-filtered", "ApplicationLogLevel: INFO", "ApplicationLogLevel: WARN"),
    edit(
        "secret-not-in-environment",
        "          GATEWAY: !Ref Gateway\n",
        "          GATEWAY: !Ref Gateway\n          GATEWAY_SECRET: sk\n",
    ),
    // role
    edit("own-role", "      Role: !GetAtt FunctionRole.Arn\n", ""),
    edit(
        "role-reads-orders",
        "[sqs:ReceiveMessage, sqs:DeleteMessage, sqs:GetQueueAttributes, sqs:ChangeMessageVisibility]",
        "[sqs:ReceiveMessage, sqs:GetQueueAttributes, sqs:ChangeMessageVisibility]",
    ),
    edit(
        "role-hides-orders",
        "sqs:GetQueueAttributes, sqs:ChangeMessageVisibility]\n                Resource: !GetAtt OrdersQueue.Arn",
        "sqs:GetQueueAttributes]\n                Resource: !GetAtt OrdersQueue.Arn",
    ),
    edit(
        "role-writes-ledger",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                Action: dynamodb:GetItem\n",
    ),
    edit(
        "role-never-deletes-records",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                Action: [dynamodb:UpdateItem, dynamodb:DeleteItem]\n",
    ),
    edit(
        "role-hides-orders",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n                Resource: !GetAtt LedgerTable.Arn\n              - Effect: Deny\n                NotAction: [sqs:Rec*, sqs:Del*, sqs:Get*, dynamodb:*]\n                Resource: '*'\n              - Effect: Allow\n                Action: dynamodb:GetItem\n",
    ),
    edit(
        "role-narrow",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                NotAction: iam:*\n",
    ),
    fifo(
        "role-sends-dead-letters",
        "                  Action: sqs:SendMessage\n",
        "                  Action: sqs:GetQueueUrl\n",
    ),
    Mutation {
        rule: "role-reads-secret",
        parameters: &[("GatewaySecretArn", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:key")],
        find: "                  Action: secretsmanager:GetSecretValue\n",
        replace: "                  Action: secretsmanager:DescribeSecret\n",
    },
    edit(
        "role-narrow",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                Action: dynamodb:*\n",
    ),
    edit(
        "role-narrow",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n                Resource: !GetAtt LedgerTable.Arn",
        "                Action: dynamodb:UpdateItem\n                Resource: '*'",
    ),
    edit(
        "role-narrow",
        "                Action: [dynamodb:UpdateItem, dynamodb:GetItem]\n",
        "                Action: [dynamodb:UpdateItem, dynamodb:Scan]\n",
    ),
    // ledger
    edit(
        "ledger-key",
        "        - {AttributeName: pk, AttributeType: S}",
        "        - {AttributeName: pk, AttributeType: B}",
    ),
    edit("ledger-attention-index", "        - IndexName: attention", "        - IndexName: other"),
    edit("ledger-expiry", "AttributeName: expires_at", "AttributeName: lease_until"),
    edit(
        "ledger-expiry",
        "{AttributeName: expires_at, Enabled: true}",
        "{AttributeName: expires_at, Enabled: false}",
    ),
    given("ledger-outlives-messages", &[("RecordDays", "24")]),
    edit("ledger-recoverable", "PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false"),
    edit(
        "ledger-retained",
        "    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Retain\n    UpdateReplacePolicy: Retain\n",
        "    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Delete\n    UpdateReplacePolicy: Retain\n",
    ),
    // alarms
    edit("alarms-complete", "      MetricName: BreakerOpened", "      MetricName: Duplicate"),
    edit(
        "dead-letters-heard",
        "        - Name: QueueName\n          Value: !GetAtt OrdersDlq.QueueName\n      Statistic: Maximum\n      Period: 60\n",
        "        - Name: QueueName\n          Value: !GetAtt OrdersQueue.QueueName\n      Statistic: Maximum\n      Period: 60\n",
    ),
    edit(
        "alarm-metrics-exist",
        "      MetricName: ChargeContradictsRecord",
        "      MetricName: ChargeContradictRecord",
    ),
    edit("alarms-watch-this-stack", "          SERVICE_NAME: !Ref AWS::StackName\n", ""),
    edit("alarms-explained", "Runbook: docs/operations.md, \"Held orders\".", "Good luck."),
    edit("dashboard", "    Type: AWS::CloudWatch::Dashboard", "    Type: AWS::CloudWatch::CompositeAlarm"),
];

/// The template with the mutation's edit made.
pub(crate) fn mutated(mutation: &Mutation) -> String {
    if mutation.find.is_empty() {
        return TEMPLATE.to_owned();
    }
    assert_eq!(
        TEMPLATE.matches(mutation.find).count(),
        1,
        "{}: {:?} is not unique",
        mutation.rule,
        mutation.find
    );
    TEMPLATE.replace(mutation.find, mutation.replace)
}

#[test]
#[expect(clippy::print_stdout, reason = "a failure lists what was missed")]
fn each_rule_broken_is_caught_by_that_rule_alone() {
    let broken = |mutation: &Mutation| findings(&mutated(mutation), mutation.parameters);
    let missed: Vec<_> = MUTATIONS.iter().filter(|one| rules(&broken(one)) != [one.rule]).collect();
    for mutation in &missed {
        println!("{mutation:#?} gave {:?}", rules(&broken(mutation)));
    }
    assert!(missed.is_empty(), "{} of {} mutations, see above", missed.len(), MUTATIONS.len());
}

#[test]
fn a_finding_says_what_breaks_and_what_to_type() {
    let findings = findings(TEMPLATE, &[("VisibilityTimeout", "120"), ("MaxBatchingWindow", "5")]);
    let [Finding { rule, severity, breaks, fix }] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((*rule, *severity), ("visibility-covers-retries", Severity::Error));
    assert_eq!(breaks, "orders reappear after 120 s, while a batch may still be worked on for 185 s");
    assert_eq!(fix, "sam deploy --parameter-overrides VisibilityTimeout=185");
}

/// What `CloudFormation` says of the parameters before it deploys anything.
fn refusals(parameters: &[(&str, &str)]) -> Vec<String> {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(TEMPLATE, &parameters).unwrap().refusals.into_iter().map(|finding| finding.breaks).collect()
}

#[test]
fn values_that_a_parameter_does_not_allow_are_named() {
    assert_eq!(refusals(&[]), [""; 0]);
    let cases = [
        ("QueueType", "lifo", "one of standard, fifo"),
        ("FunctionTimeout", "19", "at least 20"),
        ("FunctionTimeout", "901", "at most 900"),
        ("MaxReceiveCount", "ten", "a whole number"),
        (
            "LogRetentionDays",
            "8",
            "one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653",
        ),
    ];
    for (name, value, demand) in cases {
        assert_eq!(
            refusals(&[(name, value)]),
            [format!("CloudFormation refuses {name}={value}: it must be {demand}")]
        );
    }
}

#[test]
fn an_assertion_of_the_template_is_checked_for_the_parameters_that_are_given() {
    assert_eq!(refusals(&[("BatchSize", "10")]), [""; 0]);
    let says = |parameters: &[(&str, &str)]| -> Vec<String> {
        let prefix = "CloudFormation refuses these parameters: ";
        refusals(parameters).iter().map(|says| says.strip_prefix(prefix).unwrap().to_owned()).collect()
    };
    assert_eq!(
        says(&[("QueueType", "fifo"), ("BatchSize", "11"), ("MaxBatchingWindow", "1")]),
        ["A FIFO mapping takes batches of at most 10.", "A FIFO mapping takes no batching window.",]
    );
    assert_eq!(
        says(&[("BatchSize", "11")]),
        ["A BatchSize above 10 needs a MaxBatchingWindow of at least 1 second."]
    );
    assert_eq!(says(&[("Gateway", "http")]), ["The http gateway needs GatewayUrl."]);
    assert_eq!(
        says(&[("Stage", "prod"), ("DeletionProtection", "true")]),
        ["In prod somebody must hear the alarms; set AlarmTopicArn."]
    );
}

#[test]
fn every_rule_has_a_mutation() {
    let tried: Vec<&str> = MUTATIONS.iter().map(|mutation| mutation.rule).collect();
    let untried: Vec<&str> =
        RULES.iter().copied().flatten().map(|rule| rule.id).filter(|id| !tried.contains(id)).collect();
    assert_eq!(untried, [""; 0]);
}

#[test]
fn every_alarm_names_a_heading_of_the_runbook() {
    let runbook =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md")).unwrap();
    let headings: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let deployment = deployment(TEMPLATE, &BTreeMap::new()).unwrap();
    for alarm in deployment.alarms.unwrap() {
        let heading = alarm.description.split('"').nth(1).unwrap();
        assert!(
            headings.contains(&heading),
            "{} names {heading:?}, which docs/operations.md lacks",
            alarm.name
        );
    }
}
