//! An event on its way in, as the cases write it down: only what matters to the case.

use bytes::Bytes;

use crate::event::{AcceptanceFacts, BodyReuse, ComparisonDigest, Digest};
use crate::id::{DestinationNumber, SourceNumber};
use crate::identity::{Identity, IdentityHash, ProviderEventId, Scope};
use crate::request::RawHeaders;

/// What an [`crate::Acceptance`] is made of.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) identity: Identity,
    pub(super) body: Bytes,
    pub(super) facts: AcceptanceFacts,
    pub(super) hash: Option<IdentityHash>,
}

impl Draft {
    /// An event that is owed to nobody and of which nothing else is known.
    pub(super) fn new(source: SourceNumber, id: impl AsRef<[u8]>, body: impl AsRef<[u8]>) -> Self {
        let id = ProviderEventId::new(id.as_ref()).expect("the case uses a legal id");
        Self {
            identity: Identity { source, scope: Scope::default(), id },
            body: Bytes::copy_from_slice(body.as_ref()),
            facts: AcceptanceFacts::default(),
            hash: None,
        }
    }

    pub(super) fn scoped(mut self, scope: impl AsRef<[u8]>) -> Self {
        self.identity.scope = Scope::new(scope.as_ref()).expect("the case uses a legal scope");
        self
    }

    pub(super) fn owed_to(mut self, destinations: impl IntoIterator<Item = DestinationNumber>) -> Self {
        self.facts.destinations = destinations.into_iter().collect();
        self
    }

    pub(super) fn typed(mut self, event_type: &str) -> Self {
        self.facts.event_type = Some(event_type.to_owned());
        self
    }

    pub(super) fn with_header(mut self, name: &str, value: &[u8]) -> Self {
        self.facts.headers = RawHeaders::from_fields([(name, value)]);
        self
    }

    /// With a comparison digest of version `rule_version` over `steady`, the part that retries leave alone.
    pub(super) fn compared(mut self, rule_version: u32, steady: &str) -> Self {
        self.facts.comparison =
            Some(ComparisonDigest { rule_version, digest: Digest::of(steady.as_bytes()) });
        self
    }

    /// With a rule for bodies that came before under another identity.
    pub(super) fn reusing(mut self, rule: BodyReuse) -> Self {
        self.facts.body_reuse = rule;
        self
    }

    /// With a made-up identity hash, so that two identities collide.
    pub(super) fn hashed(mut self, hash: IdentityHash) -> Self {
        self.hash = Some(hash);
        self
    }
}
