//! The commands of a document: the lines of its blocks, and what stands between backticks in its text.

use std::path::Path;

/// What somebody would type, and where it is written.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) document: String,
    /// The heading above it.
    pub(super) section: String,
    /// The language of its block; `None` in running text.
    pub(super) language: Option<String>,
    pub(super) line: String,
}

/// What a command begins with.
const PROGRAMS: [&str; 11] =
    ["charge-once", "make", "cargo", "aws", "sam", "cdk", "docker", "git", "pip", "npm", "python3"];
/// Blocks that hold commands: every line of `sh`, else those of a program or after `$`. The others are data or code.
const WITH_COMMANDS: [&str; 4] = ["", "sh", "console", "text"];
const WITHOUT: [&str; 5] = ["rust", "json", "typescript", "hcl", "yaml"];

/// The commands of every document that tells somebody what to type; the change log tells what was.
pub(super) fn every() -> Vec<Typed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = crate::docs::documents().into_iter();
    let names = documents.map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name != "CHANGELOG.md").flat_map(|name| commands(&name)).collect()
}

/// The commands of one document, from top to bottom.
pub(super) fn commands(document: &str) -> Vec<Typed> {
    let text = crate::docs::read(document).replace("\\\n", " ");
    let mut reader = Reader { document, section: String::new(), prose: String::new(), found: Vec::new() };
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match (fence, line.trim().strip_prefix("```")) {
            (None, Some(language)) => {
                let known = WITH_COMMANDS.contains(&language) || WITHOUT.contains(&language);
                assert!(known, "{document}: does a block of {language:?} hold commands?");
                fence = Some(language);
            }
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) if WITHOUT.contains(&language) => {}
            (Some(language), None) => reader.block(language, line.trim()),
            (None, None) if line.starts_with("    ") => reader.block("", line.trim()),
            (None, None) => reader.text(line),
        }
    }
    reader.end_of_text();
    reader.found
}

struct Reader<'a> {
    document: &'a str,
    section: String,
    /// Text since the last heading or block: what stands between backticks may go over the end of a line.
    prose: String,
    found: Vec<Typed>,
}

impl Reader<'_> {
    fn block(&mut self, language: &str, line: &str) {
        self.end_of_text();
        let typed = line.strip_prefix("$ ");
        let is_command = match language {
            "sh" => !line.is_empty(),
            _ => typed.is_some() || is_program(line),
        };
        if is_command {
            let line = typed.unwrap_or(line).split(" #").next().unwrap().trim();
            self.take(Some(language), line);
        }
    }

    fn text(&mut self, line: &str) {
        if line.starts_with('#') {
            self.end_of_text();
            self.section = line.trim_start_matches('#').trim().to_owned();
        }
        self.prose.push_str(line.trim());
        self.prose.push(' ');
    }

    fn end_of_text(&mut self) {
        let prose = std::mem::take(&mut self.prose);
        for span in prose.split('`').skip(1).step_by(2).filter(|span| is_program(span)) {
            self.take(None, span);
        }
    }

    fn take(&mut self, language: Option<&str>, line: &str) {
        self.found.push(Typed {
            document: self.document.to_owned(),
            section: self.section.clone(),
            language: language.map(str::to_owned),
            line: line.to_owned(),
        });
    }
}

/// A program with something to do; its name alone is a name.
fn is_program(line: &str) -> bool {
    let Some((program, rest)) = line.split_once(' ') else { return false };
    // In drawings and sentences something else follows.
    let is_word = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-./".contains(c));
    is_word && (PROGRAMS.contains(&program) || program.starts_with("scripts/"))
}
