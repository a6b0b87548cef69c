//! Standard output and standard error, the only places a command writes to.

use std::{
    error::Error,
    io::{self, Write},
};

/// Where a command's result goes.
pub(crate) struct Screen(Box<dyn Write + Send>);

impl Screen {
    /// The process's standard output.
    pub(crate) fn stdout() -> Self {
        Self(Box::new(io::stdout()))
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Says on standard error why a command could not do its work: the error and its causes on one line.
pub(crate) fn complain(error: &(dyn Error + 'static)) {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let line = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    note(&format!("error: {line}"));
}

/// Says something on standard error that is not the command's result.
pub(crate) fn note(line: &str) {
    // If nobody reads standard error there is nobody left to tell.
    drop(writeln!(io::stderr(), "{line}"));
}

/// `1 message`, `2 messages`.
pub(crate) fn plural<N: PartialEq + From<u8> + std::fmt::Display>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Whether the error, or a cause of it, is a reader that went away.
pub(crate) fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0_usize, 1, 2].map(|count| plural(count, "error")), ["0 errors", "1 error", "2 errors"]);
    }

    #[test]
    fn only_a_reader_that_went_away_is_forgiven() {
        assert!(is_closed_pipe(&io::Error::from(io::ErrorKind::BrokenPipe)));
        assert!(!is_closed_pipe(&io::Error::from(io::ErrorKind::NotFound)));
    }
}
