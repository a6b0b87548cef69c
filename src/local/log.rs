//! What the function writes: its standard output and error, line by line.
//!
//! They go to a file and not through a pipe: what the function wrote before it answered is in the file when
//! the answer arrives, so no line is missed and none is waited for.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use serde_json::{Map, Value};

use crate::backoff::Random;

/// The log of a function.
#[derive(Debug)]
pub struct Log {
    writing: File,
    reading: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    file: BufReader<File>,
    /// The beginning of a line that is still being written.
    begun: Vec<u8>,
}

impl Log {
    /// An empty log in the system's folder for temporary files. It has no name and vanishes with the last handle.
    ///
    /// # Errors
    /// The file could not be made.
    pub fn create() -> io::Result<Self> {
        let path: PathBuf = std::env::temp_dir().join(format!("charge-once-{}.log", Random::System.token()));
        let log = Self::open(OpenOptions::new().append(true).create_new(true), &path)?;
        // Where open files cannot be removed, the small file stays behind in the temporary folder.
        drop(std::fs::remove_file(&path));
        Ok(log)
    }

    /// An empty log in the file of that name, which stays. What was in it is gone.
    ///
    /// # Errors
    /// The file can be neither made nor emptied.
    pub fn create_at(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Self::open(OpenOptions::new().append(true), path)
    }

    /// Several processes write to it: only appending keeps their lines apart.
    fn open(appending: &OpenOptions, path: &Path) -> io::Result<Self> {
        let writing = appending.open(path)?;
        let file = BufReader::new(File::open(path)?);
        Ok(Self { writing, reading: Mutex::new(Reading { file, begun: Vec::new() }) })
    }

    /// Adds a line of this process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, line: &str) -> io::Result<()> {
        // In one piece, or the function could write into the middle of it.
        (&self.writing).write_all(format!("{line}\n").as_bytes())
    }

    /// A handle for a child process to write to.
    ///
    /// # Errors
    /// The system has no file handle left.
    pub fn writer(&self) -> io::Result<Stdio> {
        Ok(self.writing.try_clone()?.into())
    }

    /// The lines finished since the last call.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn take(&self) -> io::Result<Vec<String>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading { file, begun } = &mut *reading;
        let mut lines = Vec::new();
        while file.read_until(b'\n', begun)? > 0 && begun.ends_with(b"\n") {
            lines.push(String::from_utf8_lossy(begun).trim_end().to_owned());
            begun.clear();
        }
        Ok(lines)
    }
}

/// What a line of the log says to a person: the error of a JSON line, else its message, else the line itself.
pub(crate) fn words(line: &str) -> String {
    let fields: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    let text = |field| fields.get(field).and_then(Value::as_str);
    text("error").or_else(|| text("message")).unwrap_or(line).to_owned()
}

/// The line the function logs for each record: `message_id`, `order_id`, `decision`, `reason` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLine(Map<String, Value>);

impl RecordLine {
    /// Reads a log line; `None` unless it tells what became of a record.
    pub fn parse(line: &str) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return None };
        fields.contains_key("decision").then_some(Self(fields))
    }

    /// A field as text; "" if the line does not have it.
    pub fn text(&self, field: &str) -> String {
        match self.0.get(field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                other.to_string()
            }
        }
    }

    /// All fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lines_of_a_process_are_there_when_it_has_written_them() {
        let log = Log::create().unwrap();
        for word in ["one", "two"] {
            let status = Command::new("echo").arg(word).stdout(log.writer().unwrap()).status().unwrap();
            assert!(status.success());
            assert_eq!(log.take().unwrap(), [word]);
        }
        assert_eq!(log.take().unwrap(), [""; 0]);
    }

    #[test]
    fn a_named_log_is_emptied_first_and_stays() {
        let path = std::env::temp_dir().join(format!("charge-once-{}.test", Random::System.token()));
        std::fs::write(&path, "of an earlier run\n").unwrap();
        let log = Log::create_at(&path).unwrap();
        let mut echo = Command::new("echo");
        assert!(echo.arg("one").stdout(log.writer().unwrap()).status().unwrap().success());
        log.write("two").unwrap();
        assert_eq!(log.take().unwrap(), ["one", "two"]);
        drop(log);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_is_one_line_however_it_was_written() {
        let log = Log::create().unwrap();
        for (part, expected) in [("one ", &[][..]), ("line\nand", &["one line"]), (" one\n", &["and one"])] {
            let mut echo = Command::new("printf");
            assert!(echo.arg(part).stdout(log.writer().unwrap()).status().unwrap().success());
            assert_eq!(log.take().unwrap(), expected);
        }
    }

    #[test]
    fn only_lines_with_a_decision_are_records() {
        let line = RecordLine::parse(r#"{"message_id":"m","decision":"ack","amount_minor":4990}"#).unwrap();
        assert_eq!(
            [line.text("message_id"), line.text("amount_minor"), line.text("reason")],
            ["m", "4990", ""]
        );
        for other in ["", "panicked at", "[]", r#"{"_aws":{},"decision_count":1}"#] {
            assert_eq!(RecordLine::parse(other), None, "{other}");
        }
    }
    #[test]
    fn a_line_is_said_without_its_json() {
        let lines = [
            r#"{"level":"ERROR","message":"the function cannot start","error":"LEASE_SECONDS must be ..."}"#,
            r#"{"level":"INFO","message":"ready"}"#,
            r#"{"level":"INFO"}"#,
            "thread 'main' panicked",
        ];
        insta::assert_snapshot!(lines.map(words).join("\n"), @r#"
        LEASE_SECONDS must be ...
        ready
        {"level":"INFO"}
        thread 'main' panicked
        "#);
    }
}
