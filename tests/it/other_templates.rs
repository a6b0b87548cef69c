//! The doctor on templates that others write: plain `CloudFormation`, what the CDK makes, and SAM in its other forms.
#![expect(clippy::panic, reason = "a template that cannot be read fails the test")]

use std::collections::BTreeMap;

use charge_once::doctor::{Finding, Severity, check, template::deployment};

/// A sound deployment in plain `CloudFormation`. It has no alarms, which is another matter.
const BASE: &str = "
Resources:
  Ledger:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      AttributeDefinitions:
        - {AttributeName: pk, AttributeType: S}
        - {AttributeName: attention, AttributeType: S}
        - {AttributeName: state_changed_at, AttributeType: N}
      GlobalSecondaryIndexes:
        - IndexName: attention
          KeySchema:
            - {AttributeName: attention, KeyType: HASH}
            - {AttributeName: state_changed_at, KeyType: RANGE}
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
  OrdersDlq:
    Type: AWS::SQS::Queue
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties: {MessageRetentionPeriod: 1209600, SqsManagedSseEnabled: true}
  Orders:
    Type: AWS::SQS::Queue
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      VisibilityTimeout: 180
      SqsManagedSseEnabled: true
      RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 10}
  Role:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument: &allowed
            Statement:
              - Effect: Allow
                Action: [sqs:ReceiveMessage, sqs:DeleteMessage, sqs:GetQueueAttributes, sqs:ChangeMessageVisibility]
                Resource: !GetAtt Orders.Arn
              - Effect: Allow
                Action: [dynamodb:UpdateItem, dynamodb:GetItem]
                Resource: !GetAtt Ledger.Arn
  Charge:
    Type: AWS::Lambda::Function
    Properties:
      Timeout: 30
      Architectures: [arm64]
      Role: !GetAtt Role.Arn
      Environment:
        Variables:
          LEDGER_TABLE: !Ref Ledger
          GATEWAY: http
          GATEWAY_URL: https://p.example/charges
          MAX_RECEIVE_COUNT: '10'
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      EventSourceArn: !GetAtt Orders.Arn
      FunctionName: !Ref Charge
      FunctionResponseTypes: [ReportBatchItemFailures]
      ScalingConfig: {MaximumConcurrency: 10}
      MetricsConfig: {Metrics: [EventCount]}
";

/// What is found beside alarms and dashboard, which the base lacks, and TLS, which is about the queues.
fn findings(text: &str) -> Vec<Finding> {
    let deployment = deployment(text, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let elsewhere = |rule: &str| rule.contains("alarm") || rule.contains("dead-letters-heard");
    let beside = |finding: &Finding| {
        !elsewhere(finding.rule) && !["dashboard", "queues-demand-tls"].contains(&finding.rule)
    };
    check(&deployment).into_iter().filter(beside).collect()
}

fn rules(text: &str) -> Vec<&'static str> {
    findings(text).iter().map(|finding| finding.rule).collect()
}

fn edited(find: &str, replace: &str) -> String {
    assert_eq!(BASE.matches(find).count(), 1, "{find:?}");
    BASE.replace(find, replace)
}

/// The base with another statement in the role's policy.
fn with_statement(statement: &str) -> String {
    let at = "  Charge:\n    Type";
    edited(at, &format!("              - {statement}\n{at}"))
}

#[test]
fn the_base_is_sound() {
    assert_eq!(findings(BASE), []);
}

#[test]
fn a_policy_is_read_wherever_it_is_attached() {
    let own = "      Policies:\n        - PolicyDocument: &allowed\n";
    let base =
        edited(own, "      RoleName: charge\n      Tags: []\n    Metadata:\n      x:\n        - &allowed\n");
    assert!(rules(&base).contains(&"role-writes-ledger"));
    for attached in [
        "AWS::IAM::Policy, Properties: {Roles: [!Ref Role], ",
        "AWS::IAM::Policy, Properties: {Roles: [charge], ",
        "AWS::IAM::ManagedPolicy, Properties: {Roles: [!Ref Role], ",
        "AWS::IAM::RolePolicy, Properties: {RoleName: !Ref Role, ",
    ] {
        let sound = format!("{base}  Attached: {{Type: {attached}PolicyDocument: *allowed}}}}\n");
        assert_eq!(findings(&sound), [], "{attached}");
        let statement = "{Effect: Allow, Action: ['dynamodb:DeleteItem', 'sqs:*'], Resource: '*'}";
        let wide =
            format!("{BASE}  Attached: {{Type: {attached}PolicyDocument: {{Statement: {statement}}}}}}}\n");
        let wide = wide.replace("      Policies:", "      RoleName: charge\n      Policies:");
        assert_eq!(rules(&wide), ["role-never-deletes-records", "role-narrow"], "{attached}");
    }
    let of_another = format!(
        "{BASE}  Attached: {{Type: AWS::IAM::Policy, Properties: {{Roles: [other], PolicyDocument: {{Statement: \
         {{Effect: Allow, Action: '*', Resource: '*'}}}}}}}}\n"
    );
    assert_eq!(findings(&of_another), []);
}

