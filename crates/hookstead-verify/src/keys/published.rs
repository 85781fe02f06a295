//! A document of keys as a provider publishes it, read once and used for many requests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::der;
use super::public::{KeyKind, PublicKey};
use super::source::KeyFormat;
use crate::record::raw::Coding;
use crate::wire::json::Pointer;

/// Longest document of keys, in bytes: fetch no more than this.
pub const KEY_DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// Most keys of a document.
const KEYS_MAX: usize = 64;

/// Public keys of a provider, each with its id if it has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedKeys(Vec<(Option<String>, PublicKey)>);

/// Why a document gives no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyDocumentError {
    /// More than [`KEY_DOCUMENT_BYTES_MAX`].
    #[error("the document of keys has {0} bytes, more than {KEY_DOCUMENT_BYTES_MAX}")]
    TooLong(usize),
    /// Not of the format that the provider publishes.
    #[error("this is no {0}")]
    Malformed(&'static str),
    /// It is of the format, and none of its keys can be used.
    #[error("no key of the document can be used: Ed25519, P-256 and RSA with 2048 bits or more can")]
    NoKey,
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    kid: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublishedKeys {
    /// Reads a document. `key_id` is what a document that holds only one key is filed under.
    ///
    /// # Errors
    ///
    /// [`KeyDocumentError`]; keys of kinds that nobody asks for are left out.
    pub(super) fn parse(
        format: KeyFormat,
        pointer: Option<&Pointer>,
        key_id: Option<&str>,
        document: &[u8],
    ) -> Result<Self, KeyDocumentError> {
        if document.len() > KEY_DOCUMENT_BYTES_MAX {
            return Err(KeyDocumentError::TooLong(document.len()));
        }
        let one = |key: PublicKey| vec![(key_id.map(str::to_owned), key)];
        let keys = match format {
            KeyFormat::Jwks => jwks(document)?,
            KeyFormat::Certificate => PublicKey::from_pem(document).map(one).unwrap_or_default(),
            KeyFormat::Key => {
                let text = match pointer {
                    None => document.to_vec(),
                    Some(pointer) => {
                        pointer.read(document).ok_or(KeyDocumentError::Malformed("answer with a key"))?
                    }
                };
                PublicKey::decode(Coding::SpkiBase64, text.trim_ascii()).map(one).unwrap_or_default()
            }
        };
        if keys.is_empty() { Err(KeyDocumentError::NoKey) } else { Ok(Self(keys)) }
    }

    /// Whether a key of this id is there.
    pub fn has(&self, key_id: &str) -> bool {
        self.0.iter().any(|(found, _)| found.as_deref() == Some(key_id))
    }

    /// The keys that may be meant: those of the id, or all if no id is asked for.
    pub(crate) fn candidates(&self, key_id: Option<&str>) -> impl Iterator<Item = &PublicKey> {
        let fits = move |found: &Option<String>| key_id.is_none() || found.as_deref() == key_id;
        self.0.iter().filter(move |(found, _)| fits(found)).map(|(_, key)| key)
    }
}

fn jwks(document: &[u8]) -> Result<Vec<(Option<String>, PublicKey)>, KeyDocumentError> {
    let malformed = KeyDocumentError::Malformed("JWK set");
    let keys = match serde_json::from_slice::<Jwks>(document) {
        Ok(set) => set.keys,
        // One key alone, as some addresses give it.
        Err(_) => vec![serde_json::from_slice::<Jwk>(document).map_err(|_| malformed.clone())?],
    };
    if keys.len() > KEYS_MAX {
        return Err(malformed);
    }
    Ok(keys.into_iter().filter_map(|jwk| Some((jwk.kid.clone(), jwk.key()?))).collect())
}

impl Jwk {
    fn key(&self) -> Option<PublicKey> {
        let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => PublicKey::of_kind(KeyKind::Ed25519, number(&self.x)?),
            ("EC", Some("P-256")) => {
                let point = [vec![4], number(&self.x)?, number(&self.y)?].concat();
                PublicKey::of_kind(KeyKind::P256, point)
            }
            ("RSA", _) => {
                PublicKey::of_kind(KeyKind::Rsa, der::rsa_public_key(&number(&self.n)?, &number(&self.e)?))
            }
            _ => None,
        }
    }
}
