//! Tests of lists over more rows than may be looked at for one page, or on one state of the database.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use hookstead_core::{
    Acceptance, AcceptanceFacts, DeliveryFilter, Event, EventFilter, Identity, List, Order, Page,
    ProviderEventId, Register, RetryPolicy, Scope, SourceNumber, StateName, Store, StoreError, Timestamp,
    Write,
};
use rusqlite::Connection;

use super::event::Known;
use super::list;
use super::open::open_store;
use super::published::Published;
use super::store::SqliteStore;
use super::walk::{Reach, Stretch};
use crate::open::OpenOptions;
use crate::start::Steps;

const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

/// Small enough that a page of a few dozen rows goes beyond each.
const SHORT: Reach = Reach { rows_per_stretch: 5, rows_per_page: 20 };

struct Scene {
    store: SqliteStore,
    /// Removed last.
    folder: tempfile::TempDir,
}

impl Scene {
    /// A store with a source, a destination and as many events, of which each `nth` has the type `rare`.
    fn new(events: u32, nth: u32) -> Self {
        Self::with(events, nth, &OpenOptions::default())
    }

    fn with(events: u32, nth: u32, options: &OpenOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.db");
        let store = open_store(&path, options, NOW, &mut Steps::default()).unwrap();
        let source = Register::Source { name: "shop".parse().unwrap(), identity_fingerprint: "id".into() };
        let destination = Register::Destination {
            name: "app".parse().unwrap(),
            fingerprint: "x".into(),
            retry: RetryPolicy::default(),
        };
        store.apply(&[Write::Register(source), Write::Register(destination)], NOW).unwrap();
        fill(&path, events, nth);
        Self { store, folder }
    }

    fn connection(&self) -> Connection {
        Connection::open(self.folder.path().join("events.db")).unwrap()
    }

    /// Lists on a connection of its own, and counts the states of the database that it took.
    fn counted<T>(&self, list: impl FnOnce(&dyn Fn(Stretch<'_>) -> Result<(), StoreError>) -> T) -> (T, u32) {
        let connection = self.connection();
        let registry = self.store.registry().unwrap();
        let published = Published::new(registry.clone().into(), self.store.stats().unwrap());
        let known = Known {
            identity_key: &self.store.facts.identity_key,
            registry: &registry,
            published: &published,
        };
        let states = Cell::new(0);
        let listed = list(&|stretch| {
            states.set(states.get() + 1);
            stretch(&connection, &known)
        });
        (listed, states.get())
    }
}

/// Accepts as much as the log of [`small`] holds, several times over.
fn accept_much(store: &SqliteStore, first: u32) -> Result<(), StoreError> {
    (first..first + 10).try_for_each(|n| {
        let id = ProviderEventId::new(format!("evt_{n}").into_bytes()).expect("a legal id");
        let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
        let mut entropy = [0; 10];
        entropy[..4].copy_from_slice(&n.to_be_bytes());
        let (key, body) = (&store.facts().identity_key, vec![b'x'; 300 * 1024].into());
        let acceptance = Acceptance::new(key, identity, body, AcceptanceFacts::default(), entropy);
        store.apply(&[Write::Accept(Box::new(acceptance))], NOW).map(drop)
    })
}

fn small() -> OpenOptions {
    OpenOptions { wal_bytes_max: 1024 * 1024, ..OpenOptions::default() }
}

/// Rows as accepts and settles leave them, as far as lists look at them; accepts would take minutes.
fn fill(path: &Path, events: u32, nth: u32) {
    if events == 0 {
        return;
    }
    let connection = Connection::open(path).unwrap();
    let numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)";
    let sql = format!(
        "{numbers} INSERT INTO events (seq, id, source, scope, provider_event_id, event_type, received_at_us,
            committed_at_us, digest, body_bytes, body_bytes_total, deliveries_total, body)
         SELECT n, randomblob(16), 1, x'', CAST(n AS BLOB), iif(n % ?2 = 0, 'rare', 'usual'), n, n,
            zeroblob(32), 0, 0, 0, x'' FROM numbers"
    );
    connection.execute(&sql, (events, nth)).unwrap();
    let sql = format!(
        "{numbers} INSERT INTO work (seq, destination, generation, event_id, state, due_us, ended_at_us, made_at_us,
            attempts, token, key_generation, dead)
         SELECT seq, 1, 1, id, iif(seq % ?2 = 0, 'dead', 'waiting'), 1, 1, 1, 0, 0, 1, 'attempts'
         FROM events JOIN numbers ON n = seq"
    );
    connection.execute(&sql, (events, nth)).unwrap();
    connection.execute("INSERT INTO event_ids (id, seq) SELECT id, seq FROM events", []).unwrap();
}

fn rare() -> EventFilter {
    EventFilter { event_type: Some("rare".parse().unwrap()), ..EventFilter::default() }
}

fn seqs(list: &List<Event>) -> Vec<u64> {
    list.items.iter().map(|event| event.seq.0).collect()
}

