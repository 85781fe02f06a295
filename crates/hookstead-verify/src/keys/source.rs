//! The question for a key, and who answers it.

use std::fmt;
use std::sync::Arc;

use super::published::{KeyDocumentError, PublishedKeys};
use crate::wire::json::Pointer;

/// Where a verifier finds the keys that a provider publishes. The caller's part: keep documents, fetch what is
/// missing, and do both within bounds.
///
/// [`keys`](Self::keys) is asked in the middle of a request, so it must answer from memory. A stranger can make
/// it ask for ids and, at the provider's own hosts, addresses that do not exist: fetches need a limit in number
/// and in time, and what was not found has to be remembered for a while.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Arc;
/// use hookstead_verify::{KeyAnswer, KeyPlace, KeySource, KeyWanted, PublishedKeys};
///
/// #[derive(Debug, Default)]
/// struct Cache(HashMap<KeyPlace, Arc<PublishedKeys>>);
///
/// impl KeySource for Cache {
///     fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
///         match self.0.get(&wanted.place) {
///             Some(keys) => KeyAnswer::Keys(Arc::clone(keys)),
///             // ... and tell the task that fetches `wanted.place.url`.
///             None => KeyAnswer::NotAtHand,
///         }
///     }
/// }
/// ```
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The keys of the document that is wanted.
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer;
}

/// What a [`KeySource`] has.
#[derive(Debug, Clone)]
pub enum KeyAnswer {
    /// The document. If it has no key of the wanted id, the request is not proved.
    Keys(Arc<PublishedKeys>),
    /// Not now; it is being fetched. The sender should come again:
    /// [`RejectionClass::Unavailable`](crate::RejectionClass::Unavailable).
    NotAtHand,
    /// There is no such document; the request is not proved.
    Unknown,
}

/// A key that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyWanted {
    /// The document that should hold it.
    pub place: KeyPlace,
    /// Which of its keys, where the provider says so.
    pub key_id: Option<String>,
}

/// A document with keys. Two requests that ask for the same document have equal places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyPlace {
    /// The provider's name.
    pub provider: String,
    /// Its address: `https`, and at a host that the record names. `None` for a provider whose address asks for
    /// credentials of the account: then whoever configures the source has to give the keys.
    pub url: Option<String>,
    /// What the document is.
    pub format: KeyFormat,
    pub(super) pointer: Option<Pointer>,
    pub(super) key_id: Option<String>,
}

/// What a document with keys is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyFormat {
    /// A JWK set (RFC 7517).
    Jwks,
    /// One key: PEM, or DER in base64, alone or as a member of a JSON document.
    Key,
    /// A certificate in PEM. Its key counts because of the host that it is from; a chain is not asked for.
    Certificate,
}

impl KeyPlace {
    /// A place that is nowhere, for documents that are made up.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn of(provider: &str, format: KeyFormat) -> Self {
        Self { provider: provider.to_owned(), url: None, format, pointer: None, key_id: None }
    }

    /// Reads the document that was found at this place.
    ///
    /// # Errors
    ///
    /// [`KeyDocumentError`] if it is too long, of another format, or without a usable key.
    pub fn parse(&self, document: &[u8]) -> Result<PublishedKeys, KeyDocumentError> {
        PublishedKeys::parse(self.format, self.pointer.as_ref(), self.key_id.as_deref(), document)
    }

    /// As [`parse`](Self::parse) for a single key that was got elsewhere: PEM, or DER in base64.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_key(&self, text: &[u8]) -> Result<PublishedKeys, KeyDocumentError> {
        PublishedKeys::parse(KeyFormat::Key, None, self.key_id.as_deref(), text)
    }
}
