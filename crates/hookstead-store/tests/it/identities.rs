//! The index of identities, which is written late: that every start, reader and copy finds what was accepted, wherever
//! its hash stands by then.

use std::sync::Arc;

use hookstead_core::{
    AcceptReceipt, Acceptance, AcceptanceFacts, Decision, EventId, EventSelector, IdentityHash, MemoryStore,
    Outcome, Register, Resolve, Resolved, Seq, Store, Subject, Write, Written,
};
use hookstead_store::{
    IdentityFlush, OpenError, OpenOptions, Opened, StartStep, Verdict, backup, examine, open, open_read_only,
};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options, url};
use crate::case::cases;
use crate::scene::{SHOP, accept, accepting, find, identity, problems, register, try_accept};

cases!("identities":
    a_start_after_a_kill_at_any_event_finds_every_identity,
    answers_are_those_of_the_memory_store_through_collisions_and_kills,
    readers_find_what_is_pending,
    a_backup_finds_what_was_pending,
    a_database_of_the_first_schema_goes_on,
    everything_is_flushed_in_its_turn_and_what_is_flushed_is_dropped,
    pending_hashes_that_are_damaged_are_named,
    damage_that_a_start_cannot_go_on_with_refuses_it,
    a_hash_that_is_in_the_index_already_is_refused,
    a_flush_names_the_event_whose_hash_is_in_the_index_already,
);

/// Nothing is flushed within a test.
const NO_FLUSH: IdentityFlush = IdentityFlush { events: u32::MAX, ranges: 1 };

/// Nothing is ever pending after a commit.
const NOTHING_DEFERRED: IdentityFlush = IdentityFlush { events: 1, ranges: 256 };

fn with(identity_flush: IdentityFlush) -> OpenOptions {
    OpenOptions { identity_flush, ..options() }
}

fn id(n: usize) -> String {
    format!("evt_{n}")
}

fn filled(flush: IdentityFlush, events: usize) -> (Folder, Arc<dyn Store>) {
    let folder = Folder::new();
    let store = folder.open_with(&with(flush)).store;
    register(&store);
    let batch: Vec<_> = (0..events).map(|n| accepting(&store, &id(n), b"{}")).collect();
    store.apply(&batch, OPENED_AT).expect("all are legal");
    (folder, store)
}

fn rows(folder: &Folder, table: &str) -> i64 {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("it can be read")
}

fn edit(folder: &Folder, sql: &str) {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute_batch(sql).expect("it can be changed");
}

/// That all of these are known, once each, and that others are not.
fn assert_knows(store: &Arc<dyn Store>, events: usize) {
    assert_eq!(problems(store), [] as [&str; 0]);
    for n in 0..events {
        assert_eq!(accept(store, &id(n), b"{}"), Outcome::Duplicate, "{n} of {events}");
        assert_eq!(
            accept(store, &id(n), b"other"),
            Outcome::Conflict { variant: Some(1) },
            "{n} of {events}"
        );
    }
    assert_eq!(accept(store, &id(events), b"{}"), Outcome::Stored);
    assert_eq!(find(store, &id(events)).seq.0, events as u64 + 1);
}

