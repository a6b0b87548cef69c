//! Powertools for AWS Lambda (Python) as an oracle: the same batches through its `BatchProcessor` and idempotency, and
//! through ours, each on a ledger and a provider of its own. Where they differ is a row of `docs/comparison.md`, with
//! the reason; a row that is no longer seen is noticed too. `make peers` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

mod batch;
mod difference;
mod run;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use futures_util::StreamExt;

use batch::Batch;
use difference::Kind;
use run::Side;

/// Two processes each; most of the time goes into starting Python.
const AT_ONCE: usize = 2;
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Powertools: make peers"]
async fn powertools_differs_only_where_it_is_written_down() {
    let batches = batch::all();
    let differences: Vec<(String, Vec<Kind>)> =
        futures_util::stream::iter(batches).map(compared).buffered(AT_ONCE).collect().await;
    let unknown: Vec<String> = differences.iter().flat_map(|(name, kinds)| unnamed(name, kinds)).collect();
    let seen = counted(&differences);
    println!("{} batches: {seen:?}", differences.len());
    assert!(unknown.is_empty(), "differences without a name:\n{}", unknown.join("\n"));
    let kinds: BTreeSet<String> = seen.into_keys().collect();
    assert_eq!(kinds, written(), "what was seen, and the table of docs/comparison.md");
}

fn unnamed(batch: &str, kinds: &[Kind]) -> Vec<String> {
    kinds.iter().filter_map(|kind| Some(format!("{batch}: {}", kind.as_ref().err()?))).collect()
}

/// How many batches showed each kind; `none` is those with the same messages left and the same charges.
fn counted(differences: &[(String, Vec<Kind>)]) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for (_, kinds) in differences {
        let mut named: BTreeSet<&str> = kinds.iter().filter_map(|kind| kind.as_ref().ok().copied()).collect();
        if kinds.iter().all(|kind| kind.as_ref().is_ok_and(|name| difference::FORMS.contains(name))) {
            named.insert("none");
        }
        named.into_iter().for_each(|kind| *seen.entry(kind.to_owned()).or_default() += 1);
    }
    seen
}

/// The batch's name and all differences. One without a name counts when it comes again: on a busy machine either
/// side can wait for longer than it does by its settings. What we promise holds each time.
async fn compared(batch: Batch) -> (String, Vec<Kind>) {
    let mut kinds = Vec::new();
    for _ in 0..TRIES {
        let (ours, theirs) = tokio::join!(run::run(&batch, Side::Ours), run::run(&batch, Side::Theirs));
        kinds = difference::all(&batch, &ours, &theirs);
        let broken = difference::broken_promises(&ours);
        if !broken.is_empty() {
            kinds.extend(broken.into_iter().map(|broken| Err(format!("OURS: {broken}"))));
            break;
        }
        if kinds.iter().all(Result::is_ok) {
            break;
        }
    }
    (batch.name, kinds)
}

/// The rows `| `kind` | batches | ...` of the document.
fn written() -> BTreeSet<String> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/comparison.md");
    let document = std::fs::read_to_string(document).unwrap();
    let section = document.lines().skip_while(|line| *line != "### The same batches through both");
    let rows = section.skip(1).take_while(|line| !line.starts_with('#'));
    rows.filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}
