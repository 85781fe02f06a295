//! A file of the simulated disk: what programs read, and what a power cut would leave of it.

use super::random::Random;

/// The unit in which a disk writes: a write is torn between two of these, never within one.
const SECTOR_BYTES: usize = 512;

/// A change that was not synced.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A file's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct SimFile {
    cached: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

impl SimFile {
    /// What programs read.
    pub(super) fn cached(&self) -> &[u8] {
        &self.cached
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let change = Change::Write { at, bytes: bytes.to_vec() };
        apply(&mut self.cached, &change);
        self.unsynced.push(change);
    }

    pub(super) fn set_len(&mut self, len: usize) {
        apply(&mut self.cached, &Change::SetLen(len));
        self.unsynced.push(Change::SetLen(len));
    }

    /// A sync that succeeds: what was written since the last sync, failed or not, is on the disk.
    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// A sync that fails: some of what was to be written is on the disk, and nothing will be written again,
    /// since the cache counts as clean.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        self.durable = self.survivor(random);
        self.unsynced.clear();
    }

    /// Forgets the cache: programs read what the disk has.
    pub(super) fn evict(&mut self) {
        self.cached.clone_from(&self.durable);
    }

    /// What a power cut leaves: each unsynced change wholly, in part, or not at all.
    pub(super) fn survivor(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.unsynced {
            match change {
                Change::SetLen(_) if random.one_in(2) => apply(&mut bytes, change),
                Change::SetLen(_) => {}
                Change::Write { at, bytes: written } => tear(&mut bytes, *at, written, random),
            }
        }
        bytes
    }

    /// A file as it is after a power cut.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> Self {
        let bytes = self.survivor(random);
        Self { cached: bytes.clone(), durable: bytes, unsynced: Vec::new() }
    }
}

/// Writes some of the sectors: all, none, those up to a place, or each as it comes.
fn tear(file: &mut Vec<u8>, at: usize, written: &[u8], random: &mut Random) {
    let sectors = written.chunks(SECTOR_BYTES).enumerate();
    let count = written.len().div_ceil(SECTOR_BYTES).max(1);
    let kept: Vec<bool> = match random.below(4) {
        0 => vec![true; count],
        1 => vec![false; count],
        2 => {
            let end = random.below(count + 1);
            (0..count).map(|sector| sector < end).collect()
        }
        _ => (0..count).map(|_| random.one_in(2)).collect(),
    };
    for (sector, bytes) in sectors {
        if kept[sector] {
            write(file, at + sector * SECTOR_BYTES, bytes);
        }
    }
}

fn apply(file: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes } => write(file, *at, bytes),
        Change::SetLen(len) => file.resize(*len, 0),
    }
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_what_was_not_may() {
        let mut file = SimFile::default();
        file.write(0, b"synced");
        file.sync();
        file.write(6, b", and not");
        let survivors: Vec<_> = (0..64).map(|seed| file.survivor(&mut Random::new(seed))).collect();
        assert!(survivors.iter().all(|bytes| bytes.starts_with(b"synced")));
        assert!(survivors.iter().any(|bytes| bytes == b"synced"));
        assert!(survivors.iter().any(|bytes| bytes == b"synced, and not"));
        assert_eq!(file.cached(), b"synced, and not");
    }

    #[test]
    fn long_writes_are_torn_between_sectors() {
        let mut file = SimFile::default();
        file.write(0, &[7; 4 * SECTOR_BYTES]);
        let mut torn = 0;
        for seed in 0..64 {
            let bytes = file.survivor(&mut Random::new(seed));
            assert_eq!(bytes.len() % SECTOR_BYTES, 0);
            torn += usize::from(bytes.contains(&0) || (!bytes.is_empty() && bytes.len() < 4 * SECTOR_BYTES));
        }
        assert!(torn > 10, "{torn}");
    }

    #[test]
    fn a_later_sync_does_not_bring_back_what_a_failed_one_lost() {
        let lost = (0..16).any(|seed| {
            let mut file = SimFile::default();
            file.write(0, b"lost?");
            file.fail_sync(&mut Random::new(seed));
            file.sync();
            assert_eq!(file.cached(), b"lost?");
            file.evict();
            file.cached() != b"lost?"
        });
        assert!(lost);
    }
}
