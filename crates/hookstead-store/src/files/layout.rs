//! What is called how in a store's folder. Names come from digests and from names that were parsed before,
//! so that nothing a stranger sends can become a path. It touches no disk.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use hookstead_core::{EventId, Identity, RunName, SourceName};

use super::row::EventRow;

/// Marks a folder as ours; holds the format's version and the key of the identity hashes.
pub(super) const MARKER: &str = "hookstead.json";
/// The state of work.
pub(super) const LOG: &str = "work.log";
/// How the name of a segment of the journal begins.
const JOURNAL: &str = "journal-";
/// The lock with its owner record.
pub(super) const LOCK: &str = "lock";
/// The folder above the sources' folders.
pub(super) const SOURCES: &str = "sources";
/// How the name of a file begins that is being written.
pub(super) const PENDING: &str = ".pending-";
/// The source whose folder is the root itself, in a folder that the seed's own receiver made.
pub(super) const SEED_SOURCE: &str = "seed";

/// What a record is, by the folder that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// The first bytes of an identity.
    Delivery,
    /// Other bytes of an identity.
    Conflict,
    /// Other bytes that a person accepted.
    Revision,
    /// The receipt of a run.
    Receipt,
}

impl Kind {
    /// Every kind.
    pub(super) const ALL: [Self; 4] = [Self::Delivery, Self::Conflict, Self::Revision, Self::Receipt];

    /// The name of its folder.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Delivery => "deliveries",
            Self::Conflict => "conflicts",
            Self::Revision => "revisions",
            Self::Receipt => "processed",
        }
    }
}

/// A record's path below the store's folder, with `/` between its parts, as the log keeps it.
pub(super) type RecordPath = String;

/// Where a store's files are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: PathBuf,
    seed_at_root: bool,
}

impl Layout {
    /// The layout of the folder `root`; `seed_at_root` if the source [`SEED_SOURCE`] lies in the root itself.
    pub(super) fn new(root: &Path, seed_at_root: bool) -> Self {
        Self { root: root.to_owned(), seed_at_root }
    }

    /// The store's folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path that a record has on the disk.
    pub(super) fn path(&self, record: &str) -> PathBuf {
        self.root.join(record)
    }

    /// Whether a source lies in the root itself.
    pub(super) fn is_at_root(&self, source: &str) -> bool {
        self.seed_at_root && source == SEED_SOURCE
    }

    /// The folder of a source's records of one kind.
    pub(super) fn folder(&self, source: &str, kind: Kind) -> RecordPath {
        if self.is_at_root(source) {
            return kind.folder().to_owned();
        }
        format!("{SOURCES}/{source}/{}", kind.folder())
    }

    /// Where the body of an event lies: the first bytes of its identity by the identity, a revision by its
    /// own id.
    pub(super) fn event(&self, row: &EventRow) -> RecordPath {
        let event = &row.event;
        match event.revises {
            None => self.delivery(&event.source, &event.identity),
            Some(_) => self.revision(&event.source, &event.id),
        }
    }

    /// Where the first bytes of an identity lie.
    pub(super) fn delivery(&self, source: &SourceName, identity: &Identity) -> RecordPath {
        format!("{}/{}.json", self.folder(source.as_str(), Kind::Delivery), stem(identity, None))
    }

    /// Where a variant of an identity lies.
    pub(super) fn conflict(&self, source: &SourceName, identity: &Identity, variant: u16) -> RecordPath {
        format!("{}/{}-{variant}.json", self.folder(source.as_str(), Kind::Conflict), stem(identity, None))
    }

    /// Where a revision lies.
    pub(super) fn revision(&self, source: &SourceName, event: &EventId) -> RecordPath {
        format!("{}/{event}.json", self.folder(source.as_str(), Kind::Revision))
    }

    /// Where the receipt of a run lies. A revision has the identity of the event that it revises, so its
    /// receipts carry its own id in their names.
    pub(super) fn receipt(&self, row: &EventRow, run: &RunName) -> RecordPath {
        let event = &row.event;
        let folder = self.folder(event.source.as_str(), Kind::Receipt);
        let stem = stem(&event.identity, Some(run));
        match event.revises {
            None => format!("{folder}/{stem}.json"),
            Some(_) => format!("{folder}/{stem}-{}.json", event.id),
        }
    }
}

/// The name of a segment of the journal.
pub(super) fn segment(number: u64) -> RecordPath {
    format!("{JOURNAL}{number}.log")
}

/// The number of a segment of the journal, if that is its name.
pub(super) fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(JOURNAL)?.strip_suffix(".log")?.parse().ok()?;
    (segment(number) == name).then_some(number)
}

/// The folder of a record.
pub(super) fn folder_of(record: &str) -> &str {
    record.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// SHA-256 of the id, as the seed names its entries; followed by NUL and the run's name for a receipt.
///
/// With a scope the digest is over the scope's length, the scope and the id, and the name says so: without
/// that, an id that spells out such a string would get the name of another identity.
fn stem(identity: &Identity, run: Option<&RunName>) -> String {
    let scope = identity.scope.as_bytes();
    let mut context = Context::new(&SHA256);
    if !scope.is_empty() {
        context.update(&(scope.len() as u64).to_be_bytes());
        context.update(scope);
    }
    context.update(identity.id.as_bytes());
    if let Some(run) = run {
        context.update(b"\0");
        context.update(run.as_str().as_bytes());
    }
    let digest = hex::encode(context.finish());
    if scope.is_empty() { digest } else { format!("{digest}-scoped") }
}

#[cfg(test)]
mod tests {
    use hookstead_core::{ProviderEventId, Scope, SourceNumber};

    use super::*;

    fn identity(scope: &str, id: &str) -> Identity {
        Identity {
            source: SourceNumber(1),
            scope: Scope::new(scope.as_bytes()).unwrap(),
            id: ProviderEventId::new(id.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn entries_are_named_as_the_seed_names_them() {
        let source = "shop".parse().unwrap();
        let digest = "abf24d99e77559ec58f2f3c7b3ab8e68a43a2c1b1f2fb3ae3ed4dcdd9d69c8ab";
        let name = Layout::new(Path::new("/d"), false).delivery(&source, &identity("", "delivery-1"));
        assert_eq!(name.len(), "sources/shop/deliveries/".len() + digest.len() + ".json".len());
        assert!(name.starts_with("sources/shop/deliveries/"));
        let expected = hex::encode(aws_lc_rs::digest::digest(&SHA256, b"delivery-1"));
        assert_eq!(name, format!("sources/shop/deliveries/{expected}.json"));
        let seed = Layout::new(Path::new("/d"), true);
        let at_root = seed.delivery(&SEED_SOURCE.parse().unwrap(), &identity("", "delivery-1"));
        assert_eq!(at_root, format!("deliveries/{expected}.json"));
        assert_eq!(folder_of(&at_root), "deliveries");
    }

    #[test]
    fn scopes_are_part_of_the_name_and_never_run_together() {
        let name = |scope, id| stem(&identity(scope, id), None);
        assert_ne!(name("a", "bc"), name("ab", "c"));
        assert_ne!(name("a", "b"), name("", "ab"));
        let spelled_out = "\0\0\0\0\0\0\0\u{1}ab";
        assert_eq!(name("a", "b"), format!("{}-scoped", name("", spelled_out)));
    }
}
