//! Whether a hash may be in the table of the index, answered from memory: nearly every identity that comes is new, and
//! then the table need not be searched. It knows no SQL.
//!
//! **A hash that is in the table is never answered with no**: the promise that an event is stored once rests on it. So
//! every hash that a commit moves into the table is added before that commit, and a range of which not everything was
//! read yet answers that it may hold anything. Bits too many, which a commit that fails leaves, only cost a search.
//!
//! Each range has a filter of its own, made of blocks of 512 bits. What is in the table already is read for it in bounded
//! parts, one range after the other. A filter that has taken what it was made for is made anew in the same way, larger;
//! until that is through, the old one is used.

use hookstead_core::IdentityHash;

use super::pending::{RANGES, range_of};
use crate::open::IdentityFilter;

/// 512 bits, a line of the processor's cache: to look a hash up costs one miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Block([u64; 8]);

/// Of a filter: about 12 bits a hash, with which 4 of 1,000 unknown hashes are taken for known ones.
const HASHES_PER_BLOCK: u64 = 42;

/// A filter that may not become larger is used until it has so many: 8 bits a hash, with which 25 of 1,000 are.
const HASHES_PER_BLOCK_MAX: u64 = 64;

/// A kilobyte: a store needs no larger filters up to 172,000 identities.
const BLOCKS_MIN: usize = 16;

/// A filter is made for so many times the hashes that are there: then the rows that are read for larger and larger
/// filters are a third of the events that make them needed.
const GROWTH: u64 = 4;

/// How many bits of its block a hash sets, with nine bits of its own for each.
const BITS_PER_HASH: u32 = 6;

/// The filters of all ranges.
#[derive(Debug)]
pub(super) struct Filters {
    ranges: Vec<State>,
    building: Option<Building>,
    rows_max: usize,
    blocks_max: usize,
    /// How many hashes a range is thought to hold of which nothing was read yet.
    hashes_expected: u64,
}

#[derive(Debug)]
enum State {
    /// Not everything that the table holds of the range was read.
    Unread,
    /// All of it is in the filter.
    Complete(Filter),
    /// More than a filter may hold.
    TooMany,
}

/// A filter of which the rest is still to be read.
#[derive(Debug)]
struct Building {
    range: u8,
    filter: Filter,
    /// What the table holds of the range up to here is in the filter.
    read_to: IdentityHash,
}

#[derive(Debug)]
struct Filter {
    blocks: Box<[Block]>,
    /// How many were added; some of them twice.
    hashes: u64,
}

/// What the table holds of a range, from a hash on.
#[derive(Debug)]
pub(super) struct Part {
    range: u8,
    after: Option<IdentityHash>,
    hashes: Vec<IdentityHash>,
    /// There are no others behind them.
    is_last: bool,
}

impl Filters {
    /// Nothing is known of the table, which has about so many rows.
    pub(super) fn new(limits: IdentityFilter, rows: u64) -> Self {
        let blocks_max =
            usize::try_from(limits.bytes_max).unwrap_or(usize::MAX) / RANGES / size_of::<Block>();
        let mut filters = Self {
            ranges: Vec::new(),
            building: None,
            rows_max: usize::try_from(limits.rows_per_commit).unwrap_or(usize::MAX).max(1),
            blocks_max,
            hashes_expected: rows / RANGES as u64,
        };
        let are_too_many = filters.are_too_many(filters.hashes_expected.max(1));
        let state = || if are_too_many { State::TooMany } else { State::Unread };
        filters.ranges.resize_with(RANGES, state);
        filters
    }

    /// Whether the table may hold a hash. `false`: it does not.
    pub(super) fn may_hold(&self, hash: IdentityHash) -> bool {
        match &self.ranges[usize::from(range_of(hash))] {
            State::Complete(filter) => filter.may_hold(hash),
            State::Unread | State::TooMany => true,
        }
    }

