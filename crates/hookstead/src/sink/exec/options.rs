//! How a destination's program is run, and what is wrong with it.

use std::time::Duration;

/// The timeout of a program unless the destination names another.
pub const EXEC_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The longest timeout of a program.
pub const EXEC_TIMEOUT_MAX: Duration = Duration::from_hours(1);

/// How a program is run for each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOptions {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// How long it may run before its process group is killed; more than zero, at most [`EXEC_TIMEOUT_MAX`].
    pub timeout: Duration,
    /// Variables for its environment, beside the inherited ones (`HOME`, `LANG`, `LC_ALL`, `PATH`, `TMPDIR`,
    /// `TZ`) and `HOOKSTEAD_*`, which win.
    pub environment: Vec<(String, String)>,
}

impl ExecOptions {
    /// That command, with every other option at its default.
    pub fn new(command: Vec<String>) -> Self {
        Self { command, timeout: EXEC_TIMEOUT_DEFAULT, environment: vec![] }
    }

    pub(super) fn check(&self) -> Result<(), ExecSetupError> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(ExecSetupError::Empty);
        }
        if self.timeout.is_zero() || self.timeout > EXEC_TIMEOUT_MAX {
            return Err(ExecSetupError::Timeout(self.timeout));
        }
        let values = self.environment.iter().map(|(_, value)| value);
        let bad_text = self.command.iter().chain(values).find(|text| text.contains('\0'));
        let bad_name = || self.environment.iter().map(|(name, _)| name).find(|name| !is_variable(name));
        match bad_text.or_else(bad_name) {
            Some(bad) => Err(ExecSetupError::Text(bad.replace('\0', "\\0"))),
            None => Ok(()),
        }
    }
}

/// Why a program cannot be run as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecSetupError {
    /// There is no program.
    #[error("the command is empty; give the program and its arguments")]
    Empty,
    /// A timeout of zero, or an absurd one.
    #[error("a timeout of {0:?}; give one of more than zero and at most {EXEC_TIMEOUT_MAX:?}")]
    Timeout(Duration),
    /// Something that no process can be given.
    #[error("`{0}` holds a NUL byte or, as the name of a variable, is empty or holds `=`; remove that")]
    Text(String),
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
