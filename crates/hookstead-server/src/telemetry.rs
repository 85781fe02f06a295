//! Log lines: text on a terminal, JSON lines otherwise, always to stderr. Bodies, headers and secrets never
//! come here: events are logged by the places that handle them, with dotted field names.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::sync::Mutex;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt};

use crate::ready_writer::ReadyWriter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text if stderr is a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Text,
    /// One JSON document a line.
    Json,
}

impl LogFormat {
    /// As in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("is not \"auto\", \"text\" or \"json\"".to_owned()),
        }
    }
}

/// Sends the log of this process to stderr. To be called once, by the program and not by a library.
///
/// # Errors
///
/// The level cannot be read, or somebody has set up a log already.
pub fn init(format: LogFormat, level: &str) -> Result<(), TelemetryError> {
    let targets = level.parse::<Targets>().map_err(|_| TelemetryError::Level(level.to_owned()))?;
    let terminal = io::stderr().is_terminal();
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = fmt::layer().with_writer(Mutex::new(ReadyWriter::new(io::stderr())));
    let layer = if json {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.with_ansi(terminal && std::env::var_os("NO_COLOR").is_none()).with_target(false).boxed()
    };
    tracing_subscriber::registry().with(layer.with_filter(targets)).try_init().map_err(TelemetryError::Twice)
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Not a level.
    #[error("`{0}` is not a log level; write `info`, or levels by target: `info,hyper=warn`")]
    Level(String),
    /// There is one already.
    #[error("the log is set up already")]
    Twice(#[source] TryInitError),
}

/// Whether a text is a level.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let known = |level: &str| LEVELS.contains(&level.to_ascii_lowercase().as_str());
    let well_formed = text.split(',').all(|part| match part.split_once('=') {
        Some((target, level)) => !target.trim().is_empty() && known(level.trim()),
        None => known(part.trim()),
    });
    if well_formed && text.parse::<Targets>().is_ok() {
        return Ok(());
    }
    Err("is no log level; write \"info\", or levels by target: \"info,hyper=warn\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked() {
        for good in ["info", "WARN", "off", "info,hyper=warn", "hookstead_server=debug,info"] {
            assert_eq!(check_level(good), Ok(()), "{good}");
        }
        for bad in ["", "loud", "info,hyper=loud", "=info", "hyper"] {
            assert!(check_level(bad).is_err(), "{bad}");
        }
    }
}
