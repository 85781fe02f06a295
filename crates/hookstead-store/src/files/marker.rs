//! `hookstead.json`, which says that a folder is a store of ours, in which format, and with which key. It is
//! written last when a store is made, so that a folder either is a whole store or none.

use serde::{Deserialize, Serialize};

/// The newest format that this program knows.
pub(super) const FORMAT: u32 = 1;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The version of the format.
    pub(super) format: u32,
    /// For people who find the folder.
    about: String,
    /// When the store was made.
    made_at: String,
    /// The key of the identity hashes, in hex.
    identity_key: String,
    /// Whether the folder was made by the seed's own receiver, whose entries lie in the folder itself.
    pub(super) seed_at_root: bool,
}

/// A file of which only the version may be known.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

impl Marker {
    pub(super) fn new(identity_key: [u8; 32], made_at: String, seed_at_root: bool) -> Self {
        let about = "a store of webhooks; see docs/formats/files.md of hookstead".to_owned();
        Self { format: FORMAT, about, made_at, identity_key: hex::encode(identity_key), seed_at_root }
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec_pretty(self)
    }

    /// Reads a marker; the version alone if it is a newer one.
    pub(super) fn read(bytes: &[u8]) -> Result<Result<Self, u32>, serde_json::Error> {
        let AnyFormat { format } = serde_json::from_slice(bytes)?;
        if format > FORMAT {
            return Ok(Err(format));
        }
        serde_json::from_slice(bytes).map(Ok)
    }

    /// The key; the error says what is wrong with it.
    pub(super) fn key(&self) -> Result<[u8; 32], hex::FromHexError> {
        let mut key = [0; 32];
        hex::decode_to_slice(&self.identity_key, &mut key)?;
        Ok(key)
    }
}
