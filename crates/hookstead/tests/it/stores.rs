//! The stores that each promise of the library is checked on.

use hookstead::{Inbox, InboxBuilder, Source};

/// Runs `check` on an inbox builder for each store.
pub(crate) fn on_every_store(check: impl Fn(InboxBuilder)) {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:".to_owned(), format!("sqlite:{}", folder.path().join("inbox.db").display())] {
        check(Inbox::builder().store(url));
    }
}

/// A source that is recorded to.
pub(crate) fn recorded(name: &str) -> Source {
    Source::recorded(name.parse().unwrap())
}