fn a_start_after_a_kill_at_any_event_finds_every_identity() {
    for flush in [IdentityFlush { events: 3, ranges: 64 }, IdentityFlush { events: 2, ranges: 100 }] {
        let (folder, store) = filled(flush, 0);
        for events in 1..=20 {
            accept(&store, &id(events - 1), b"{}");
            let killed = folder.as_after_a_kill();
            assert_knows(&killed.open_with(&with(flush)).store, events);
            // The start was a kill too: it wrote nothing that another one would miss.
            let again = killed.as_after_a_kill();
            let opened = again.open_with(&with(NO_FLUSH));
            assert_eq!(accept(&opened.store, &id(events), b"{}"), Outcome::Duplicate);
        }
    }
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A store and its twin in memory, which are told the same.
struct Twins {
    folder: Folder,
    opened: Option<Opened>,
    memory: MemoryStore,
    random: Random,
    /// What can be made an event of its own.
    conflicts: Vec<(EventId, u16)>,
    /// How often: stored, found again, told apart.
    seen: [usize; 3],
}

impl Twins {
    fn new(seed: u64) -> Self {
        let folder = Folder::new();
        let opened = folder.open();
        register(&opened.store);
        let memory = MemoryStore::with_key(opened.store.facts().identity_key.clone());
        let name = "shop".parse().expect("a legal name");
        let source = Register::Source { name, identity_fingerprint: "id-v1".to_owned() };
        memory.apply(&[Write::Register(source)], OPENED_AT).expect("it is legal");
        let (opened, random) = (Some(opened), Random(seed));
        Self { folder, opened, memory, random, conflicts: Vec::new(), seen: [0; 3] }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.opened.as_ref().expect("it is open between the steps").store)
    }

    fn step(&mut self) {
        match self.random.below(6) {
            0 => self.kill(),
            1 => self.reopen(),
            2 => self.revise(),
            _ => self.accept_some(),
        }
    }

    fn kill(&mut self) {
        let killed = self.folder.as_after_a_kill();
        self.opened = None;
        self.folder = killed;
        self.opened = Some(self.folder.open());
    }

    fn reopen(&mut self) {
        self.store().close(OPENED_AT).expect("it closes");
        self.opened = None;
        self.opened = Some(self.folder.open());
    }

    /// A revision has a sequence number and no hash of its own.
    fn revise(&mut self) {
        let Some((event, variant)) = self.conflicts.pop() else { return };
        let number = u8::try_from(self.conflicts.len()).expect("there are few");
        let mut revision = [0xee; 16];
        revision[..8].copy_from_slice(&self.random.below(u64::MAX).to_be_bytes());
        revision[8] = number;
        let decision = Decision { by: "ada".to_owned(), note: String::new(), at: OPENED_AT };
        let revision = EventId::from_bytes(revision);
        let subject = Subject::AcceptConflict { event, variant, revision, destinations: Vec::new() };
        let draft = self.draft();
        let written = self.apply(&[draft, Write::Resolve(Box::new(Resolve { subject, decision }))]);
        assert!(matches!(written[1], Written::Resolved(Resolved::Revised { .. } | Resolved::Unchanged)));
    }

    fn accept_some(&mut self) {
        let count = 1 + self.random.below(7);
        let batch: Vec<Write> = (0..count).map(|_| self.draft()).collect();
        self.apply(&batch);
    }

    /// An event of few ids, with one of two bodies; a third of the ids share one of two hashes.
    fn draft(&mut self) -> Write {
        let (number, body) = (self.random.below(60), [b'a' + u8::from(self.random.below(4) == 0)]);
        let identity = identity(&format!("evt_{number}"));
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&(number * 2 + u64::from(body[0])).to_be_bytes());
        let facts = AcceptanceFacts { received_at: OPENED_AT, ..AcceptanceFacts::default() };
        assert_eq!(identity.source, SHOP);
        let key = &self.memory.facts().identity_key;
        let acceptance = Acceptance::new(key, identity, body.to_vec().into(), facts, entropy);
        let same = IdentityHash([if number % 2 == 0 { 0x5a } else { 0xf0 }; 16]);
        let collides = number % 3 == 0;
        Write::Accept(Box::new(if collides { acceptance.with_identity_hash(same) } else { acceptance }))
    }

    fn apply(&mut self, batch: &[Write]) -> Vec<Written> {
        let written = self.store().apply(batch, OPENED_AT).expect("all are legal");
        assert_eq!(written, self.memory.apply(batch, OPENED_AT).expect("all are legal"));
        for answer in &written {
            let Written::Accepted(AcceptReceipt { outcome, event, .. }) = answer else { continue };
            match outcome {
                Outcome::Stored => self.seen[0] += 1,
                Outcome::Duplicate => self.seen[1] += 1,
                Outcome::Conflict { variant } => {
                    self.seen[2] += 1;
                    self.conflicts.extend(variant.map(|variant| (*event, variant)));
                }
                Outcome::BodyReused => panic!("none of these events looks out for its body"),
            }
        }
        written
    }
}

fn answers_are_those_of_the_memory_store_through_collisions_and_kills() {
    for seed in 0..6 {
        let mut twins = Twins::new(seed);
        (0..50).for_each(|_| twins.step());
        assert!(twins.seen.iter().all(|seen| *seen > 10), "{:?} with seed {seed}", twins.seen);
        assert!(rows(&twins.folder, "identities") > 0, "something was flushed");
    }
}

