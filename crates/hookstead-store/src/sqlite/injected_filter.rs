//! Tests of the filter before the index of identities, with a real database: that no identity is taken for a new one,
//! whatever is flushed, read for the filter, failed and started again.

use std::path::Path;

use hookstead_core::{Outcome, Store, StoreError, Write, Written};
use rusqlite::Connection;

use super::injected::{Fixture, NOW, acceptance, fixture_with, full, options, with_writer};
use super::open::open_store;
use super::store::SqliteStore;
use crate::open::{IdentityFilter, IdentityFlush, OpenOptions};
use crate::start::Steps;

/// Everything is flushed within 15 events, five rows are read at a time, and a range has room for 1,280 hashes.
fn tiny() -> OpenOptions {
    OpenOptions {
        identity_flush: IdentityFlush { events: 3, ranges: 64 },
        identity_filter: IdentityFilter { rows_per_commit: 5, bytes_max: 256 * 20 * 64 },
        ..options()
    }
}

/// A store, and the numbers of the events that are in it.
struct Filled {
    options: OpenOptions,
    fixture: Option<Fixture>,
    /// In so many ranges all hashes are.
    ranges: u8,
    events: usize,
}

impl Filled {
    fn new(options: OpenOptions, ranges: u8) -> Self {
        let fixture = Some(fixture_with(&options));
        Self { options, fixture, ranges, events: 0 }
    }

    fn store(&self) -> &SqliteStore {
        &self.fixture.as_ref().expect("it is open between the steps").store
    }

    fn accepting(&self, number: usize, body_bytes: usize) -> Write {
        let Write::Accept(accept) = acceptance(self.store(), &format!("no_{number}"), body_bytes) else {
            panic!("it is an accept")
        };
        let mut hash = accept.identity_hash();
        hash.0[0] %= self.ranges;
        Write::Accept(Box::new(accept.with_identity_hash(hash)))
    }

    fn apply(&self, batch: &[Write]) -> Result<Vec<Outcome>, StoreError> {
        let outcome = |written: Written| match written {
            Written::Accepted(receipt) => receipt.outcome,
            other => panic!("an accept was answered {other:?}"),
        };
        Ok(self.store().apply(batch, NOW)?.into_iter().map(outcome).collect())
    }

    fn drafts(&self, count: usize) -> Vec<Write> {
        (self.events..self.events + count).map(|number| self.accepting(number, 1)).collect()
    }

    fn store_some(&mut self, count: usize) {
        let outcomes = self.apply(&self.drafts(count)).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Stored), "{outcomes:?}");
        self.events += count;
    }

    /// Among them one that would flush, and at last one for which there is no room.
    fn fail_for_room(&self) {
        with_writer(self.store(), full);
        let mut batch = self.drafts(6);
        batch.push(self.accepting(self.events + 6, 300_000));
        let failed = self.apply(&batch);
        assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
    }

    /// A flush meets a hash that is in the table already: the transaction is undone, and connection and memory are kept.
    /// `false`: the newest event was flushed with its own commit, so that there is nothing to meet.
    fn fail_to_flush(&mut self) -> bool {
        self.store_some(1);
        let Write::Accept(newest) = self.accepting(self.events - 1, 1) else { panic!("it is an accept") };
        let foreign = Connection::open(&self.fixture.as_ref().unwrap().path).unwrap();
        let hash = newest.identity_hash().0;
        let is_pending =
            foreign.execute("INSERT OR IGNORE INTO identities VALUES (?1, 1)", [hash]).unwrap() == 1;
        if is_pending {
            let failed = self.apply(&self.drafts(16));
            assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
            foreign.execute("DELETE FROM identities WHERE hash = ?1", [hash]).unwrap();
        }
        is_pending
    }

    fn fail_to_commit(&mut self) {
        with_writer(self.store(), |connection| connection.commit_hook(Some(|| true)).unwrap());
        let failed = self.apply(&self.drafts(20));
        assert!(matches!(failed, Err(StoreError::Poisoned { .. })), "{failed:?}");
        self.restart();
    }

    fn restart(&mut self) {
        let Some(Fixture { store, path, _folder }) = self.fixture.take() else { panic!("it is open") };
        drop(store);
        let store = open_store(&path, &self.options, NOW, &mut Steps::default()).unwrap();
        self.fixture = Some(Fixture { store, path, _folder });
    }

    /// That each of these is a duplicate.
    fn assert_knows(&self, numbers: impl Iterator<Item = usize>) {
        let batch: Vec<Write> = numbers.map(|number| self.accepting(number, 1)).collect();
        for (at, outcome) in self.apply(&batch).unwrap().into_iter().enumerate() {
            assert_eq!(outcome, Outcome::Duplicate, "{at} of {} with {} events", batch.len(), self.events);
        }
    }

    /// How many hashes of events that nobody sent are known to be new without a search, of a thousand.
    fn known_to_be_new(&self) -> usize {
        let hash = |number| match self.accepting(number, 1) {
            Write::Accept(accept) => accept.identity_hash(),
            other => panic!("{other:?} is no accept"),
        };
        let mut writer = self.store().writer.lock().unwrap();
        let identities = writer.identities_for_tests();
        (1_000_000..1_001_000).filter(|number| !identities.may_be_in_table(hash(*number))).count()
    }
}

