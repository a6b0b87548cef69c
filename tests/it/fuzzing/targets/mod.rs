//! What must hold for every input from outside. Each target takes bytes and panics if a property does not hold; the
//! fuzzer (`fuzz/`) and the replay of its corpus call the same functions.

mod answer;
mod envelope;
mod event;
mod http_answer;
mod money;
mod order;
mod settings;
mod stripe_answer;

/// A body of a target.
pub(crate) type Target = fn(&[u8]);

/// Every target by name.
pub(crate) const TARGETS: [(&str, Target); 7] = [
    ("envelope", envelope::run),
    ("event", event::run),
    ("http_answer", http_answer::run),
    ("money", money::run),
    ("order", order::run),
    ("settings", settings::run),
    ("stripe_answer", stripe_answer::run),
];

/// What may stand in a log line: short, without control characters, without a number as long as a card's.
pub(crate) fn assert_loggable(text: &str) {
    assert!(text.len() < 1000 && !text.chars().any(char::is_control), "{text:?}");
    let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    assert!(longest < Some(13), "{text}");
}