fn readers_find_what_is_pending() {
    let (folder, store) = filled(NO_FLUSH, 30);
    assert_eq!(rows(&folder, "identities"), 0, "all are pending");
    let beside = open_read_only(&folder.url(), &options()).expect("it opens to be read");
    for reader in [&store, &beside] {
        (0..30).for_each(|n| assert_eq!(find(reader, &id(n)).seq.0, n as u64 + 1));
        let unknown = reader.event(&EventSelector::Identity(identity("evt_30"))).expect("it can be read");
        assert_eq!(unknown, None);
        assert_eq!(problems(reader), [] as [&str; 0]);
    }
    accept(&store, "evt_30", b"{}");
    assert_eq!(find(&beside, "evt_30").seq.0, 31, "also what came later");
}

fn a_backup_finds_what_was_pending() {
    let (folder, store) = filled(IdentityFlush { events: 10, ranges: 64 }, 0);
    (0..25).for_each(|n| assert_eq!(accept(&store, &id(n), b"{}"), Outcome::Stored));
    let copy = Folder::new();
    let report = backup(&folder.url(), &copy.path("copy"), &options(), OPENED_AT, &mut |_| ());
    let report = report.expect("it can be copied");
    assert_eq!(report.check.problem_count, 0, "{:?}", report.check.problems);
    let database = copy.path("restored.db");
    hookstead_store::restore(&copy.path("copy"), &url(&database), &options(), OPENED_AT, &mut |_| ())
        .expect("it can be put back");
    let restored = open(&url(&database), &options(), OPENED_AT).expect("the store opens").store;
    assert_knows(&restored, 25);
}

/// Takes a database back to what the first release made: its tables, and every identity in the index.
fn as_the_first_schema(folder: &Folder) {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    let first =
        "'attempts','destinations','done','duplicates','event_ids','events','identities','migrations',
        'redeliveries','runs','sources','store','variants','work'";
    let sql = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ({first})");
    let mut statement = raw.prepare(&sql).expect("it is legal");
    let later: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .expect("the schema can be read");
    assert!(later.len() >= 2, "{later:?}");
    later.iter().for_each(|table| raw.execute_batch(&format!("DROP TABLE {table}")).expect("it is there"));
    raw.execute("DELETE FROM migrations WHERE number > 1", []).expect("it can be changed");
}

fn a_database_of_the_first_schema_goes_on() {
    let (folder, store) = filled(NOTHING_DEFERRED, 40);
    accept(&store, &id(3), b"{}");
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    assert_eq!(rows(&folder, "identities"), 40);
    as_the_first_schema(&folder);
    let refused = open_read_only(&folder.url(), &options());
    assert!(matches!(refused, Err(OpenError::NotReadable { .. })), "a reader changes no schema");
    let store = folder.open_with(&with(NO_FLUSH)).store;
    assert_eq!(rows(&folder, "pending_identities"), 0);
    assert_eq!(find(&store, &id(3)).duplicates.count, 1);
    assert_knows(&store, 40);
    assert_eq!(rows(&folder, "pending_identities"), 1);
    drop(store);
    assert_eq!(accept(&folder.open().store, &id(40), b"{}"), Outcome::Duplicate);
}

fn everything_is_flushed_in_its_turn_and_what_is_flushed_is_dropped() {
    let flush = IdentityFlush { events: 4, ranges: 64 };
    let (folder, store) = filled(flush, 0);
    let mut most = 0;
    for n in 0..200 {
        accept(&store, &id(n), b"{}");
        most = most.max(rows(&folder, "pending_identities"));
    }
    // Of four flushes the oldest mark is three behind the newest, and the next is three events away.
    assert_eq!(most, 3 * 4 + 3);
    assert!((180..200).contains(&rows(&folder, "identities")), "{}", rows(&folder, "identities"));
    let batch: Vec<_> = (200..500).map(|n| accepting(&store, &id(n), b"{}")).collect();
    store.apply(&batch, OPENED_AT).expect("all are legal");
    assert_eq!((rows(&folder, "identities"), rows(&folder, "pending_identities")), (500, 0));
    assert_knows(&store, 500);
}

