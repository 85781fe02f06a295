//! The hashes that are not in the table yet, in memory, and which of them are due to move there. It knows no SQL.
//!
//! There are 256 ranges, one for each first byte of a hash. Each has a mark: the hash of an event up to it is in the
//! table, the hash of a later one is here. Every [`IdentityFlush::events`] events, the [`IdentityFlush::ranges`] ranges
//! that were flushed the longest time ago are due, and besides every range whose mark is further behind the newest event
//! than [`pending_max`]: so there are never more hashes here than that after a commit, whatever the hashes and the
//! batches are like.

use std::iter;
use std::ops::RangeInclusive;

use hookstead_core::{IdentityHash, Seq};

use super::filter::{Filters, Part};
use super::map::SeqByHash;
use crate::open::{IdentityFilter, IdentityFlush};

/// One for each first byte of a hash.
pub(super) const RANGES: usize = 256;

/// Rows of the table on a page of 8 KiB that is half full: 28 bytes each. Rather too few.
const ROWS_PER_PAGE: u64 = 128;

/// What is in memory, as of the newest commit.
#[derive(Debug)]
pub(in crate::sqlite) struct Pending {
    ranges: Vec<Range>,
    /// The marks that are furthest behind and furthest ahead: from them nearly every commit sees that nothing is due.
    marks: RangeInclusive<Seq>,
    when: IdentityFlush,
    filters: Filters,
}

#[derive(Debug)]
struct Range {
    flushed_to: Seq,
    hashes: SeqByHash,
}

/// What a batch has taken and flushed, to become part of [`Pending`] when it is committed.
#[derive(Debug)]
pub(in crate::sqlite) struct Taken {
    pub(super) hashes: SeqByHash,
    /// The ranges whose hashes are in the table now, those of the batch included.
    pub(super) flushed: Vec<u8>,
    pub(super) flushed_to: Seq,
    /// What was read of the table for the filters.
    pub(super) read: Vec<Part>,
}

/// The same, once the filters know what it moves into the table: now it may be committed.
#[derive(Debug)]
pub(in crate::sqlite) struct Foreseen(Taken);

/// How many hashes are pending after a commit at the most.
pub(super) fn pending_max(when: IdentityFlush) -> u64 {
    let (events, ranges) = bounded(when);
    (RANGES as u64).div_ceil(ranges) * events + events
}

/// The range of a hash.
pub(super) fn range_of(hash: IdentityHash) -> u8 {
    hash.bucket().0
}

impl Pending {
    /// Ranges with these marks, [`RANGES`] of them, in which nothing is pending.
    pub(super) fn new(flushed_to: &[Seq], when: IdentityFlush, filter: IdentityFilter) -> Self {
        let range = |flushed_to: &Seq| Range { flushed_to: *flushed_to, hashes: SeqByHash::default() };
        let ranges: Vec<Range> = flushed_to.iter().map(range).collect();
        let marks = outermost_marks(&ranges);
        let filters = Filters::new(filter, marks.end().0);
        Self { ranges, marks, when, filters }
    }

    /// Adds a hash. `false`: it was there already.
    pub(super) fn insert(&mut self, hash: IdentityHash, seq: Seq) -> bool {
        self.ranges[usize::from(range_of(hash))].hashes.insert(hash, seq).is_none()
    }

    /// The event that took a hash, if it is pending.
    pub(super) fn holder(&self, hash: IdentityHash) -> Option<Seq> {
        self.ranges[usize::from(range_of(hash))].hashes.get(&hash).copied()
    }

    /// Whether the table may hold a hash. `false`: it does not.
    pub(in crate::sqlite) fn may_be_in_table(&self, hash: IdentityHash) -> bool {
        self.filters.may_hold(hash)
    }

    /// The filters, to read for them.
    pub(super) fn filters(&self) -> &Filters {
        &self.filters
    }

    /// What is pending in a range, in no order.
    pub(super) fn hashes_of(&self, range: u8) -> impl Iterator<Item = (IdentityHash, Seq)> {
        self.ranges[usize::from(range)].hashes.iter().map(|(hash, seq)| (*hash, *seq))
    }

