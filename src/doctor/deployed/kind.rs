//! The types that are read, and what it takes to read them: Cloud Control asks each service in the caller's name.

use crate::doctor::Piece;

/// A type of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stack,
    Queue,
    QueuePolicy,
    Mapping,
    Function,
    Role,
    ManagedPolicy,
    Table,
    Alarm,
}

impl Kind {
    /// `CloudFormation`'s name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stack => "AWS::CloudFormation::Stack",
            Self::Queue => "AWS::SQS::Queue",
            Self::QueuePolicy => "AWS::SQS::QueueInlinePolicy",
            Self::Mapping => "AWS::Lambda::EventSourceMapping",
            Self::Function => "AWS::Lambda::Function",
            Self::Role => "AWS::IAM::Role",
            Self::ManagedPolicy => "AWS::IAM::ManagedPolicy",
            Self::Table => "AWS::DynamoDB::Table",
            Self::Alarm => "AWS::CloudWatch::Alarm",
        }
    }

    /// What the caller must be allowed beside `cloudformation:GetResource` and `cloudformation:ListResources`.
    /// `docs/operations.md` has the same list.
    pub(super) fn permissions(self) -> &'static [&'static str] {
        match self {
            Self::Stack => {
                &["cloudformation:DescribeStacks", "cloudformation:GetTemplate", "cloudformation:ListStacks"]
            }
            Self::Queue => &["sqs:GetQueueAttributes", "sqs:ListQueueTags"],
            Self::QueuePolicy => &["sqs:GetQueueAttributes"],
            Self::Mapping => {
                &["lambda:GetEventSourceMapping", "lambda:ListEventSourceMappings", "lambda:ListTags"]
            }
            Self::Function => &["lambda:GetFunction", "lambda:GetFunctionCodeSigningConfig"],
            Self::Role => {
                &["iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies"]
            }
            Self::ManagedPolicy => &["iam:GetPolicy", "iam:GetPolicyVersion", "iam:ListEntitiesForPolicy"],
            Self::Table => &[
                "dynamodb:DescribeContinuousBackups",
                "dynamodb:DescribeContributorInsights",
                "dynamodb:DescribeKinesisStreamingDestination",
                "dynamodb:DescribeTable",
                "dynamodb:DescribeTimeToLive",
                "dynamodb:GetResourcePolicy",
                "dynamodb:ListTagsOfResource",
            ],
            Self::Alarm => &["cloudwatch:DescribeAlarms", "cloudwatch:ListTagsForResource"],
        }
    }
}

impl Piece {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::DeadLetters => "dead-letter queue",
            Self::QueuePolicies => "queue policies",
            Self::Mapping => "event source mapping",
            Self::Function => "function",
            Self::Role => "role",
            Self::Ledger => "table",
            Self::Alarms => "alarms",
            Self::Dashboards => "dashboards",
        }
    }
}
