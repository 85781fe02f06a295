//! What is accepted, what is kept of it, and what accepting it may come to.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

use crate::delivery::DeliveryTally;
use crate::error::StoreError;
use crate::id::{DestinationNumber, EventId, Seq};
use crate::identity::{Identity, IdentityHash, IdentityKey};
use crate::name::SourceName;
use crate::request::RawHeaders;
use crate::time::Timestamp;

/// How many different bodies of one identity are kept as evidence beside the first.
pub const VARIANTS_MAX: u16 = 10;

/// The SHA-256 of a raw body. It finds damage; it proves no sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Every byte in lower-case hex digits.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

impl Digest {
    /// The digest of a body.
    pub fn of(body: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, body).as_ref());
        Self(bytes)
    }

    /// A digest as a store kept it.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest in lower-case hex digits.
    pub fn hex(&self) -> [u8; 64] {
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = HEX[usize::from(byte)];
        }
        text
    }
}

impl fmt::Display for Digest {
    /// Lower-case hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cannot fail: digits are ASCII.
        f.write_str(std::str::from_utf8(&self.hex()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A digest of a body without the values that its provider changes from one retry to the next, and the
/// version of the rule that left them out. Bodies with equal comparison digests count as the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonDigest {
    /// Which version of the rule made it; digests of different versions say nothing about each other.
    pub rule_version: u32,
    /// The digest.
    pub digest: Digest,
}

/// What is kept of a body for comparisons.
#[derive(Clone, Copy, Debug)]
pub struct StoredBytes<'a> {
    /// Its digest; a store has checked it against the body before it compares.
    pub digest: Digest,
    /// Its length.
    pub body_bytes: u64,
    /// The body itself, while it is kept.
    pub body: Option<&'a [u8]>,
    /// Its comparison digest, if its provider has volatile values.
    pub comparison: Option<ComparisonDigest>,
}

impl StoredBytes<'_> {
    /// The comparison rule: by the comparison digests where both have one of the same rule version, else
    /// byte by byte while the body is kept, else by digest and length.
    pub fn same_as(&self, acceptance: &Acceptance) -> bool {
        if let (Some(stored), Some(given)) = (self.comparison, acceptance.facts.comparison)
            && stored.rule_version == given.rule_version
        {
            return stored.digest == given.digest;
        }
        match self.body {
            Some(body) => body == acceptance.body,
            None => self.digest == acceptance.digest && self.body_bytes == acceptance.body.len() as u64,
        }
    }
}

/// An event on its way in: verified, identified, not yet stored.
///
/// Made by [`Acceptance::new`] only, so that its id, hash and digest always belong to its identity and body.
#[derive(Clone, Debug)]
pub struct Acceptance {
    id: EventId,
    identity: Identity,
    identity_hash: IdentityHash,
    digest: Digest,
    body: Bytes,
    facts: AcceptanceFacts,
}

/// What is known of an event beside identity and body. All of it may be absent or empty.
#[derive(Clone, Debug, Default)]
pub struct AcceptanceFacts {
    /// When the request was complete.
    pub received_at: Timestamp,
    /// Whom the event is owed to; its deliveries are made in its own commit.
    pub destinations: Vec<DestinationNumber>,
    /// The header fields and the query, without those parts that are secrets.
    pub headers: RawHeaders,
    /// The provider's type of the event.
    pub event_type: Option<String>,
    /// The provider's account that it belongs to; no part of the identity.
    pub account: Option<String>,
    /// The address that the request came from.
    pub received_from: Option<String>,
    /// How the sender proved itself, for people: the scheme and which secret matched.
    pub verified_by: Option<String>,
    /// For providers whose retries change bytes.
    pub comparison: Option<ComparisonDigest>,
    /// For providers whose signature covers the body and not the id.
    pub body_reuse: BodyReuse,
}

/// What is made of a body that came before, from the same source, under another identity. Where a signature covers
/// the body and not the id, whoever repeats a request can give it a new id, and this is how it shows.
///
/// Bodies are compared by their digests, with those events that were accepted under another rule than
/// [`BodyReuse::Ignore`] and whose bodies are kept: retention forgets them. A revision that a person made of a
/// conflict is neither looked up nor found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyReuse {
    /// Nothing: the body is neither looked up nor remembered, which costs nothing.
    #[default]
    Ignore,
    /// The event is stored and says which event had its bytes first.
    Flag,
    /// Nothing is stored: [`Outcome::BodyReused`]. Where the bytes that came first are damaged, it is as with
    /// [`BodyReuse::Flag`].
    Refuse,
}

impl Acceptance {
    /// Puts an event together: hashes its identity with the store's key, digests its body, makes its id.
    ///
    /// `entropy` must be random, see [`EventId::new`].
    pub fn new(
        key: &IdentityKey,
        identity: Identity,
        body: Bytes,
        facts: AcceptanceFacts,
        entropy: [u8; 10],
    ) -> Self {
        let identity_hash = key.hash(&identity, 0);
        let id = EventId::new(facts.received_at, entropy, identity_hash.bucket());
        Self { id, identity, identity_hash, digest: Digest::of(&body), body, facts }
    }