    /// The ranges that are to be flushed by a commit after which `newest` is the newest event.
    pub(super) fn due(&self, newest: Seq) -> Vec<u8> {
        let (events, ranges) = bounded(self.when);
        let crossed = (newest.0 / events).saturating_sub(self.marks.end().0 / events);
        let behind_max = pending_max(self.when);
        let is_late = |mark: &Seq| newest.0.saturating_sub(mark.0) > behind_max;
        if crossed == 0 && !is_late(self.marks.start()) {
            return Vec::new();
        }
        let late = self.ranges.iter().filter(|range| is_late(&range.flushed_to)).count() as u64;
        let count = crossed.saturating_mul(ranges).max(late);
        let mut oldest_first: Vec<u8> = (0..=u8::MAX).collect();
        oldest_first.sort_by_key(|range| self.ranges[usize::from(*range)].flushed_to);
        oldest_first.truncate(usize::try_from(count).unwrap_or(RANGES));
        oldest_first
    }

    /// The mark that is furthest behind once `flushed` are flushed up to `flushed_to`.
    pub(super) fn oldest_mark(&self, flushed: &[u8], flushed_to: Seq) -> Seq {
        let others = iter::zip(0..=u8::MAX, &self.ranges).filter(|(range, _)| !flushed.contains(range));
        others.map(|(_, range)| range.flushed_to).min().unwrap_or(flushed_to)
    }

    /// About how many pages of the table a commit changes that takes up to `hashes` more and after which `newest` is the
    /// newest event; rather too many.
    pub(in crate::sqlite) fn pages_due(&self, newest: Seq, hashes: u64) -> u64 {
        let due = self.due(newest);
        if due.is_empty() {
            return 0;
        }
        let pages_of_range = newest.0 / (ROWS_PER_PAGE * RANGES as u64) + 2;
        let pages = |rows: u64| rows.min(pages_of_range + rows / ROWS_PER_PAGE);
        let pending = |range: &u8| pages(self.ranges[usize::from(*range)].hashes.len() as u64);
        due.iter().map(pending).sum::<u64>() + hashes
    }

    /// Has the filters know what is about to be committed. It must be done before: what they forget would be stored
    /// twice, and what they know in vain, if it is not committed after all, costs no more than a search.
    pub(in crate::sqlite) fn foresee(&mut self, mut taken: Taken) -> Foreseen {
        // First, so that what is added then is added also to those that this begins.
        for part in taken.read.drain(..) {
            self.filters.join(part);
        }
        for range in &taken.flushed {
            for hash in self.ranges[usize::from(*range)].hashes.keys() {
                self.filters.add(*hash);
            }
        }
        for hash in taken.hashes.keys().filter(|hash| taken.flushed.contains(&range_of(**hash))) {
            self.filters.add(*hash);
        }
        Foreseen(taken)
    }

    /// Takes over what was committed.
    pub(in crate::sqlite) fn join(&mut self, committed: Foreseen) {
        let Taken { hashes, flushed, flushed_to, .. } = committed.0;
        for range in &flushed {
            self.ranges[usize::from(*range)] = Range { flushed_to, hashes: SeqByHash::default() };
        }
        if !flushed.is_empty() {
            self.marks = outermost_marks(&self.ranges);
        }
        for (hash, seq) in hashes {
            if !flushed.contains(&range_of(hash)) {
                self.insert(hash, seq);
            }
        }
    }

    /// Becomes wrong.
    #[cfg(test)]
    pub(in crate::sqlite) fn lose_for_tests(&mut self) {
        self.ranges.iter_mut().for_each(|range| range.hashes.clear());
    }

    /// How many hashes are pending.
    #[cfg(test)]
    pub(in crate::sqlite) fn len(&self) -> usize {
        self.ranges.iter().map(|range| range.hashes.len()).sum()
    }
}

fn outermost_marks(ranges: &[Range]) -> RangeInclusive<Seq> {
    let marks = || ranges.iter().map(|range| range.flushed_to);
    marks().min().unwrap_or(Seq(0))..=marks().max().unwrap_or(Seq(0))
}