    /// Adds a hash that the running transaction moves into the table. It must not be committed before.
    pub(super) fn add(&mut self, hash: IdentityHash) {
        let range = range_of(hash);
        let mut most = 0;
        if let State::Complete(filter) = &mut self.ranges[usize::from(range)] {
            most = filter.add(hash);
        }
        // Also one that is yet to be read: a row before the place that the reading has reached is not met again.
        if let Some(building) = self.building.as_mut().filter(|building| building.range == range) {
            most = most.max(building.filter.add(hash));
        }
        if self.are_too_many(most) {
            self.give_up(range);
        }
    }

    /// Reads the next parts of the table for the filters that are missing or full, of no more rows than a commit may
    /// read. `rows(range, after, max)` is what the running transaction sees of a range, sorted, behind a hash.
    pub(super) fn read<E>(
        &self,
        mut rows: impl FnMut(u8, Option<IdentityHash>, usize) -> Result<Vec<IdentityHash>, E>,
    ) -> Result<Vec<Part>, E> {
        let (mut parts, mut left) = (Vec::new(), self.rows_max);
        for (range, after) in self.wanted() {
            let hashes = rows(range, after, left)?;
            let is_last = hashes.len() < left;
            left = left.saturating_sub(hashes.len());
            parts.push(Part { range, after, hashes, is_last });
            if !is_last {
                break;
            }
        }
        Ok(parts)
    }

    /// Takes in what was read.
    pub(super) fn join(&mut self, part: Part) {
        let Part { range, after, hashes, is_last } = part;
        let begun = self.building.take();
        let mut filter = match (begun, after) {
            (None, None) => self.next_of(range),
            (Some(begun), Some(after)) if (begun.range, begun.read_to) == (range, after) => begun.filter,
            // Something before it is missing: the range is begun anew.
            _ => return,
        };
        for hash in &hashes {
            filter.add(*hash);
        }
        if self.are_too_many(filter.hashes) {
            self.give_up(range);
        } else if is_last {
            self.ranges[usize::from(range)] = State::Complete(filter);
        } else if let Some(read_to) = hashes.last().copied() {
            self.building = Some(Building { range, filter, read_to });
        }
    }

    /// The ranges that are to be read, and behind which hash; first the one that is begun.
    fn wanted(&self) -> impl Iterator<Item = (u8, Option<IdentityHash>)> {
        let begun = self.building.as_ref().map(|building| (building.range, Some(building.read_to)));
        let others = (0..=u8::MAX).filter(move |range| begun.is_none_or(|(begun, _)| begun != *range));
        let others = others.filter(|range| match &self.ranges[usize::from(*range)] {
            State::Unread => true,
            State::Complete(filter) => self.is_full(filter),
            State::TooMany => false,
        });
        begun.into_iter().chain(others.map(|range| (range, None)))
    }

    /// An empty filter for a range that is to be read from its beginning.
    fn next_of(&self, range: u8) -> Filter {
        let hashes = match &self.ranges[usize::from(range)] {
            State::Complete(full) => full.hashes,
            State::Unread | State::TooMany => self.hashes_expected,
        };
        let blocks = hashes.saturating_mul(GROWTH).div_ceil(HASHES_PER_BLOCK);
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX).max(BLOCKS_MIN).min(self.blocks_max);
        Filter { blocks: vec![Block([0; 8]); blocks].into_boxed_slice(), hashes: 0 }
    }

    fn is_full(&self, filter: &Filter) -> bool {
        let blocks = filter.blocks.len();
        filter.hashes > blocks as u64 * HASHES_PER_BLOCK && blocks < self.blocks_max
    }

    fn are_too_many(&self, hashes: u64) -> bool {
        hashes > (self.blocks_max as u64).saturating_mul(HASHES_PER_BLOCK_MAX)
    }

    fn give_up(&mut self, range: u8) {
        self.ranges[usize::from(range)] = State::TooMany;
        self.building.take_if(|building| building.range == range);
    }
}