#[test]
fn a_list_takes_a_new_state_of_the_database_after_each_stretch() {
    let scene = Scene::new(17, 100);
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let page = Page::first(10, order);
        let (list, states) = scene.counted(|read| list::events_within(SHORT, read, &rare(), &page).unwrap());
        assert_eq!((list.items, list.more, states), (vec![], false, 4), "{order:?}");
        let dead = DeliveryFilter { state: Some(StateName::Dead), ..DeliveryFilter::default() };
        let (list, states) =
            scene.counted(|read| list::deliveries_within(SHORT, read, &dead, &page).unwrap());
        assert_eq!((list.items, list.more, states), (vec![], false, 4), "{order:?}");
    }
}

#[test]
fn a_page_ends_where_as_many_rows_were_looked_at_as_may_be_and_its_cursor_goes_on_there() {
    let scene = Scene::new(70, 33);
    for (order, expected) in [
        (Order::OldestFirst, vec![(vec![], true), (vec![33], true), (vec![], true), (vec![66], false)]),
        (Order::NewestFirst, vec![(vec![66], true), (vec![33], true), (vec![], true), (vec![], false)]),
    ] {
        let mut page = Page::first(10, order);
        for (number, (found, more)) in expected.into_iter().enumerate() {
            let (list, states) =
                scene.counted(|read| list::events_within(SHORT, read, &rare(), &page).unwrap());
            assert_eq!((seqs(&list), list.more), (found.clone(), more), "{order:?} {number}");
            assert!(states <= 4, "{states}");
            let dead = DeliveryFilter { state: Some(StateName::Dead), ..DeliveryFilter::default() };
            let (owed, _) = scene.counted(|read| list::deliveries_within(SHORT, read, &dead, &page).unwrap());
            assert_eq!((owed.items.len(), owed.more), (found.len(), more), "{order:?} {number}");
            assert!(owed.items.iter().zip(&list.items).all(|(owed, event)| owed.id.event == event.id));
            page.after = list.next;
        }
    }
}

#[test]
fn a_page_that_is_full_ends_with_its_last_item_however_far_was_looked() {
    let scene = Scene::new(40, 4);
    let mut page = Page::first(3, Order::OldestFirst);
    let mut seen = Vec::new();
    loop {
        let (list, _) = scene.counted(|read| list::events_within(SHORT, read, &rare(), &page).unwrap());
        seen.extend(seqs(&list));
        page.after = list.next;
        if !list.more {
            break;
        }
    }
    assert_eq!(seen, (1..=10).map(|n| n * 4).collect::<Vec<_>>());
}

#[test]
fn a_list_of_the_store_itself_stops_at_its_reach_and_goes_on_from_there() {
    let rows = Reach::USUAL.rows_per_page + 10;
    let scene = Scene::new(rows, rows);
    let dead = DeliveryFilter { state: Some(StateName::Dead), ..DeliveryFilter::default() };
    let mut page = Page::first(10, Order::OldestFirst);
    for found in [0, 1] {
        let events = scene.store.list_events(&rare(), &page).unwrap();
        assert_eq!((events.items.len(), events.more), (found, found == 0));
        let deliveries = scene.store.list_deliveries(&dead, &page).unwrap();
        assert_eq!((deliveries.items.len(), deliveries.more), (found, found == 0));
        page.after = events.next;
    }
}

/// Deliveries of one event are looked for among its own, wherever it stands.
#[test]
fn a_list_about_one_event_looks_at_no_other() {
    let scene = Scene::new(30, 100);
    let last = scene.store.event(&hookstead_core::EventSelector::Newest).unwrap().unwrap();
    let filter = DeliveryFilter { event: Some(last.id), ..DeliveryFilter::default() };

    let page = Page::first(10, Order::OldestFirst);
    let (list, states) = scene.counted(|read| list::deliveries_within(SHORT, read, &filter, &page).unwrap());
    assert_eq!((list.items.len(), list.more, states), (1, false, 1));
    assert_eq!(list.items[0].id.event, last.id);
}

/// A list in one piece would keep it from that, and soon events would be refused.
#[test]
fn between_two_stretches_of_a_list_the_log_is_reset() {
    let scene = Scene::with(0, 100, &small());
    accept_much(&scene.store, 0).unwrap();
    let known = |read: &dyn Fn(&Known<'_>)| {
        let registry = scene.store.registry().unwrap().into();
        let published = Published::new(Arc::clone(&registry), scene.store.stats().unwrap());
        read(&Known {
            identity_key: &scene.store.facts.identity_key,
            registry: &registry,
            published: &published,
        });
    };
    let stretches = Cell::new(0);
    known(&|known| {
        let read = |stretch: Stretch<'_>| {
            scene.store.readers.read(|connection| stretch(connection, known))?;
            stretches.set(stretches.get() + 1);
            accept_much(&scene.store, stretches.get() * 10)
        };
        let list = list::events_within(SHORT, &read, &rare(), &Page::first(10, Order::OldestFirst)).unwrap();
        assert_eq!((list.items, list.more, stretches.get()), (vec![], true, 4));
    });
    let whole = scene.store.readers.read(|connection| {
        connection.query_row("SELECT count(*) FROM events", [], |_| Ok(())).unwrap();
        accept_much(&scene.store, 1_000)
    });
    assert!(matches!(whole, Err(StoreError::Full { .. })), "{whole:?}");
}