#[test]
fn every_identity_is_found_through_flushes_failures_and_starts() {
    // In one range it becomes full with 673 hashes, is made anew, and is given up with 1,281.
    for (ranges, events_min, rows_per_commit) in [(1, 1_400, 200), (2, 1_400, 200), (255, 700, 5)] {
        let filter = IdentityFilter { rows_per_commit, ..tiny().identity_filter };
        let mut filled = Filled::new(OpenOptions { identity_filter: filter, ..tiny() }, ranges);
        let (mut flushes_failed, mut was_made_anew) = (0, false);
        for round in 1.. {
            filled.store_some(1 + round * 7 % 40);
            match round % 20 {
                4 => filled.fail_for_room(),
                9 => filled.fail_to_commit(),
                14 => filled.restart(),
                odd if odd % 2 == 1 => flushes_failed += u32::from(filled.fail_to_flush()),
                _ => {}
            }
            let events = filled.events;
            was_made_anew |= (700..1_200).contains(&events) && filled.known_to_be_new() > 0;
            filled.assert_knows((0..events).rev().take(40).chain((0..events).step_by(37)));
            if events > events_min {
                break;
            }
        }
        assert!(flushes_failed > 0, "no flush failed");
        assert!(was_made_anew || ranges == 255, "with {ranges} ranges it never had more than it is made for");
        assert!(ranges != 1 || filled.known_to_be_new() == 0, "there is no room for so many");
        filled.assert_knows(0..filled.events);
        filled.restart();
        filled.assert_knows(0..filled.events);
    }
}

#[test]
fn a_start_reads_what_is_there_and_then_knows_new_identities_without_a_search() {
    let filter = IdentityFilter { rows_per_commit: 20, ..tiny().identity_filter };
    let mut filled = Filled::new(OpenOptions { identity_filter: filter, ..tiny() }, 255);
    filled.store_some(60);
    assert!((1..700).contains(&filled.known_to_be_new()), "20 rows are read of 61");
    (0..30).for_each(|_| filled.store_some(3));
    assert!(filled.known_to_be_new() > 950, "all of them are");
    filled.restart();
    assert_eq!(filled.known_to_be_new(), 0, "nothing was read yet");
    filled.store_some(3);
    let known_first = filled.known_to_be_new();
    filled.store_some(3);
    assert!((1..filled.known_to_be_new()).contains(&known_first), "a part of the ranges, and then more");
    (0..30).for_each(|_| filled.store_some(3));
    assert!(filled.known_to_be_new() > 950);
    filled.fail_for_room();
    filled.assert_knows(0..1);
    assert_eq!(filled.known_to_be_new(), 0, "a new connection guesses nothing");
    filled.assert_knows(0..filled.events);
}

/// A key whose bit was changed on the disk ends a reading too early, or moves it too far.
#[test]
fn an_index_that_is_out_of_order_is_noticed_by_what_reads_for_the_filter() {
    let mut filled = Filled::new(tiny(), 1);
    (0..20).for_each(|_| filled.store_some(3));
    let Some(Fixture { store, path, _folder }) = filled.fixture.take() else { panic!("it is open") };
    drop(store);
    // Old enough that it stands in the index alone.
    let key: Vec<u8> = Connection::open(&path)
        .unwrap()
        .query_row("SELECT hash FROM identities WHERE seq < 20 ORDER BY hash LIMIT 1 OFFSET 3", [], |row| {
            row.get(0)
        })
        .unwrap();
    set_highest_bit(&path, &key);
    let store = open_store(&path, &filled.options, NOW, &mut Steps::default()).unwrap();
    filled.fixture = Some(Fixture { store, path, _folder });
    let noticed = (0..40).find_map(|_| {
        let refused = filled.apply(&filled.drafts(3)).err();
        filled.events += 3;
        refused
    });
    let out_of_order = "the index of identities is out of order";
    assert!(
        matches!(&noticed, Some(StoreError::Poisoned { reason }) if reason.contains(out_of_order)),
        "{noticed:?}"
    );
}

fn set_highest_bit(path: &Path, key: &[u8]) {
    let mut bytes = std::fs::read(path).unwrap();
    let at: Vec<usize> = (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(key)).collect();
    assert_eq!(at.len(), 1, "the key is in the file of the database once");
    bytes[at[0]] |= 0x80;
    std::fs::write(path, bytes).unwrap();
}
