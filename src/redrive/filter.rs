//! Which dead letters are meant: `reason=DECLINED,age>1h,ledger!=paid`.

use std::str::FromStr;

use super::{DeadLetter, Standing};
use crate::clock::parse_duration;

/// Conditions that all must hold. Without any, every letter is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<Condition>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: Field,
    compare: Compare,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Reason,
    OrderId,
    Group,
    Ledger,
    Age,
    Receives,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Is,
    IsNot,
    Contains,
    Above,
    Below,
}

/// Longer operators first: `!=` is not `=`.
const OPERATORS: [(&str, Compare); 5] = [
    ("!=", Compare::IsNot),
    ("=", Compare::Is),
    ("~", Compare::Contains),
    (">", Compare::Above),
    ("<", Compare::Below),
];

/// Why a filter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Nothing to match: an unset shell variable, say, where a filter was meant.
    #[error("the filter is empty and would match everything; write * to mean that")]
    Empty,
    /// A condition without an operator.
    #[error("{0:?} is no condition; write FIELD=VALUE with =, !=, ~ (contains), > or <")]
    NoOperator(String),
    /// An unknown field.
    #[error("there is no field {0:?}; there are reason, order_id, group, ledger, age, receives")]
    Field(String),
    /// The operator does not fit the field.
    #[error("{field} is compared with {allowed}")]
    Operator {
        /// The field.
        field: &'static str,
        /// What fits.
        allowed: &'static str,
    },
    /// The value does not fit the field.
    #[error("{field} takes {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// What fits.
        expected: String,
    },
}

impl Filter {
    /// Whether the letter is meant.
    pub fn takes(&self, letter: &DeadLetter) -> bool {
        self.0.iter().all(|condition| condition.holds(letter))
    }
}

/// The filter that everything passes.
const ALL: &str = "*";

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.trim() == ALL {
            return Ok(Self::default());
        }
        let conditions: Vec<&str> = text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if conditions.is_empty() {
            return Err(FilterError::Empty);
        }
        conditions.into_iter().map(Condition::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, FilterError> {
        let (at, operator, compare) = OPERATORS
            .into_iter()
            .filter_map(|(operator, compare)| Some((text.find(operator)?, operator, compare)))
            .min_by_key(|(at, ..)| *at)
            .ok_or_else(|| FilterError::NoOperator(text.to_owned()))?;
        let (name, rest) = text.split_at(at);
        let value = rest.strip_prefix(operator).unwrap_or_default().trim();
        let field = Field::parse(name.trim())?;
        field.check(compare, value)?;
        Ok(Self { field, compare, value: value.to_owned() })
    }

    fn holds(&self, letter: &DeadLetter) -> bool {
        let text = |text: &str| match self.compare {
            Compare::Is => text == self.value,
            Compare::IsNot => text != self.value,
            Compare::Contains => text.contains(&self.value),
            Compare::Above | Compare::Below => false,
        };
        match self.field {
            Field::Reason => {
                // `DECLINED` means every decline, `DECLINED:card_declined` that one.
                let code = letter.reason.split(':').next().unwrap_or_default();
                match self.compare {
                    Compare::Is => text(&letter.reason) || text(code),
                    Compare::IsNot => text(&letter.reason) && text(code),
                    Compare::Contains | Compare::Above | Compare::Below => text(&letter.reason),
                }
            }
            Field::OrderId => text(letter.order_id.as_ref().map_or("", |id| id.as_str())),
            Field::Group => text(letter.group().unwrap_or_default()),
            Field::Ledger => text(letter.standing.name()),
            Field::Age => parse_duration(&self.value).is_some_and(|value| self.ranks(&letter.age, &value)),
            Field::Receives => {
                self.value.parse().is_ok_and(|value: u32| self.ranks(&letter.receive_count, &value))
            }
        }
    }

    fn ranks<T: Ord>(&self, found: &T, value: &T) -> bool {
        match self.compare {
            Compare::Is => found == value,
            Compare::IsNot => found != value,
            Compare::Above => found > value,
            Compare::Below => found < value,
            Compare::Contains => false,
        }
    }
}

