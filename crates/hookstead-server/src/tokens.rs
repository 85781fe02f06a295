//! Tokens of the admin API: one for the owner of the data folder, kept there in the clear, and any number of
//! further ones, of which only hashes are kept.
//!
//! A token is 32 random bytes, so a plain hash of it can be searched by nobody.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use hookstead::core::{DestinationName, NameError};
use serde::{Deserialize, Serialize};

use crate::folder::{FolderError, random_hex, read_private, write_private};

/// The file with the owner's token, in the data folder.
pub const ADMIN_TOKEN_FILE: &str = "admin.token";

/// The file with the hashes of further tokens, in the data folder: one JSON document a line.
pub const TOKENS_FILE: &str = "tokens";

const TOKEN_BYTES: usize = 32;

/// The longest token that is looked at; longer ones are not ours.
const TOKEN_TEXT_BYTES_MAX: usize = 256;

/// How far a token of a person reaches; each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look at everything but secrets.
    Read,
    /// Process events, redeliver, resolve, pause.
    Operate,
    /// Everything.
    Admin,
}

/// What a token allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scope {
    /// What a person may do.
    Role(Role),
    /// Claim and settle the deliveries to one destination, and nothing else. For consumers.
    Consume(DestinationName),
}

/// What a scope for a consumer begins with.
const CONSUME: &str = "consume:";

impl Role {
    /// As on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl Scope {
    /// Whether it reaches as far as this role does. A consumer's never does.
    pub fn includes(&self, wanted: Role) -> bool {
        matches!(self, Self::Role(role) if *role >= wanted)
    }

    /// Whether the deliveries to this destination may be claimed and settled with it.
    pub fn may_consume(&self, destination: &str) -> bool {
        match self {
            Self::Role(role) => *role >= Role::Operate,
            Self::Consume(name) => name.as_str() == destination,
        }
    }
}

impl From<Role> for Scope {
    fn from(role: Role) -> Self {
        Self::Role(role)
    }
}

impl fmt::Display for Scope {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => f.write_str(role.as_str()),
            Self::Consume(destination) => write!(f, "{CONSUME}{destination}"),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(destination) = text.strip_prefix(CONSUME) {
            return destination.parse().map(Self::Consume).map_err(|error: NameError| error.to_string());
        }
        let mut roles = [Role::Read, Role::Operate, Role::Admin].into_iter();
        let role = roles.find(|role| role.as_str() == text).map(Self::Role);
        role.ok_or_else(|| format!("`{text}` is no scope; use read, operate, admin or consume:DESTINATION"))
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for Scope {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A further token, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// What a person called it.
    pub name: String,
    /// What it allows.
    pub role: Scope,
    /// The SHA-256 of the token, in hex.
    pub sha256: String,
}

/// The tokens of a data folder.
#[derive(Debug)]
pub struct Tokens {
    folder: PathBuf,
    admin: [u8; 32],
    further: RwLock<Further>,
}

#[derive(Debug, Default)]
struct Further {
    /// The file that these came from, as it was then.
    state: Option<FileState>,
    tokens: Vec<([u8; 32], Scope)>,
}

/// What tells a file from the one that takes its place. Its time alone does not: two that are written within a tick of
/// the kernel's clock have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    changed_at: (i64, i64),
    inode: u64,
    bytes: u64,
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        let changed_at = (metadata.mtime(), metadata.mtime_nsec());
        Self { changed_at, inode: metadata.ino(), bytes: metadata.len() }
    }
}

impl Tokens {
    /// Reads the tokens; makes the owner's if there is none.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, is damaged, or is open to others.
    pub fn open(folder: &Path) -> Result<Self, FolderError> {
        let token = admin_token(folder)?;
        let tokens = Self { folder: folder.to_path_buf(), admin: hash(&token), further: RwLock::default() };
        tokens.reload()?;
        Ok(tokens)
    }

    /// What the presented token allows; `None` if it is not one of ours. Compares hashes in constant time.
    pub fn scope(&self, presented: &str) -> Option<Scope> {
        if presented.is_empty() || presented.len() > TOKEN_TEXT_BYTES_MAX {
            return None;
        }
        let presented = hash(presented);
        if verify_slices_are_equal(&presented, &self.admin).is_ok() {
            return Some(Role::Admin.into());
        }
        self.further_scope(&presented).or_else(|| {
            // It may have been made a moment ago, by `token create` in another process.
            match self.reload() {
                Ok(true) => self.further_scope(&presented),
                Ok(false) => None,
                Err(error) => {
                    tracing::warn!(error = %error, "the tokens could not be read again");
                    None
                }
            }
        })
    }

