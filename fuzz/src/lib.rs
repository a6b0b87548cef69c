//! The fuzz targets, by name. What they assert is in `../tests/it/fuzzing/targets`.

#[path = "../../tests/it/fuzzing/targets/mod.rs"]
mod targets;

/// Runs a target with an input; panics if a property does not hold.
pub fn run(target: &str, data: &[u8]) {
    let (_, run) = targets::TARGETS.iter().find(|(name, _)| *name == target).expect("a target of this name");
    run(data);
}
