//! The signing secrets that were made for push destinations without a configured one, in the data folder, for its
//! owner alone.
//!
//! A secret stays for as long as the file does, also when its destination is removed: added again, it signs as
//! before, and the application on the other side goes on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use hookstead::sink::push::SigningSecret;

use crate::config::DestinationConfig;
use crate::folder::{self, FolderError, read_private, write_private};

/// The file with the secrets, in the data folder: destination to secret, in TOML.
pub const DESTINATION_SECRETS_FILE: &str = "destination-secrets.toml";

const HEAD: &str =
    "# Secrets that pushes are signed with: made by the server, one for each destination that names none.\n";

/// The secrets of a data folder, by destination.
#[derive(Clone, Debug, Default)]
pub struct DestinationSecrets(BTreeMap<String, SigningSecret>);

impl DestinationSecrets {
    /// Reads the secrets, and makes and keeps those that `destinations` still lack. Where nothing is lacking nothing
    /// is written.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, is damaged, or is open to others.
    pub fn open(data: &Path, destinations: &[DestinationConfig]) -> Result<Self, FolderError> {
        let path = data.join(DESTINATION_SECRETS_FILE);
        let mut texts = read(&path)?;
        let known = texts.len();
        for destination in destinations.iter().filter(|destination| destination.needs_secret()) {
            let name = destination.name.as_str();
            if !texts.contains_key(name) {
                texts.insert(name.to_owned(), new_secret(&path)?);
            }
        }
        if texts.len() > known {
            folder::prepare(data)?;
            let body = toml::to_string(&texts).map_err(|error| damaged(&path, error.to_string()))?;
            write_private(&path, &format!("{HEAD}{body}"))?;
        }
        let secret = |(name, text): (String, String)| match SigningSecret::parse(&text) {
            Ok(secret) => Ok((name, secret)),
            Err(error) => Err(damaged(&path, format!("`{name}`: {error}"))),
        };
        texts.into_iter().map(secret).collect::<Result<_, _>>().map(Self)
    }

    /// The secret that was made for a destination.
    pub fn get(&self, destination: &str) -> Option<&SigningSecret> {
        self.0.get(destination)
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, FolderError> {
    let text = read_private(path)?.unwrap_or_default();
    toml::from_str(&text).map_err(|error| damaged(path, error.message().to_owned()))
}

fn damaged(path: &Path, what: String) -> FolderError {
    FolderError::Damaged { path: path.to_path_buf(), what }
}

fn new_secret(path: &Path) -> Result<String, FolderError> {
    let made = SigningSecret::generate().map(|secret| secret.expose().to_string());
    made.map_err(|error| FolderError::Io {
        doing: "cannot make a secret for",
        path: path.to_path_buf(),
        source: io::Error::other(error),
    })
}