    fn further_scope(&self, presented: &[u8; 32]) -> Option<Scope> {
        let further = self.further.read().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&([u8; 32], Scope)| verify_slices_are_equal(&known.0, presented).is_ok();
        further.tokens.iter().find(same).map(|(_, scope)| scope.clone())
    }

    /// Reads the file again if it changed; whether it had.
    fn reload(&self) -> Result<bool, FolderError> {
        let path = self.folder.join(TOKENS_FILE);
        let state = std::fs::metadata(&path).ok().map(|metadata| FileState::of(&metadata));
        if self.further.read().unwrap_or_else(PoisonError::into_inner).state == state {
            return Ok(false);
        }
        let tokens = list(&self.folder)?
            .into_iter()
            .filter_map(|record| Some((record.hash()?, record.role)))
            .collect();
        *self.further.write().unwrap_or_else(PoisonError::into_inner) = Further { state, tokens };
        Ok(true)
    }
}

impl TokenRecord {
    fn hash(&self) -> Option<[u8; 32]> {
        hex::decode(&self.sha256).ok()?.try_into().ok()
    }
}

/// The owner's token; made if there is none.
///
/// # Errors
///
/// The file cannot be read or written, is empty, or is open to others.
pub fn admin_token(folder: &Path) -> Result<String, FolderError> {
    let path = folder.join(ADMIN_TOKEN_FILE);
    if let Some(text) = read_private(&path)? {
        let token = text.trim_end();
        if token.len() < 2 * TOKEN_BYTES || token.len() > TOKEN_TEXT_BYTES_MAX {
            let what = format!("a token has {} characters", 2 * TOKEN_BYTES);
            return Err(FolderError::Damaged { path, what });
        }
        return Ok(token.to_owned());
    }
    let token = new_token(&path)?;
    write_private(&path, &format!("{token}\n"))?;
    Ok(token)
}

/// Makes a further token and returns it: it is never shown again.
///
/// # Errors
///
/// The file of tokens cannot be read or written.
pub fn create(folder: &Path, name: &str, scope: impl Into<Scope>) -> Result<String, FolderError> {
    let path = folder.join(TOKENS_FILE);
    let token = new_token(&path)?;
    let mut records = list(folder)?;
    records.push(TokenRecord {
        name: name.to_owned(),
        role: scope.into(),
        sha256: hex::encode(hash(&token)),
    });
    let line = |record: &TokenRecord| serde_json::to_string(record).map(|line| line + "\n");
    let text: Result<String, _> = records.iter().map(line).collect();
    let text = text.map_err(|error| FolderError::Damaged { path: path.clone(), what: error.to_string() })?;
    write_private(&path, &text)?;
    Ok(token)
}

/// The further tokens, in the order in which they were made.
///
/// # Errors
///
/// The file cannot be read, is damaged, or is open to others.
pub fn list(folder: &Path) -> Result<Vec<TokenRecord>, FolderError> {
    let path = folder.join(TOKENS_FILE);
    let text = read_private(&path)?.unwrap_or_default();
    let records: Result<Vec<_>, _> = text.lines().map(serde_json::from_str).collect();
    records.map_err(|error| FolderError::Damaged { path, what: error.to_string() })
}

fn new_token(path: &Path) -> Result<String, FolderError> {
    let doing = "cannot make a token for";
    random_hex(TOKEN_BYTES).map_err(|source| FolderError::Io { doing, path: path.to_path_buf(), source })
}

fn hash(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_written_as_they_are_read() {
        for text in ["read", "operate", "admin", "consume:app"] {
            assert_eq!(text.parse::<Scope>().map(|scope| scope.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "Admin", "consume", "consume:", "consume:A", "consume:a b", "consume:*"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_known_however_soon_it_follows_another() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(folder.path()).unwrap();
        for number in 0..50 {
            let made = create(folder.path(), &format!("reader-{number}"), Role::Read).unwrap();
            assert_eq!(tokens.scope(&made), Some(Role::Read.into()), "{number}");
        }
    }

    #[test]
    fn a_consumer_reaches_its_own_destination_alone() {
        let consumer: Scope = "consume:app".parse().unwrap();
        assert!(consumer.may_consume("app") && !consumer.may_consume("other"));
        assert!(!consumer.includes(Role::Read));
        let may = |role: Role| Scope::from(role).may_consume("app");
        assert_eq!([may(Role::Read), may(Role::Operate), may(Role::Admin)], [false, true, true]);
    }
}