    /// The same acceptance with a made-up hash, to prove that a collision is no wrong answer.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn with_identity_hash(mut self, hash: IdentityHash) -> Self {
        self.identity_hash = hash;
        self
    }

    /// The id that the event gets if it is stored.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// Its identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The identity's hash (probe 0).
    pub fn identity_hash(&self) -> IdentityHash {
        self.identity_hash
    }

    /// The digest of the body.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The body, as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Everything else.
    pub fn facts(&self) -> &AcceptanceFacts {
        &self.facts
    }
}

/// What accepting a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new event, now durable.
    Stored,
    /// The event was there, with the same bytes (or with bytes that a person accepted since).
    Duplicate,
    /// The identity was there with other bytes. The first event is untouched.
    Conflict {
        /// The number of the other bytes among the event's variants, from 1; `None` if already
        /// [`VARIANTS_MAX`] others are kept, so that these were not.
        variant: Option<u16>,
    },
    /// The identity is new, the body is not, and the rule was [`BodyReuse::Refuse`]: nothing was stored. The
    /// receipt is that of the event which has the same bytes.
    BodyReused,
}

/// Durable proof of what became of a request. It exists only after the commit that it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptReceipt {
    /// What accepting came to.
    pub outcome: Outcome,
    /// The event that holds the identity (after an accepted revision with the same bytes: the revision).
    pub event: EventId,
    /// That event's sequence number.
    pub seq: Seq,
    /// The digest of that event's body: for a conflict, of the first bytes.
    pub digest: Digest,
    /// When that event was committed.
    pub committed_at: Timestamp,
    /// For a stored event: [`Event::same_body_as`].
    pub same_body_as: Option<EventId>,
}

/// A stored event, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Our own key.
    pub id: EventId,
    /// Its place in the order of commits.
    pub seq: Seq,
    /// The name of its source.
    pub source: SourceName,
    /// Its identity.
    pub identity: Identity,
    /// The provider's type.
    pub event_type: Option<String>,
    /// The provider's account.
    pub account: Option<String>,
    /// The address that it came from.
    pub received_from: Option<String>,
    /// How the sender proved itself.
    pub verified_by: Option<String>,
    /// When its request was complete.
    pub received_at: Timestamp,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// The digest of its body.
    pub digest: Digest,
    /// The length of its body in bytes.
    pub body_bytes: u64,
    /// When retention erased its body and headers; `None` while they are there.
    pub erased_at: Option<Timestamp>,
    /// The header fields and the query, without those parts that are secrets; empty after erasure.
    pub headers: RawHeaders,
    /// The event whose conflict a person resolved by making this one.
    pub revises: Option<EventId>,
    /// The oldest event of the source that had the same bytes under another identity and was kept when this one
    /// was stored, if this was looked for: see [`BodyReuse`].
    pub same_body_as: Option<EventId>,
    /// How often the same event came again. Approximate after a crash.
    pub duplicates: Duplicates,
    /// How many variants are kept.
    pub conflicts: u16,
    /// Its deliveries, by state.
    pub deliveries: DeliveryTally,
}

impl Event {
    /// The same event with everything at zero that is counted of it after it was stored: duplicates, conflicts,
    /// deliveries.
    #[must_use]
    pub fn uncounted(self) -> Self {
        Self { duplicates: Duplicates::default(), conflicts: 0, deliveries: DeliveryTally::default(), ..self }
    }

    /// Whether everybody whom the event is owed to has it. An event that is owed to nobody is unfinished.
    pub fn is_finished(&self) -> bool {
        self.deliveries.is_finished()
    }
}

/// How often an event came again, and when last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// How often.
    pub count: u64,
    /// When last.
    pub last_at: Option<Timestamp>,
}

/// Other bytes under an identity that was taken: evidence, for a person to look at. Kept once a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The event that holds the identity.
    pub event: EventId,
    /// That event's sequence number.
    pub seq: Seq,
    /// The name of its source.
    pub source: SourceName,
    /// The number of these bytes among the event's variants, from 1.
    pub variant: u16,
    /// The digest of the other bytes.
    pub digest: Digest,
    /// Their length.
    pub body_bytes: u64,
    /// The header fields and the query of the first request that brought them.
    pub headers: RawHeaders,
    /// When they came first.
    pub received_at: Timestamp,
    /// What a person made of them.
    pub state: ConflictState,
}

/// What a person made of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictState {
    /// Nobody has decided yet.
    Open,
    /// The other bytes were accepted as a new event, which revises the first.
    Accepted {
        /// The new event.
        revision: EventId,
        /// Who decided, when and why.
        decision: Decision,
    },
    /// The other bytes are not wanted.
    Dismissed(Decision),
}

/// What a person decided, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Who.
    pub by: String,
    /// Why, in the person's words.
    pub note: String,
    /// When.
    pub at: Timestamp,
}

/// A body, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The bytes as they came; their digest was checked when they were read.
    Kept(Bytes),
    /// Erased by retention. Identity, digest and length remain.
    Erased,
}

/// An event with its body, or why it is not there: what [`Store::fetch`](crate::Store::fetch) says of each.
#[derive(Debug)]
pub enum Fetched {
    /// The event, [without counts](Event::uncounted), and its body, whose digest was checked.
    Whole(Box<Event>, Body),
    /// It is there, and its body was not wanted now.
    TooLarge,
    /// There is no such event.
    Unknown,
    /// It cannot be read: it is damaged, or the store cannot be read at the moment.
    Failed(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_print_as_lower_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
    }
}
