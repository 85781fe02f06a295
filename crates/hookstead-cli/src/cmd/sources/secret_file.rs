//! The file that holds the secret of a source, with another one put in it: what would be wrong is taken back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookstead_server::Config;
use hookstead_server::config::{SecretEntry, SecretReference, SourceConfig};
use hookstead_verify::Secret;

use crate::config_file::{ConfigFile, refused};
use crate::failure::{Exit, Failure};
use crate::reload::{not_put_back, reload, take_back};
use crate::replace::replace;
use crate::running::Running;

/// A file that holds the one secret of a source.
pub(super) struct SecretFile {
    path: PathBuf,
    config: ConfigFile,
}

impl SecretFile {
    /// The file that a source's one reference names; refused if its secret is in no file, or is not the only one.
    pub(super) fn of(config: &Config, source: &SourceConfig) -> Result<Self> {
        let file = match source.secret_entries.as_slice() {
            [SecretEntry { reference: SecretReference::File(file), .. }] => file,
            others => return Err(elsewhere(source, others).into()),
        };
        let config = ConfigFile::of(config.clone())?;
        let path = config.folder()?.join(file);
        // A link is followed, so that it stays one.
        let path = fs::canonicalize(&path).with_context(|| format!("find {}", path.display()))?;
        Ok(Self { path, config })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts another secret in it, and has the running server take it over: the names of the sources that it has then,
    /// `None` if none runs. If either refuses, the old secret is put back.
    pub(super) fn replace(&self, config: &Config, secret: &Secret) -> Result<Option<Vec<String>>> {
        let running = Running::find(config)?;
        let before = fs::read(&self.path).with_context(|| format!("read {}", self.path.display()))?;
        replace(&self.path, secret.expose())?;
        let put_back = || replace(&self.path, &before);
        // Other sources may have the same file.
        if let Err(errors) = config.with_text(&self.config.text) {
            let error = refused(&errors).into();
            put_back().map_err(|left| not_put_back(&self.path, &left, &error))?;
            return Err(error);
        }
        let Some(running) = running else { return Ok(None) };
        match reload(config, &running) {
            Ok(reloaded) => Ok(Some(reloaded.sources)),
            Err(failed) => Err(take_back(config, &running, failed, &self.path, put_back).into()),
        }
    }
}

/// Why there is no one file to write to, and what to do instead.
fn elsewhere(source: &SourceConfig, entries: &[SecretEntry]) -> Failure {
    let name = &source.name;
    let [SecretEntry { reference, .. }] = entries else { return not_one(source, entries.len()) };
    let to_file = format!("or keep it in a file:  hookstead sources rotate {name} --file FILE");
    let (message, fix) = match reference {
        SecretReference::Environment(variable) => (
            format!(
                "the secret of `{name}` is in the environment variable `{variable}`, which only its server's start can set"
            ),
            format!("set {variable} where the server is started, and start it again\n{to_file}"),
        ),
        SecretReference::Credential(credential) => (
            format!("the secret of `{name}` is the credential `{credential}`, which systemd keeps"),
            format!("change what LoadCredential={credential}:.. names, and restart the unit\n{to_file}"),
        ),
        SecretReference::File(_) => (format!("`{name}` has its secret in a file"), to_file),
    };
    Failure::new(Exit::Refused, "not-in-a-file", message).fix(fix)
}

/// Why none of no secrets, or of several, is replaced.
fn not_one(source: &SourceConfig, count: usize) -> Failure {
    let name = &source.name;
    if count == 0 {
        let message = format!("`{name}` has no secret in the configuration; nothing was changed");
        return Failure::new(Exit::Refused, "no-secret", message).fix(format!(
            "give it one, if {} has secrets: secret = {{ file = \"..\" }}",
            source.provider.title()
        ));
    }
    let message = format!("`{name}` has {count} secrets, and none is replaced unseen");
    Failure::new(Exit::Refused, "several-secrets", message)
        .fix(format!("end their overlap first: hookstead sources rotate {name} --file FILE"))
}
