//! What the fuzz targets of `fuzz/` call: every kind of file that a start, a check or a restore reads, and the cursors
//! that callers hand back. Each function panics if something does not hold that must hold whatever the bytes are. It is
//! there only with the feature `fuzzing` and promises nothing to anybody else.

use std::path::Path;
use std::sync::Arc;

use hookstead_core::{
    Acceptance, AcceptanceFacts, ConflictFilter, Cursor, DeliveryFilter, EventFilter, Identity, Order, Page,
    ProviderEventId, Register, Scope, SourceNumber, Store, Timestamp, Write,
};

pub use crate::backup::fuzzing::backup;
pub use crate::files::fuzzing::{entry, journal};
use crate::lock::OwnerRecord;
use crate::open::{OpenError, OpenOptions};
pub use crate::sqlite::fuzzing::wal;

/// The record of who has a store open.
pub fn owner(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(record) = OwnerRecord::from_text(text) else { return };
    assert!(!record.to_string().is_empty());
    // The end of a line may be CR LF, and a carriage return is no part of a value.
    if !text.contains('\r') {
        assert_eq!(OwnerRecord::from_text(&record.to_text()).as_ref(), Some(&record));
    }
}

/// A store of each kind with a few events, for cursors.
pub struct Cursors(Vec<Arc<dyn Store>>);

/// When they were made.
const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

impl Cursors {
    /// Makes them in this folder. They stay open as long as this lives.
    ///
    /// # Errors
    ///
    /// [`OpenError`] as of [`crate::open`].
    pub fn new(folder: &Path) -> Result<Self, OpenError> {
        let options = OpenOptions { wal_bytes_max: 1024 * 1024, ..OpenOptions::default() };
        let urls = ["memory:".to_owned(), of("sqlite", folder), of("files", folder)];
        let open = |url: &String| crate::open(url, &options, NOW).map(|opened| opened.store);
        let stores = urls.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        stores.iter().for_each(fill);
        Ok(Self(stores))
    }

    /// Goes on after a cursor that nobody gave out, in every list of every store: a page or a refusal, and never more
    /// than was asked for.
    pub fn run(&self, input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let Ok(cursor) = text.parse::<Cursor>() else { return };
        assert_eq!(cursor.as_str(), text);
        for (store, order) in
            self.0.iter().flat_map(|store| [(store, Order::OldestFirst), (store, Order::NewestFirst)])
        {
            let page = Page::first(2, order).after(cursor.clone());
            let counts = [
                store.list_events(&EventFilter::default(), &page).map_or(0, |list| list.items.len()),
                store.list_deliveries(&DeliveryFilter::default(), &page).map_or(0, |list| list.items.len()),
                store.list_conflicts(&ConflictFilter::default(), &page).map_or(0, |list| list.items.len()),
                store.list_redeliveries(None, &page).map_or(0, |list| list.items.len()),
            ];
            assert!(counts.iter().all(|count| *count <= 2), "`{text}`: {counts:?}");
        }
    }
}

fn of(kind: &str, folder: &Path) -> String {
    format!("{kind}:{}", folder.join(kind).display())
}

fn fill(store: &Arc<dyn Store>) {
    let name = "shop".parse().expect("a legal name");
    let source = Register::Source { name, identity_fingerprint: "id-v1".to_owned() };
    store.apply(&[Write::Register(source)], NOW).expect("the source is legal");
    let key = &store.facts().identity_key;
    let accept = |n: u8| {
        let id = ProviderEventId::new(format!("evt_{n}").into_bytes()).expect("a legal id");
        let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
        let body = vec![n].into();
        Write::Accept(Box::new(Acceptance::new(key, identity, body, AcceptanceFacts::default(), [n; 10])))
    };
    let writes: Vec<_> = (0..5).map(accept).collect();
    store.apply(&writes, NOW).expect("the events are legal");
}

/// What an input's file is called: the beginning of its digest, so that the same one is kept once.
pub fn name(input: &[u8]) -> String {
    let mut name = hookstead_core::Digest::of(input).to_string();
    name.truncate(20);
    name
}
