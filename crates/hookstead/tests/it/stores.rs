//! The stores that each promise of the library is checked on.

use std::path::Path;
use std::time::Duration;

use hookstead::{CommitLimits, Inbox, InboxBuilder, Source};

/// Runs `check` on an inbox builder for each store.
pub(crate) fn on_every_store(check: impl Fn(InboxBuilder)) {
    let folder = tempfile::tempdir().unwrap();
    let [sqlite, files] = on_disk(folder.path());
    for url in ["memory:".to_owned(), sqlite, files] {
        check(Inbox::builder().store(url).limits(patient()));
    }
}

/// The URLs of a store of each kind that outlives the process, in a folder.
pub(crate) fn on_disk(folder: &Path) -> [String; 2] {
    let at = |kind: &str, name: &str| format!("{kind}:{}", folder.join(name).display());
    [at("sqlite", "inbox.db"), at("files", "inbox")]
}

/// Limits under which no event is refused because commits take seconds on a busy machine.
pub(crate) fn patient() -> CommitLimits {
    CommitLimits { wait_max: Duration::from_secs(60), ..CommitLimits::default() }
}

/// A source that is recorded to.
pub(crate) fn recorded(name: &str) -> Source {
    Source::recorded(name.parse().unwrap())
}