#[test]
fn all_but_some_actions_is_too_much() {
    let text = with_statement("{Effect: Allow, NotAction: 'iam:*', Resource: '*'}");
    assert_eq!(rules(&text), ["role-narrow"]);
}

#[test]
fn a_denial_wins_unless_it_is_about_something_else() {
    let denied = findings(&with_statement("{Effect: Deny, Action: 'sqs:Change*', Resource: '*'}"));
    let [Finding { rule, fix, .. }] = denied.as_slice() else { panic!("{denied:?}") };
    assert_eq!(*rule, "role-hides-orders");
    assert_eq!(fix, "remove the Deny of sqs:ChangeMessageVisibility on Orders.Arn");
    for harmless in [
        "{Effect: Deny, Action: 'sqs:Change*', Resource: !GetAtt OrdersDlq.Arn}",
        "{Effect: Deny, Action: 'sqs:Change*', NotResource: !GetAtt Orders.Arn}",
        "{Effect: Deny, NotAction: ['sqs:*', 'dynamodb:*'], Resource: '*'}",
        "{Effect: Deny, Action: '*', Resource: '*', Condition: {Bool: {'aws:SecureTransport': 'false'}}}",
    ] {
        assert_eq!(findings(&with_statement(harmless)), [], "{harmless}");
    }
}

#[test]
fn nothing_may_empty_a_queue_or_forget_a_record() {
    for (action, of) in
        [("sqs:PurgeQueue", "Orders"), ("sqs:DeleteQueue", "Orders"), ("dynamodb:PartiQLDelete", "Ledger")]
    {
        let text =
            with_statement(&format!("{{Effect: Allow, Action: {action}, Resource: !GetAtt {of}.Arn}}"));
        let found = findings(&text);
        let [Finding { rule, severity, breaks, .. }] = found.as_slice() else {
            panic!("{action}: {found:?}")
        };
        assert_eq!((*rule, *severity), ("role-never-deletes-records", Severity::Error));
        assert!(breaks.starts_with(&format!("the role may {action}: ")), "{breaks}");
    }
}

#[test]
fn the_way_of_the_orders_is_found_among_other_resources() {
    for stranger in [
        // Each comes before the one that it could be taken for.
        "ApiHandler: {Type: AWS::Lambda::Function, Properties: {Timeout: 3}}",
        "ApiHandler: {Type: AWS::Serverless::Function, Properties: {Timeout: 3}}",
        "Customers: {Type: AWS::DynamoDB::Table, Properties: {KeySchema: []}}",
        "Customers: {Type: AWS::DynamoDB::GlobalTable, Properties: {KeySchema: []}}",
        "AStream: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Ledger.StreamArn, \
         FunctionName: !Ref Charge}}",
        "Letters: {Type: AWS::SQS::Queue, Properties: {}}\n  \
         Mail: {Type: AWS::Serverless::Function, Properties: {Timeout: 3, Events: {Letters: {Type: SQS, Properties: \
         {Queue: !GetAtt Letters.Arn}}}}}",
        "Letters: {Type: AWS::SQS::Queue, Properties: {}}\n  \
         Mail: {Type: AWS::Lambda::Function, Properties: {Timeout: 3}}\n  \
         ALetter: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Letters.Arn, \
         FunctionName: !Ref Mail}}",
    ] {
        assert_eq!(findings(&format!("{BASE}  {stranger}\n")), [], "{stranger}");
    }
}

#[test]
fn a_function_is_found_behind_its_alias() {
    let other = "  ApiHandler: {Type: AWS::Lambda::Function, Properties: {Timeout: 3, Environment: {Variables: \
                 {LEDGER_TABLE: other}}}}\n";
    let alias = "  Live: {Type: AWS::Lambda::Alias, Properties: {FunctionName: !Ref Charge, Name: live}}\n";
    for name in ["!Ref Live", "!Ref Charge.Alias", "!Ref ChargeAliaslive", "!Sub '${Charge.Arn}:live'"] {
        let base = edited("FunctionName: !Ref Charge", &format!("FunctionName: {name}"));
        assert_eq!(findings(&format!("{base}{other}{alias}")), [], "{name}");
    }
}