/// After how many events how many ranges are flushed, neither of them none or too many.
fn bounded(when: IdentityFlush) -> (u64, u64) {
    (u64::from(when.events.max(1)), u64::from(when.ranges).clamp(1, RANGES as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Like one that comes of a keyed hash: in no order.
    fn hash(seq: u64) -> IdentityHash {
        let mixed = u128::from(seq).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        IdentityHash(
            (mixed ^ (mixed >> 61)).wrapping_mul(0xBF58_476D_1CE4_E5B9_94D0_49BB_1331_11EB).to_be_bytes(),
        )
    }

    fn empty(events: u32, ranges: u16) -> Pending {
        Pending::new(&[Seq(0); RANGES], IdentityFlush { events, ranges }, IdentityFilter::default())
    }

    /// Commits a batch of events; the ranges that it flushed.
    fn commit(pending: &mut Pending, first: u64, events: u64, hash: fn(u64) -> IdentityHash) -> Vec<u8> {
        let hashes = (first..first + events).map(|seq| (hash(seq), Seq(seq))).collect();
        let flushed_to = Seq(first + events - 1);
        let flushed = pending.due(flushed_to);
        let taken = Taken { hashes, flushed: flushed.clone(), flushed_to, read: Vec::new() };
        let foreseen = pending.foresee(taken);
        pending.join(foreseen);
        flushed
    }

    #[test]
    fn a_range_is_flushed_every_so_many_events_and_each_in_its_turn() {
        let mut pending = empty(10, 1);
        let flushed: Vec<Vec<u8>> = (1..=2_570).map(|seq| commit(&mut pending, seq, 1, hash)).collect();
        let ranges: Vec<u8> = flushed.concat();
        assert!(ranges.into_iter().eq((0..=u8::MAX).chain([0])));
        assert!((1..).zip(&flushed).all(|(seq, ranges)| ranges.len() == usize::from(seq % 10 == 0)));
    }

    #[test]
    fn a_large_batch_flushes_as_much_as_many_small_ones() {
        let mut pending = empty(10, 2);
        assert_eq!(commit(&mut pending, 1, 35, hash), [0, 1, 2, 3, 4, 5]);
        assert_eq!(commit(&mut pending, 36, 4, hash), [] as [u8; 0]);
        assert_eq!(commit(&mut pending, 40, 1, hash), [6, 7]);
        assert_eq!(commit(&mut pending, 41, 100_000, hash).len(), RANGES);
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn no_more_is_pending_than_the_maximum_whatever_hashes_and_batches_are_like() {
        let one_range: fn(u64) -> IdentityHash = |seq| IdentityHash(u128::from(seq).to_be_bytes());
        for (events, ranges) in [(7, 16), (1, 1), (20, 256), (0, 0), (5, 999)] {
            for hash in [hash, one_range] {
                let mut pending = empty(events, ranges);
                let (mut newest, mut most) = (0, 0);
                for size in (1..40).chain([300]).cycle().take(400) {
                    commit(&mut pending, newest + 1, size, hash);
                    newest += size;
                    most = most.max(pending.len() as u64);
                }
                let max = pending_max(pending.when);
                assert!(most <= max, "{most} of {max} with {events} events and {ranges} ranges");
            }
        }
    }

    #[test]
    fn what_a_longer_interval_left_is_flushed_at_the_next_commit() {
        let mut pending = empty(1_000, 1);
        commit(&mut pending, 1, 999, hash);
        assert_eq!(pending.len(), 999);
        pending.when = IdentityFlush { events: 1, ranges: 256 };
        assert_eq!(commit(&mut pending, 1_000, 1, hash).len(), RANGES);
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn a_hash_is_found_until_it_is_flushed() {
        let mut pending = empty(3, 256);
        for seq in 1..=2 {
            commit(&mut pending, seq, 1, hash);
        }
        assert_eq!([1, 2, 3].map(|seq| pending.holder(hash(seq))), [Some(Seq(1)), Some(Seq(2)), None]);
        assert_eq!(pending.oldest_mark(&[], Seq(2)), Seq(0));
        commit(&mut pending, 3, 1, hash);
        assert_eq!([1, 2, 3].map(|seq| pending.holder(hash(seq))), [None; 3]);
        assert_eq!(pending.oldest_mark(&[], Seq(3)), Seq(3));
    }

    #[test]
    fn no_room_is_asked_for_where_nothing_is_due() {
        let mut pending = empty(300, 256);
        commit(&mut pending, 1, 290, hash);
        assert_eq!(pending.pages_due(Seq(299), 9), 0);
        let needed = pending.pages_due(Seq(300), 10);
        assert!((256..=300).contains(&needed), "{needed}");
    }
}
