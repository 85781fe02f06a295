//! The file in which sources and destinations stand, changed with care: what would be wrong is refused before it is written, a
//! running server takes the change over at once, and what the server refuses is taken back.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookstead_server::Config;
use hookstead_server::api::view::ReloadView;
use hookstead_server::config::ConfigErrors;

use crate::failure::{Exit, Failure};
use crate::reload::{reload, take_back};
use crate::replace::{NotChanged, remove, replace};
use crate::running::Running;

/// The file as it was read.
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// What is in it; nothing if it is not there yet.
    pub(crate) text: String,
    is_new: bool,
    config: Config,
}

/// What became of a change.
pub(crate) struct Changed {
    /// The configuration with the change.
    pub(crate) config: Config,
    /// What the running server made of it; `None` if none runs.
    pub(crate) reloaded: Option<ReloadView>,
}

impl ConfigFile {
    /// Reads the file of a configuration.
    pub(crate) fn of(config: Config) -> Result<Self> {
        let path = config.tables_file();
        // A link is followed, so that it stays one.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let text = read(&path)?;
        Ok(Self { is_new: text.is_none(), text: text.unwrap_or_default(), path, config })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder from which the relative names in it are read: that of the file as it is named. Where it is a link,
    /// this is not the folder of [`path`](Self::path).
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let named = self.config.tables_file();
        Ok(named.parent().context("a file stands in a folder")?.to_owned())
    }

    /// Puts another text in its place, and has the running server take it over. If either refuses, nothing is changed.
    ///
    /// # Errors
    ///
    /// [`NotChanged::file`] says whether the file is known to be as it was.
    pub(crate) fn change(self, text: &str) -> Result<Changed, NotChanged> {
        let (config, running) = self.checked(text).map_err(NotChanged::as_it_was)?;
        replace(&self.path, text.as_bytes())?;
        let Some(running) = running else { return Ok(Changed { config, reloaded: None }) };
        match reload(&self.config, &running) {
            Ok(reloaded) => Ok(Changed { config, reloaded: Some(reloaded) }),
            Err(failed) => Err(take_back(&self.config, &running, failed, &self.path, || self.put_back())),
        }
    }

    /// The configuration with this text, which is then to be written, and the server that is to take it over.
    fn checked(&self, text: &str) -> Result<(Config, Option<Running>)> {
        let config = self.config.with_text(text).map_err(|errors| refused(&errors))?;
        if read(&self.path)?.unwrap_or_default() != self.text {
            let message = format!("{} was changed by somebody else meanwhile", self.path.display());
            return Err(Failure::new(Exit::Failed, "changed-meanwhile", message)
                .fix("call this again")
                .into());
        }
        Ok((config, Running::find(&self.config)?))
    }

    fn put_back(&self) -> Result<(), NotChanged> {
        if self.is_new { remove(&self.path) } else { replace(&self.path, self.text.as_bytes()) }
    }
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).with_context(|| format!("read {}", path.display())),
    }
}

/// What is wrong with a text that was never written: without the lines, which are in no file.
pub(crate) fn refused(errors: &ConfigErrors) -> Failure {
    let mut problems = errors.problems().iter();
    let first = problems.next();
    let said =
        first.map_or_else(|| "the configuration would be wrong".to_owned(), |first| first.what.clone());
    let mut failure = Failure::new(Exit::Refused, "config", format!("{said}; nothing was changed"));
    for problem in problems {
        failure = failure.line("and", format!("{}: {}", problem.key, problem.what));
    }
    for problem in errors.problems().iter().filter(|problem| !problem.fix.is_empty()) {
        failure = failure.fix(problem.fix.clone());
    }
    failure
}