impl Filter {
    /// How many there are now.
    fn add(&mut self, hash: IdentityHash) -> u64 {
        let block = block_of(hash, self.blocks.len());
        for (word, bit) in bits_of(hash) {
            self.blocks[block].0[word] |= bit;
        }
        self.hashes += 1;
        self.hashes
    }

    fn may_hold(&self, hash: IdentityHash) -> bool {
        let block = &self.blocks[block_of(hash, self.blocks.len())];
        bits_of(hash).all(|(word, bit)| block.0[word] & bit != 0)
    }
}

/// The hash is as good as random: 64 of its bits choose the block, in the order of the hashes, so that sorted ones go
/// through the filter from its beginning to its end.
fn block_of(hash: IdentityHash, blocks: usize) -> usize {
    let [_, chooses @ .., _, _, _, _, _, _, _] = hash.0;
    let scaled = (u128::from(u64::from_be_bytes(chooses)) * blocks as u128) >> u64::BITS;
    usize::try_from(scaled).unwrap_or(0)
}

/// The last 54 bits choose the bits of the block: words of it, and a bit of each.
fn bits_of(hash: IdentityHash) -> impl Iterator<Item = (usize, u64)> {
    let [_, _, _, _, _, _, _, _, chooses @ ..] = hash.0;
    let chooses = u64::from_be_bytes(chooses);
    (0..BITS_PER_HASH).map(move |nth| {
        let bit = chooses >> (9 * nth);
        ((bit >> 6 & 7) as usize, 1 << (bit & 63))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::ops::Bound;

    use super::*;

    /// Numbers that follow from a seed, and hashes of them: in no order, like those of a key.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        }

        fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }

        fn hash(&mut self) -> IdentityHash {
            let (high, low) = (u128::from(self.next()), u128::from(self.next()));
            IdentityHash((high << 64 | low).to_be_bytes())
        }

        fn hash_in(&mut self, range: u8) -> IdentityHash {
            let mut hash = self.hash();
            hash.0[0] = range;
            hash
        }

        /// The ends of a range belong to it.
        fn hash_or_end(&mut self, range: u8) -> IdentityHash {
            let mut hash = self.hash_in(range);
            match self.below(50) {
                0 => hash.0[1..].fill(0),
                1 => hash.0[1..].fill(u8::MAX),
                _ => {}
            }
            hash
        }
    }

    fn limits(rows_per_commit: u32, blocks_of_range: usize) -> IdentityFilter {
        let bytes = blocks_of_range * size_of::<Block>() * RANGES;
        IdentityFilter { rows_per_commit, bytes_max: bytes as u64 }
    }

    /// A table, and the filters of whoever writes to it.
    struct World {
        table: BTreeSet<IdentityHash>,
        filters: Filters,
        limits: IdentityFilter,
    }

    impl World {
        fn new(limits: IdentityFilter, table: impl IntoIterator<Item = IdentityHash>) -> Self {
            let table: BTreeSet<_> = table.into_iter().collect();
            let filters = Filters::new(limits, table.len() as u64);
            Self { table, filters, limits }
        }

        /// What a transaction sees of a range.
        fn rows(&self, range: u8, after: Option<IdentityHash>, max: usize) -> Vec<IdentityHash> {
            let first = IdentityHash([&[range][..], &[0; 15]].concat().try_into().unwrap());
            let from = after.map_or(Bound::Included(first), Bound::Excluded);
            let behind = self.table.range((from, Bound::Unbounded));
            behind.copied().take_while(|hash| range_of(*hash) == range).take(max).collect()
        }

        /// Moves hashes into the table; how many rows it read.
        fn flush(&mut self, hashes: &[IdentityHash]) -> usize {
            self.table.extend(hashes);
            let Ok(parts) =
                self.filters.read(|range, after, max| Ok::<_, Infallible>(self.rows(range, after, max)));
            let rows = parts.iter().map(|part| part.hashes.len()).sum();
            parts.into_iter().for_each(|part| self.filters.join(part));
            hashes.iter().for_each(|hash| self.filters.add(*hash));
            rows
        }

        /// The same, and then it is not committed.
        fn fail(&mut self, hashes: &[IdentityHash]) {
            let before = self.table.clone();
            self.flush(hashes);
            self.table = before;
        }

        fn restart(&mut self) {
            self.filters = Filters::new(self.limits, self.table.len() as u64);
        }

        /// Flushes nothing until there is nothing more to read; how often.
        fn settle(&mut self) -> usize {
            (0..)
                .take_while(|_| self.filters.wanted().next().is_some() && self.flush(&[]) < usize::MAX)
                .count()
        }

        fn assert_forgets_nothing(&self) {
            let forgotten = self.table.iter().find(|hash| !self.filters.may_hold(**hash));
            assert_eq!(forgotten, None, "of {} with {:?}", self.table.len(), self.limits);
        }

        fn bytes(&self) -> usize {
            let of = |filter: &Filter| filter.blocks.len() * size_of::<Block>();
            let complete = self.filters.ranges.iter().map(|state| match state {
                State::Complete(filter) => of(filter),
                State::Unread | State::TooMany => 0,
            });
            complete.sum()
        }
    }

    /// Of so many unknown hashes of a range, the share that are taken for known ones, in a thousand.
    fn mistaken(world: &World, range: u8, random: &mut Random) -> usize {
        const ASKED: usize = 50_000;
        let asked = (0..ASKED).map(|_| random.hash_in(range));
        asked.filter(|hash| world.filters.may_hold(*hash)).count() * 1000 / ASKED
    }

    #[test]
    fn what_is_in_the_table_is_never_forgotten_whatever_is_flushed_fails_and_is_read() {
        for (seed, rows) in [1, 2, 7, 40, 4_096].into_iter().cycle().take(15).enumerate() {
            for blocks in [1, 3, 40] {
                let mut random = Random(seed as u64);
                let ranges = 1 + random.below(4) * 85;
                let mut hash = {
                    let mut random = Random(!(seed as u64));
                    move || {
                        let range = 255 - random.below(ranges);
                        random.hash_or_end(u8::try_from(range).unwrap())
                    }
                };
                let held: Vec<_> = (0..random.below(500)).map(|_| hash()).collect();
                let mut world = World::new(limits(rows, blocks), held);
                for _ in 0..200 {
                    let flushed: Vec<_> = (0..random.below(20)).map(|_| hash()).collect();
                    match random.below(30) {
                        0..5 => world.fail(&flushed),
                        5 => world.restart(),
                        _ => drop(world.flush(&flushed)),
                    }
                    if random.below(5) == 0 {
                        world.assert_forgets_nothing();
                    }
                }
                world.assert_forgets_nothing();
            }
        }
    }

    #[test]
    fn of_an_empty_table_everything_is_known_at_once() {
        let mut random = Random(1);
        let mut world = World::new(IdentityFilter::default(), []);
        assert!(world.filters.may_hold(random.hash()), "nothing was read");
        let flushed: Vec<_> = (0..300).map(|_| random.hash()).collect();
        world.flush(&flushed);
        world.assert_forgets_nothing();
        assert!((0..1_000).all(|_| !world.filters.may_hold(random.hash())));
        assert_eq!(world.bytes(), RANGES * BLOCKS_MIN * size_of::<Block>());
    }

    #[test]
    fn a_commit_reads_no_more_rows_than_it_may_and_all_are_read_in_the_end() {
        let mut random = Random(2);
        let held: Vec<_> = (0..10_000).map(|_| random.hash()).collect();
        let mut world = World::new(limits(300, 100), held);
        let mut read = 0;
        while world.filters.wanted().next().is_some() {
            let rows = world.flush(&[]);
            assert!((1..=300).contains(&rows) || read == 10_000, "{rows} after {read}");
            read += rows;
            world.assert_forgets_nothing();
        }
        assert_eq!(read, 10_000, "each of them once");
        assert!((0..=u8::MAX).all(|range| !world.filters.may_hold(random.hash_in(range))));
    }

    #[test]
    fn few_unknown_hashes_are_taken_for_known_ones_and_fewer_once_it_was_made_anew() {
        let mut random = Random(3);
        let mut world = World::new(limits(100, 2048), []);
        world.settle();
        for _ in 0..BLOCKS_MIN as u64 * HASHES_PER_BLOCK {
            world.flush(&[random.hash_in(9)]);
        }
        assert_eq!(world.filters.wanted().count(), 0, "it has room for all of them");
        let full = mistaken(&world, 9, &mut random);
        assert!((1..10).contains(&full), "{full} of 1,000 are mistaken at the most");
        world.flush(&[random.hash_in(9)]);
        assert_eq!(world.filters.wanted().collect::<Vec<_>>(), [(9, None)], "it is to be made anew");
        world.flush(&[]);
        assert!(mistaken(&world, 9, &mut random) < 30, "the old one is used meanwhile");
        assert!((5..10).contains(&world.settle()), "673 rows are read by the hundred");
        world.assert_forgets_nothing();
        assert_eq!(mistaken(&world, 9, &mut random), 0);
    }

    #[test]
    fn no_more_memory_is_taken_than_the_maximum_and_a_dull_filter_is_given_up() {
        let mut random = Random(4);
        let limits = limits(4_096, 20);
        let mut world = World::new(limits, []);
        // One is counted twice: the one that came with the last reading.
        for n in 1..20 * HASHES_PER_BLOCK_MAX {
            world.flush(&[random.hash_in(0)]);
            assert!(world.bytes() as u64 <= limits.bytes_max, "after {n}");
        }
        let dull = mistaken(&world, 0, &mut random);
        assert!((10..60).contains(&dull), "{dull} of 1,000 are mistaken where there are most");
        assert_eq!(world.filters.wanted().count(), 0, "it can become no larger");
        world.flush(&[random.hash_in(0)]);
        assert_eq!(mistaken(&world, 0, &mut random), 1_000, "it says nothing of this range any more");
        assert!(!world.filters.may_hold(random.hash_in(1)), "and as much as before of the others");
        world.flush(&[random.hash_in(0)]);
        world.restart();
        world.settle();
        assert_eq!(mistaken(&world, 0, &mut random), 1_000, "nor after a start");
        world.assert_forgets_nothing();
    }

    #[test]
    fn a_table_that_is_too_large_or_memory_that_is_too_small_is_not_read_for() {
        let most = 20 * HASHES_PER_BLOCK_MAX * RANGES as u64;
        for (blocks, rows, are_read) in [(20, most, true), (20, most + 256, false), (0, 0, false)] {
            let filters = Filters::new(limits(1, blocks), rows);
            assert_eq!(filters.wanted().next().is_some(), are_read, "{blocks} blocks for {rows} rows");
            assert!(filters.may_hold(IdentityHash([7; 16])));
        }
    }

    #[test]
    fn a_part_that_does_not_go_on_where_the_last_one_ended_completes_nothing() {
        let mut random = Random(5);
        let mut held: Vec<_> = (0..9).map(|_| random.hash_in(0)).collect();
        held.sort_unstable();
        let part = |from: usize, to: usize| Part {
            range: 0,
            after: from.checked_sub(1).map(|last| held[last]),
            hashes: held[from..to].to_vec(),
            is_last: to == 9,
        };
        for (parts, is_complete) in [
            (vec![part(0, 9)], true),
            (vec![part(0, 4), part(4, 9)], true),
            (vec![part(4, 9)], false),
            (vec![part(0, 3), part(4, 9)], false),
            (vec![part(0, 5), part(0, 9)], false),
        ] {
            let mut world = World::new(limits(1, 9), held.clone());
            parts.into_iter().for_each(|part| world.filters.join(part));
            assert_eq!(matches!(world.filters.ranges[0], State::Complete(_)), is_complete);
            world.assert_forgets_nothing();
        }
    }
}
