//! What makes an event the same event: source, scope and the provider's id, and the keyed hash by which
//! stores find it.

use std::fmt;

use aws_lc_rs::hmac;

use crate::id::{Bucket, SourceNumber};

/// The longest provider event id and the longest scope, in bytes. Half of the largest request head, so
/// that an id from a header always fits.
pub const IDENTITY_PART_BYTES_MAX: usize = 8 * 1024;

/// The id of an event as its provider gave it: 1 to 8192 bytes, of any value, not only white space.
///
/// Ids are compared as bytes: no case folding, no Unicode normalisation, no percent-decoding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderEventId(Box<[u8]>);

impl ProviderEventId {
    /// Takes an id as it came.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, IdentityError> {
        let bytes = bytes.into();
        if bytes.trim_ascii().is_empty() {
            return Err(IdentityError::Blank);
        }
        if bytes.len() > IDENTITY_PART_BYTES_MAX {
            return Err(IdentityError::TooLong { bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ProviderEventId {
    /// The id as text, with every byte that is not printable ASCII escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.contains(char::is_control) => f.write_str(text),
            _ => write!(f, "{}", self.0.escape_ascii()),
        }
    }
}

impl fmt::Debug for ProviderEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderEventId({})", self.0.escape_ascii())
    }
}

/// The part of an identity beside source and id (an account, a topic); empty for most sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Box<[u8]>);

impl Scope {
    /// Takes a scope of at most [`IDENTITY_PART_BYTES_MAX`] bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, IdentityError> {
        let bytes = bytes.into();
        if bytes.len() > IDENTITY_PART_BYTES_MAX {
            return Err(IdentityError::TooLong { bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    /// The scope's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Why bytes cannot be part of an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Empty, or only white space: such an id would make strangers of one event, or one of strangers.
    #[error("the event id is blank")]
    Blank,
    /// Longer than [`IDENTITY_PART_BYTES_MAX`].
    #[error("the event id has {bytes} bytes, more than {IDENTITY_PART_BYTES_MAX}")]
    TooLong {
        /// How long it was.
        bytes: usize,
    },
}

/// The identity of an event: one event is stored per identity, ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The source that the event came through.
    pub source: SourceNumber,
    /// The scope within the source.
    pub scope: Scope,
    /// The provider's id.
    pub id: ProviderEventId,
}

/// The first 128 bits of a keyed hash of an identity. Two identities with one hash are possible in theory,
/// so a store compares the stored identity on every hit and, where it differs, looks at the next probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityHash(pub [u8; 16]);

impl IdentityHash {
    /// The bucket of the identity: the hash's first byte.
    pub const fn bucket(self) -> Bucket {
        Bucket(self.0[0])
    }
}

/// How many hashes of one identity a store tries before it gives up: one collision needs 2^64 events.
pub const IDENTITY_PROBES_MAX: u8 = 4;

/// The key of a store's identity hashes: made at random with the store, kept in it, so that nobody outside
/// can search for identities that collide.
#[derive(Clone)]
pub struct IdentityKey(hmac::Key);

impl IdentityKey {
    /// The key from the bytes that the store keeps.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The hash of an identity: HMAC-SHA-256 over source, probe, the scope's length, scope and id, cut to
    /// 16 bytes. Probe 0 is the identity's own hash; higher ones are where a collision moves to.
    pub fn hash(&self, identity: &Identity, probe: u8) -> IdentityHash {
        let [source_0, source_1, source_2, source_3] = identity.source.0.to_be_bytes();
        let scope_bytes = u16::try_from(identity.scope.0.len()).unwrap_or(u16::MAX);
        let [length_0, length_1] = scope_bytes.to_be_bytes();
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&[source_0, source_1, source_2, source_3, probe, length_0, length_1]);
        context.update(&identity.scope.0);
        context.update(&identity.id.0);
        let tag = context.sign();
        let mut hash = [0; 16];
        hash.copy_from_slice(&tag.as_ref()[..16]);
        IdentityHash(hash)
    }
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityKey([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(source: u32, scope: &str, id: &str) -> Identity {
        Identity {
            source: SourceNumber(source),
            scope: Scope::new(scope.as_bytes()).unwrap(),
            id: ProviderEventId::new(id.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn blank_and_endless_ids_are_refused() {
        assert_eq!(ProviderEventId::new(*b""), Err(IdentityError::Blank));
        assert_eq!(ProviderEventId::new(*b" \t\r\n"), Err(IdentityError::Blank));
        assert!(ProviderEventId::new(vec![b'x'; IDENTITY_PART_BYTES_MAX]).is_ok());
        assert!(ProviderEventId::new(vec![b'x'; IDENTITY_PART_BYTES_MAX + 1]).is_err());
        assert!(ProviderEventId::new(*b"\0").is_ok());
    }

    #[test]
    fn ids_print_without_control_bytes() {
        let text = |bytes: &[u8]| ProviderEventId::new(bytes).unwrap().to_string();
        assert_eq!(text("evt_é".as_bytes()), "evt_é");
        assert_eq!(text(b"a\x1b[31m\n"), r"a\x1b[31m\n");
        assert_eq!(text(b"\xff"), r"\xff");
    }

    #[test]
    fn parts_are_joined_unambiguously() {
        let key = IdentityKey::from_bytes(&[1; 32]);
        let hash = |identity: Identity| key.hash(&identity, 0);
        assert_ne!(hash(identity(1, "a", "bc")), hash(identity(1, "ab", "c")));
        assert_ne!(hash(identity(1, "", "x")), hash(identity(2, "", "x")));
        assert_ne!(key.hash(&identity(1, "", "x"), 0), key.hash(&identity(1, "", "x"), 1));
        let other = IdentityKey::from_bytes(&[2; 32]);
        assert_ne!(hash(identity(1, "", "x")), other.hash(&identity(1, "", "x"), 0));
    }
}
