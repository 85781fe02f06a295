//! The secrets that providers handed over by themselves, in the data folder, for its owner alone.
//!
//! A secret is taken once for each source: whoever asks second is a stranger. To have another one handed over, the
//! operator removes its line (or the file) and reloads.

use std::collections::BTreeMap;
use std::path::Path;

use hookstead::SourceName;
use hookstead::verify::Secret;

use crate::folder::{self, FolderError, read_private, write_private};

/// The file with the secrets, in the data folder: source to secret, in TOML.
pub const HANDED_SECRETS_FILE: &str = "handed-secrets.toml";

const HEAD: &str = "# Secrets that providers handed over, one for each source. Without its line a source waits for one again.\n";

/// The secrets of a data folder, by source.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedSecrets(BTreeMap<String, Secret>);

/// What became of a secret.
#[derive(Debug)]
pub(crate) enum Handed {
    /// It is durable now.
    Kept,
    /// The source has this one already.
    Before(Secret),
    /// It is no text, so it cannot be kept.
    NoText,
}

impl HandedSecrets {
    /// Reads the secrets.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is damaged, or is open to others.
    pub(crate) fn read(data: &Path) -> Result<Self, FolderError> {
        let path = data.join(HANDED_SECRETS_FILE);
        let secret = |(name, text): (String, String)| match Secret::new(text) {
            Ok(secret) => Ok((name, secret)),
            Err(error) => Err(damaged(&path, format!("`{name}`: {error}"))),
        };
        texts(&path)?.into_iter().map(secret).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn get(&self, source: &str) -> Option<&Secret> {
        self.0.get(source)
    }
}

/// Keeps a secret, unless the source has one. One call at a time; it blocks for as long as the disk takes.
///
/// # Errors
///
/// The file cannot be read or written. Nothing is kept then.
pub(crate) fn keep(data: &Path, source: &SourceName, secret: &Secret) -> Result<Handed, FolderError> {
    if let Some(before) = HandedSecrets::read(data)?.get(source.as_str()) {
        return Ok(Handed::Before(before.clone()));
    }
    let Ok(text) = std::str::from_utf8(secret.expose()) else { return Ok(Handed::NoText) };
    let path = data.join(HANDED_SECRETS_FILE);
    let mut all = texts(&path)?;
    all.insert(source.to_string(), text.to_owned());
    folder::prepare(data)?;
    let body = toml::to_string(&all).map_err(|error| damaged(&path, error.to_string()))?;
    write_private(&path, &format!("{HEAD}{body}"))?;
    Ok(Handed::Kept)
}

fn texts(path: &Path) -> Result<BTreeMap<String, String>, FolderError> {
    let text = read_private(path)?.unwrap_or_default();
    toml::from_str(&text).map_err(|error| damaged(path, error.message().to_owned()))
}

fn damaged(path: &Path, what: String) -> FolderError {
    FolderError::Damaged { path: path.to_path_buf(), what }
}