#[test]
fn a_global_table_is_a_table() {
    let recoverable = "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}";
    for (replicas, expected) in [
        (format!("Replicas: [{{Region: eu-central-1, {recoverable}}}]"), &[][..]),
        (
            format!("Replicas: [{{Region: eu-west-1}}, {{Region: eu-central-1, {recoverable}}}]"),
            &["ledger-recoverable"],
        ),
    ] {
        let text =
            edited(recoverable, &replicas).replace("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable");
        assert_eq!(rules(&text), expected, "{replicas}");
    }
}

#[test]
fn what_outlives_its_stack_may_go_with_a_first_deployment_that_fails() {
    let text = BASE.replace("DeletionPolicy: Retain", "DeletionPolicy: RetainExceptOnCreate");
    assert_eq!(findings(&text), []);
    let replaced = text.replace("UpdateReplacePolicy: Retain", "UpdateReplacePolicy: Delete");
    assert_eq!(rules(&replaced), ["queues-retained", "ledger-retained"]);
}

#[test]
fn every_mapping_of_the_queue_is_checked() {
    let second = |properties: &str| {
        format!(
            "{BASE}  Second: {{Type: AWS::Lambda::EventSourceMapping, Properties: {{EventSourceArn: !GetAtt \
             Orders.Arn, FunctionName: !Ref Charge, MetricsConfig: {{Metrics: [EventCount]}}, {properties}}}}}\n"
        )
    };
    let sound = "FunctionResponseTypes: [ReportBatchItemFailures], ScalingConfig: {MaximumConcurrency: 2}";
    assert_eq!(findings(&second(sound)), []);
    assert_eq!(
        rules(&second("FilterCriteria: {Filters: [{Pattern: '{}'}]}")),
        ["partial-responses", "no-filter", "bounded-concurrency"]
    );
    let waits = second(&format!("{sound}, MaximumBatchingWindowInSeconds: 5"));
    assert_eq!(rules(&waits), ["visibility-covers-retries"]);
}

#[test]
fn what_sam_says_of_all_functions_holds_for_this_one() {
    let function =
        "    Type: AWS::Lambda::Function\n    Properties:\n      Timeout: 30\n      Architectures: [arm64]\n";
    let text = edited(function, "    Type: AWS::Serverless::Function\n    Properties:\n");
    let globals = |timeout| {
        format!(
            "Globals: {{Function: {{Timeout: {timeout}, Architectures: [arm64], Environment: {{Variables: {{}}}}}}}}{text}"
        )
    };
    assert_eq!(findings(&globals(30)), []);
    assert_eq!(rules(&globals(60)), ["visibility-covers-retries", "lease-fits"]);
}

#[test]
fn a_map_is_looked_up() {
    let map = |timeout| format!("Mappings: {{Stage: {{prod: {{timeout: {timeout}, receives: 10}}}}}}");
    let looked_up = edited("Timeout: 30", "Timeout: !FindInMap [Stage, prod, timeout]")
        .replace("maxReceiveCount: 10", "maxReceiveCount: !FindInMap [Stage, prod, receives]");
    assert_eq!(findings(&format!("{}{looked_up}", map(30))), []);
    assert_eq!(rules(&format!("{}{looked_up}", map(60))), ["visibility-covers-retries", "lease-fits"]);
}

#[test]
fn an_arn_put_together_is_that_of_the_resource() {
    let own_name = "VisibilityTimeout: 180\n      QueueName: !Join ['-', [!Ref AWS::StackName, orders]]";
    let arn = "!Join ['', ['arn:', !Ref AWS::Partition, ':sqs:', !Ref AWS::Region, ':', !Ref AWS::AccountId, ':', \
               !Ref AWS::StackName, '-orders']]";
    let text = edited("VisibilityTimeout: 180", own_name).replace("!GetAtt Orders.Arn", arn);
    assert_eq!(findings(&text), []);
}

#[test]
fn a_number_that_cannot_be_told_is_not_taken_for_a_default() {
    for (find, property) in [
        ("VisibilityTimeout: 180", "Orders.VisibilityTimeout"),
        ("maxReceiveCount: 10", "Orders.RedrivePolicy.maxReceiveCount"),
        ("Timeout: 30", "Charge.Timeout"),
        ("MaximumConcurrency: 10", "Mapping.ScalingConfig.MaximumConcurrency"),
    ] {
        let (name, _) = find.split_once(':').unwrap();
        for unknown in ["{'Fn::ImportValue': x}", "{'Fn::FindInMap': [M, !Ref AWS::Region, n]}"] {
            let text = edited(find, &format!("{name}: {unknown}"));
            let error = deployment(&text, &BTreeMap::new()).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{property} is not a number")), "{error}");
        }
    }
}