impl Field {
    fn parse(name: &str) -> Result<Self, FilterError> {
        Ok(match name {
            "reason" => Self::Reason,
            "order_id" => Self::OrderId,
            "group" => Self::Group,
            "ledger" => Self::Ledger,
            "age" => Self::Age,
            "receives" => Self::Receives,
            other => return Err(FilterError::Field(other.to_owned())),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Reason => "reason",
            Self::OrderId => "order_id",
            Self::Group => "group",
            Self::Ledger => "ledger",
            Self::Age => "age",
            Self::Receives => "receives",
        }
    }

    fn check(self, compare: Compare, value: &str) -> Result<(), FilterError> {
        let (field, ranked) = (self.name(), matches!(compare, Compare::Above | Compare::Below));
        let wrong = |expected: String| Err(FilterError::Value { field, expected });
        match self {
            Self::Age if !ranked => Err(FilterError::Operator { field, allowed: "> or <" }),
            Self::Age if parse_duration(value).is_none() => {
                wrong("a duration such as 30s, 15m, 20h or 7d".to_owned())
            }
            Self::Receives if compare == Compare::Contains => {
                Err(FilterError::Operator { field, allowed: "=, !=, > or <" })
            }
            Self::Receives if value.parse::<u32>().is_err() => wrong("a whole number".to_owned()),
            Self::Reason | Self::OrderId | Self::Group | Self::Ledger if ranked => {
                Err(FilterError::Operator { field, allowed: "=, != or ~" })
            }
            // What an unset shell variable leaves; it would match every letter without an order, or all.
            Self::Reason | Self::OrderId | Self::Group if value.is_empty() => {
                wrong("a value; an empty one would match what was not meant".to_owned())
            }
            Self::Ledger if !Standing::NAMES.contains(&value) => wrong(Standing::NAMES.join(", ")),
            Self::Reason | Self::OrderId | Self::Group | Self::Ledger | Self::Age | Self::Receives => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::{
        order::OrderId,
        queue::Message,
        record::{MessageId, ReceiptHandle},
    };

    fn letter() -> DeadLetter {
        let message = Message {
            id: MessageId::new("m").unwrap(),
            receipt_handle: ReceiptHandle::new("h").unwrap(),
            body: String::new(),
            system: BTreeMap::from([("MessageGroupId".to_owned(), "customer-7".to_owned())]),
            attributes: Vec::new(),
        };
        DeadLetter {
            message,
            order_id: OrderId::parse("o-1"),
            standing: Standing::Paid { charge_id: None },
            reason: "DECLINED:card_declined".to_owned(),
            age: Duration::from_secs(7200),
            receive_count: 8,
        }
    }

    #[test]
    fn each_field_is_compared_as_it_reads() {
        let takes = |text: &str| text.parse::<Filter>().unwrap().takes(&letter());
        let met = [
            "*",
            "reason=DECLINED",
            "reason=DECLINED:card_declined",
            "reason~card",
            "order_id=o-1",
            "group!=customer-8",
            "ledger=paid",
            "age>1h, age<1d",
            "receives>7",
            "receives=8",
        ];
        let not_met =
            ["reason=DECLINE", "reason!=DECLINED", "ledger!=paid", "age<2h", "receives<8,ledger=paid"];
        assert_eq!(met.map(takes), [true; 10]);
        assert_eq!(not_met.map(takes), [false; 5]);
    }

    #[test]
    fn a_wrong_filter_says_what_is_allowed() {
        let error = |text: &str| text.parse::<Filter>().unwrap_err().to_string();
        assert_eq!(
            error("colour=red"),
            "there is no field \"colour\"; there are reason, order_id, group, ledger, age, receives"
        );
        assert!(error(" , ").starts_with("the filter is empty and would match everything"));
        assert_eq!(error("age=1h"), "age is compared with > or <");
        for empty in ["order_id=", "reason~", "group=", "order_id!= "] {
            assert!(
                error(empty).ends_with("takes a value; an empty one would match what was not meant"),
                "{empty}"
            );
        }
        assert_eq!(error("age>soon"), "age takes a duration such as 30s, 15m, 20h or 7d");
        assert_eq!(
            error("reason"),
            "\"reason\" is no condition; write FIELD=VALUE with =, !=, ~ (contains), > or <"
        );
        assert!(error("ledger=PAID").starts_with("ledger takes no-order, none,"));
    }
}
