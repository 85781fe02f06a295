//! The file in which sources and destinations stand, changed with care: what would be wrong is refused before it is written, a
//! running server takes the change over at once, and what the server refuses is taken back.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookstead_server::api::view::ReloadView;
use hookstead_server::config::ConfigErrors;
use hookstead_server::{Config, folder};

use crate::client::{Call, Client};
use crate::cmd::runtime;
use crate::failure::{Exit, Failure};
use crate::running::Running;

/// The file as it was read.
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// What is in it; nothing if it is not there yet.
    pub(crate) text: String,
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
        Ok(Self { path, text, config })
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
    pub(crate) fn change(self, text: &str) -> Result<Changed> {
        let config = self.config.with_text(text).map_err(|errors| refused(&errors))?;
        if read(&self.path)? != self.text {
            let message = format!("{} was changed by somebody else meanwhile", self.path.display());
            return Err(Failure::new(Exit::Failed, "changed-meanwhile", message)
                .fix("call this again")
                .into());
        }
        let running = Running::find(&self.config)?;
        write(&self.path, text.as_bytes())?;
        let Some(running) = running else { return Ok(Changed { config, reloaded: None }) };
        match reload(&self.config, &running) {
            Ok(reloaded) => Ok(Changed { config, reloaded: Some(reloaded) }),
            Err(error) => {
                self.take_back()?;
                Err(error.context("the change was taken back: the running server did not take it over"))
            }
        }
    }

    fn take_back(&self) -> Result<()> {
        if self.text.is_empty() {
            return fs::remove_file(&self.path).with_context(|| format!("remove {}", self.path.display()));
        }
        write(&self.path, self.text.as_bytes())
    }
}

/// Has the running server read its configuration, and the secrets that it points at, again.
pub(crate) fn reload(config: &Config, running: &Running) -> Result<ReloadView> {
    let client = Client::at(&running.admin, &config.data)?;
    let call = Call::post(&["v1", "reload"], &serde_json::Value::Null)?.about("the configuration");
    runtime()?.block_on(client.ask(call))
}

fn read(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("read {}", path.display())),
    }
}

/// Replaces a file as a whole: it keeps its mode, its owner and its group. One that is new is its owner's alone.
///
/// # Errors
///
/// `not-written`: the file is as it was. `not-synced`: it has the new text, which a power cut may take away again.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<()> {
    write_and(path, text, |folder| File::open(folder)?.sync_all())
}

/// As [`write`], with the sync of the folder given.
fn write_and(path: &Path, text: &[u8], sync: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let parent = path.parent().context("a file stands in a folder")?;
    if !parent.exists() {
        folder::prepare(parent)?;
    }
    let mode = fs::metadata(path).map_or(0o600, |metadata| metadata.permissions().mode() & 0o7777);
    let new = path.with_extension(format!("toml.{}.new", std::process::id()));
    let replace = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text)?;
        keep_owner(&file, path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    replace().map_err(|error| {
        // What is left of the attempt is of no use; that it could not be removed says nothing new.
        drop(fs::remove_file(&new));
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Failed, "not-written", message)
            .fix("nothing was changed; see that you may write there")
    })?;
    sync(parent).map_err(|error| not_synced(path, parent, &error).into())
}

/// The file was replaced, and nobody can say whether it stays so.
fn not_synced(path: &Path, folder: &Path, error: &std::io::Error) -> Failure {
    let message = format!(
        "{} was changed, but its folder could not be synced, so that a power cut may undo it: {error}",
        path.display()
    );
    Failure::new(Exit::Failed, "not-synced", message).fix(format!(
        "see to the disk that {} is on, then look what is in the file; a running server was not told",
        folder.display()
    ))
}

/// Whoever reads the old file, such as a server under another name, is to be able to read the new one.
fn keep_owner(new: &File, path: &Path) -> std::io::Result<()> {
    let old = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        old => old?,
    };
    let made = new.metadata()?;
    if (old.uid(), old.gid()) == (made.uid(), made.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<()>) -> (&'static str, String) {
        let failure = result.unwrap_err().downcast::<Failure>().unwrap();
        (failure.code(), format!("{failure} {:?}", failure.lines()))
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_no_file_that_was_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookstead.toml");
        fs::write(&path, "old").unwrap();
        let (code, said) = code(write_and(&path, b"new", |_| Err(std::io::Error::other("gone"))));
        assert_eq!((code, fs::read_to_string(&path).unwrap().as_str()), ("not-synced", "new"));
        assert!(said.contains("was changed") && !said.contains("nothing was changed"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_and_its_folder_is_not_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookstead.toml");
        // A folder is replaced by no file.
        fs::create_dir(&path).unwrap();
        let (code, said) = code(write_and(&path, b"new", |_| panic!("nothing was renamed")));
        assert_eq!(code, "not-written");
        assert!(said.contains("nothing was changed"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