fn pending_hashes_that_are_damaged_are_named() {
    for (damage, what) in [
        ("DELETE FROM pending_identities", "event 0001 is not in the index of identities"),
        ("UPDATE pending_identities SET last_seq = 2", "do not fit to those around them"),
        ("UPDATE pending_identities SET last_seq = 4", "do not fit to those around them"),
        ("UPDATE pending_identities SET hashes = x'00'", "do not fit to those around them"),
        (
            "UPDATE pending_identities SET hashes = zeroblob(48)",
            "event 0002 is not in the index of identities",
        ),
        ("UPDATE identity_ranges SET flushed_to = 3", "event 0003 is not in the index of identities"),
        ("DELETE FROM identity_ranges WHERE number = 7", "one row for each range"),
        (
            "INSERT INTO identities SELECT substr(hashes, 1, 16), 1 FROM pending_identities",
            "the index of identities and the events differ by 1 rows",
        ),
    ] {
        let (folder, store) = filled(NO_FLUSH, 3);
        assert_eq!(problems(&store), [] as [&str; 0]);
        edit(&folder, damage);
        let found = problems(&store);
        assert!(found.iter().any(|problem| problem.contains(what)), "{damage}: {found:?}");
    }
}

fn damage_that_a_start_cannot_go_on_with_refuses_it() {
    for (damage, what) in [
        ("UPDATE pending_identities SET last_seq = 4", "do not fit to those around them"),
        ("UPDATE pending_identities SET hashes = zeroblob(48)", "was taken by another event before it"),
        ("DELETE FROM identity_ranges WHERE number = 7", "one row for each range"),
    ] {
        let (folder, store) = filled(NO_FLUSH, 3);
        store.close(OPENED_AT).expect("it closes");
        edit(&folder, damage);
        let refused = open(&folder.url(), &options(), OPENED_AT);
        let Err(OpenError::Damaged { what: found, .. }) = refused else { panic!("{damage}: {refused:?}") };
        assert!(found.contains(what), "{damage}: {found}");
        let looked = examine(&folder.url(), &options());
        let failed = looked.iter().find(|finding| finding.verdict == Verdict::Failed);
        let failed = failed.unwrap_or_else(|| panic!("{damage}: a look at it finds nothing: {looked:?}"));
        assert_eq!(failed.name, StartStep::Identities.as_str(), "{damage}: {failed:?}");
    }
}

fn a_hash_that_is_in_the_index_already_is_refused() {
    let (folder, store) = filled(IdentityFlush { events: 4, ranges: 256 }, 3);
    edit(&folder, "INSERT INTO identities SELECT substr(hashes, 1, 16), 1 FROM pending_identities");
    let refused = try_accept(&store, &id(3), b"{}").expect_err("this one flushes");
    assert!(refused.to_string().contains("in the index of identities already"), "{refused}");
    edit(&folder, "DELETE FROM identities");
    assert_eq!(accept(&store, &id(3), b"{}"), Outcome::Stored);
    assert_eq!((rows(&folder, "identities"), rows(&folder, "pending_identities")), (4, 0));
}

/// Whichever of the events it is: they are flushed together.
fn a_flush_names_the_event_whose_hash_is_in_the_index_already() {
    let (folder, store) = filled(IdentityFlush { events: 24, ranges: 256 }, 22);
    for seq in [1, 5, 9, 16, 17, 20, 22] {
        edit(
            &folder,
            &format!(
                "INSERT INTO identities SELECT substr(hashes, {seq} * 16 - 15, 16), {seq} FROM pending_identities"
            ),
        );
        let batch = [22, 23].map(|n| accepting(&store, &id(n), b"{}"));
        let refused = store.apply(&batch, OPENED_AT).expect_err("this one flushes").to_string();
        assert!(refused.contains(&format!("the hash of event {} was pending", Seq(seq))), "{refused}");
        edit(&folder, "DELETE FROM identities");
    }
    let batch = [22, 23].map(|n| accepting(&store, &id(n), b"{}"));
    store.apply(&batch, OPENED_AT).expect("nothing is in the way");
    assert_eq!((rows(&folder, "identities"), rows(&folder, "pending_identities")), (24, 0));
}
