//! The corpus of the fuzz targets (`make fuzz`), replayed: what was found once is tried in every run.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a property that does not hold fails the test"
)]

use std::{collections::BTreeSet, panic::catch_unwind, path::Path};

mod amounts;
mod targets;

#[test]
fn every_input_of_the_corpus_keeps_the_properties() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, run) in targets::TARGETS {
        let folder = corpus.join(name);
        let mut inputs: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            let data = std::fs::read(&input).unwrap();
            assert!(catch_unwind(|| run(&data)).is_ok(), "{}", input.display());
        }
    }
}

/// A target that nobody runs finds nothing.
#[test]
fn every_target_is_built_for_the_fuzzer_and_has_a_corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(fuzz.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets: BTreeSet<String> = targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!((names("fuzz_targets"), names("corpus")), (targets.clone(), targets));
}
