//! How a verb fails: a stable code, what happened, how to get on, and with which exit code.

use std::fmt;
use std::process::ExitCode;

/// The exit codes. They are a contract with scripts: a code is never given another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// It did not work.
    Failed = 1,
    /// The command line makes no sense. clap itself ends with this code too.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// The token does not allow it.
    NotAllowed = 4,
    /// A rule refused: a conflict, a signature, a configuration with errors.
    Refused = 5,
    /// No server answered.
    Unreachable = 6,
    /// Some of it was done, some not.
    Partly = 7,
    /// The server stopped itself, since its disk could no longer be trusted.
    FailStop = 70,
    /// Interrupted from the keyboard.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure with everything that its block on the screen shows.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    code: &'static str,
    message: String,
    lines: Vec<(&'static str, String)>,
}

impl Failure {
    /// A failure. `code` is stable and names the kind; `message` is one line, lower case, without a full stop.
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit, code, message: message.into(), lines: Vec::new() }
    }

    /// Adds what the person can do.
    #[must_use]
    pub(crate) fn fix(self, text: impl Into<String>) -> Self {
        self.line("fix", text)
    }

    /// Adds a line of another kind: `by`, `why`, `more`. Several lines may be given in one text.
    #[must_use]
    pub(crate) fn line(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.lines.push((label, text.into()));
        self
    }

    /// Adds what stands behind an error, a line each.
    #[must_use]
    pub(crate) fn because(self, error: &dyn std::error::Error) -> Self {
        causes(error).into_iter().fold(self, |failure, cause| failure.line("why", cause))
    }

    /// With which code the process ends.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The stable name of the kind of failure.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The labelled lines below the message.
    pub(crate) fn lines(&self) -> &[(&'static str, String)] {
        &self.lines
    }
}

/// What stands behind an error, without what its message says already.
fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !said.contains(&text) {
            causes.push(text.clone());
        }
        said = text;
        cause = error.source();
    }
    causes
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
