//! An `UpdateItem` call, put together one attribute at a time.

use std::collections::HashMap;

use super::item::{Value, number, text};
use crate::ledger::{
    VERSION,
    entry::{Owner, State},
};

/// The attributes whose names DynamoDB reserves. Only these stand behind `#`: every other name would be sent, signed
/// and read three times.
const RESERVED: [&str; 3] = ["error", "owner", "state"];
/// A begin sets so many values, and its update is so long; everything else is smaller.
const VALUES: usize = 28;
const UPDATE: usize = 1024;

/// An `UpdateItem` call in the making.
#[derive(Debug)]
pub(super) struct Expression {
    set: String,
    remove: Vec<&'static str>,
    condition: String,
    values: HashMap<String, Value>,
}

/// The parts of an `UpdateItem` call.
#[derive(Debug)]
pub(super) struct Parts {
    /// The update expression.
    pub(super) update: String,
    /// The condition expression.
    pub(super) condition: String,
    /// What stands behind `#`.
    pub(super) names: HashMap<String, String>,
    /// What stands behind `:`.
    pub(super) values: HashMap<String, Value>,
}

/// What stands in front of an attribute's name.
fn mark(attribute: &str) -> &'static str {
    if RESERVED.contains(&attribute) { "#" } else { "" }
}

impl Expression {
    /// An expression that writes only if `condition` holds.
    pub(super) fn when(condition: impl Into<String>) -> Self {
        Self {
            set: String::with_capacity(UPDATE),
            remove: Vec::new(),
            condition: condition.into(),
            values: HashMap::with_capacity(VALUES),
        }
    }

    /// Gives a value to a name in the condition.
    pub(super) fn bind(mut self, name: &str, value: Value) -> Self {
        self.values.insert([":", name].concat(), value);
        self
    }

    pub(super) fn version(self) -> Self {
        self.bind("version", number(VERSION))
    }

    pub(super) fn mine(self, mine: &Owner) -> Self {
        self.version().bind("owner", text(&mine.token)).bind("fence", number(mine.fence))
    }

    /// Binds states under their own names in lower case.
    pub(super) fn states(self, states: &[State]) -> Self {
        states.iter().fold(self, |expression, state| {
            expression.bind(&state.as_str().to_ascii_lowercase(), text(state.as_str()))
        })
    }

    pub(super) fn live(self) -> Self {
        self.states(&[State::Claimed, State::Prepared, State::Sent])
    }

    /// One more assignment.
    fn assign(&mut self, parts: &[&str]) {
        self.set.push_str(if self.set.is_empty() { "SET " } else { ", " });
        self.set.extend(parts.iter().copied());
    }

    /// `attribute = value`.
    pub(super) fn set(mut self, attribute: &str, value: Value) -> Self {
        self.assign(&[mark(attribute), attribute, " = :new_", attribute]);
        self.bind_new(attribute, value)
    }

    /// `attribute = value`, unless it has one.
    pub(super) fn set_once(mut self, attribute: &str, value: Value) -> Self {
        let mark = mark(attribute);
        self.assign(&[mark, attribute, " = if_not_exists(", mark, attribute, ", :new_", attribute, ")"]);
        self.bind_new(attribute, value)
    }

    fn bind_new(mut self, attribute: &str, value: Value) -> Self {
        self.values.insert([":new_", attribute].concat(), value);
        self
    }

    /// `attribute = attribute + 1`, from 0.
    pub(super) fn increment(mut self, attribute: &str) -> Self {
        let mark = mark(attribute);
        self.assign(&[mark, attribute, " = if_not_exists(", mark, attribute, ", :zero) + :one"]);
        self.bind("zero", number(0)).bind("one", number(1))
    }

    pub(super) fn set_state(self, state: State) -> Self {
        self.set("state", text(state.as_str()))
    }

    pub(super) fn remove(mut self, attributes: &[&'static str]) -> Self {
        self.remove.extend(attributes);
        self
    }

    /// `attribute = value`, or no attribute.
    pub(super) fn set_or_remove(self, attribute: &'static str, value: Option<&String>) -> Self {
        match value {
            Some(value) => self.set(attribute, text(value)),
            None => self.remove(&[attribute]),
        }
    }

    /// The call.
    pub(super) fn into_parts(self) -> Parts {
        let Self { set: mut update, remove, condition, values } = self;
        for (position, attribute) in remove.into_iter().enumerate() {
            update.extend([if position == 0 { " REMOVE " } else { ", " }, mark(attribute), attribute]);
        }
        let used = |name: &&&str| {
            let placeholder = ["#", name].concat();
            update.contains(&placeholder) || condition.contains(&placeholder)
        };
        // DynamoDB refuses a name that is not used.
        let names =
            RESERVED.iter().filter(used).map(|name| (["#", name].concat(), (*name).to_owned())).collect();
        Parts { update, condition, names, values }
    }
}
