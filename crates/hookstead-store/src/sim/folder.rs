//! A folder of the simulated disk: the names that programs see, and those that a power cut would leave.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::random::Random;

/// The number of a file or folder.
pub(super) type Inode = u64;

/// Names and what they stand for.
pub(super) type Names = BTreeMap<OsString, Inode>;

/// A change that was not synced.
#[derive(Clone, Debug)]
enum Change {
    Add(OsString, Inode),
    Remove(OsString),
    Rename(OsString, OsString),
}

/// A folder's names.
#[derive(Clone, Debug, Default)]
pub(super) struct SimFolder {
    cached: Names,
    durable: Names,
    unsynced: Vec<Change>,
    /// Changes that a sync failed to write, and that the next change of the folder has written again, since
    /// they share its blocks.
    failed: Vec<Change>,
}

impl SimFolder {
    /// What programs see.
    pub(super) fn cached(&self) -> &Names {
        &self.cached
    }

    pub(super) fn add(&mut self, name: OsString, inode: Inode) {
        self.change(Change::Add(name, inode));
    }

    pub(super) fn remove(&mut self, name: OsString) {
        self.change(Change::Remove(name));
    }

    pub(super) fn rename(&mut self, from: OsString, to: OsString) {
        self.change(Change::Rename(from, to));
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.cached, &change);
        self.unsynced.append(&mut self.failed);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// A sync that fails: a second one has nothing to do and succeeds.
    pub(super) fn fail_sync(&mut self) {
        self.failed.append(&mut self.unsynced);
    }

    /// A folder as it is after a power cut: each unsynced change happened or did not.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> Self {
        let mut names = self.durable.clone();
        let all = random.one_in(4);
        for change in self.failed.iter().chain(&self.unsynced) {
            if all || random.one_in(2) {
                apply(&mut names, change);
            }
        }
        Self { cached: names.clone(), durable: names, ..Self::default() }
    }
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Add(name, inode) => drop(names.insert(name.clone(), *inode)),
        Change::Remove(name) => drop(names.remove(name)),
        Change::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_sync_after_a_failed_one_proves_nothing() {
        let mut folder = SimFolder::default();
        folder.add("a".into(), 1);
        folder.fail_sync();
        folder.sync();
        assert!(folder.cached().contains_key(&OsString::from("a")));
        let left = |folder: &SimFolder, seed| folder.after_power_cut(&mut Random::new(seed)).cached().len();
        assert!((0..16).any(|seed| left(&folder, seed) == 0));
        folder.add("b".into(), 2);
        folder.sync();
        assert!((0..16).all(|seed| left(&folder, seed) == 2));
    }
}
