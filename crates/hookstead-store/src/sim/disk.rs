//! The disk as tests hold it: what is on it, what is to go wrong, and the pulling of the plug.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::SimFile;
use super::folder::{Inode, SimFolder};
use super::random::Random;
use crate::fs::FileSystem;

/// The number of the root folder.
pub(super) const ROOT: Inode = 1;

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An input or output error. A write may have written a part; a sync has lost what it was to write.
    Io,
    /// No space is left. A write may have written a part.
    NoSpace,
    /// The plug is pulled in the middle of the operation: it and all later ones fail, and of its effect any
    /// part may be on the disk.
    PowerCut,
}

/// Which operations go wrong. Only those that change something count: making, writing, cutting, linking,
/// renaming, removing, syncing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The one with this number, from 0, counted from now on.
    Once(u64),
    /// That one and all after it.
    From(u64),
}

/// Whether a file system makes hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It does.
    Made,
    /// It answers that this is not permitted, as FAT does.
    Refused,
}

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(pub(super) Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) files: BTreeMap<Inode, SimFile>,
    pub(super) folders: BTreeMap<Inode, SimFolder>,
    pub(super) locks: BTreeSet<Inode>,
    next_inode: Inode,
    operations: u64,
    fault: Option<(Fault, When)>,
    pub(super) system: FileSystem,
    pub(super) links: Links,
    off: bool,
    random: Random,
}

impl SimDisk {
    /// An empty disk. What is torn and lost on it follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let folders = BTreeMap::from([(ROOT, SimFolder::default())]);
        Self::from_parts(BTreeMap::new(), folders, ROOT + 1, seed)
    }

    fn from_parts(
        files: BTreeMap<Inode, SimFile>,
        folders: BTreeMap<Inode, SimFolder>,
        next_inode: Inode,
        seed: u64,
    ) -> Self {
        let random = Random::new(seed);
        let state = State {
            files,
            folders,
            locks: BTreeSet::new(),
            next_inode,
            operations: 0,
            fault: None,
            system: FileSystem::Local,
            links: Links::Made,
            off: false,
            random,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Has operations go wrong from now on; in place of what was to go wrong before.
    pub fn fail(&self, fault: Fault, when: When) {
        let mut state = self.state();
        let from = state.operations;
        let when = match when {
            When::Once(number) => When::Once(from + number),
            When::From(number) => When::From(from + number),
        };
        state.fault = Some((fault, when));
    }

    /// Nothing goes wrong from now on. A disk whose plug was pulled stays off.
    pub fn heal(&self) {
        self.state().fault = None;
    }

    /// What kind of file system the disk says it is from now on, and whether it makes hard links. A power cut
    /// leaves a local one that does.
    pub fn pose_as(&self, system: FileSystem, links: Links) {
        let mut state = self.state();
        state.system = system;
        state.links = links;
    }

    /// How many operations there were that change something.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Pulls the plug. What a new machine finds on the disk is the disk that is returned; the old one is off:
    /// everything on it fails.
    #[must_use]
    pub fn power_cut(&self, seed: u64) -> Self {
        let mut state = self.state();
        state.off = true;
        let mut random = Random::new(seed);
        let files =
            state.files.iter().map(|(inode, file)| (*inode, file.after_power_cut(&mut random))).collect();
        let folders =
            state.folders.iter().map(|(inode, folder)| (*inode, folder.after_power_cut(&mut random)));
        Self::from_parts(files, folders.collect(), state.next_inode, seed ^ 0x5bd1_e995)
    }

    /// A panic in a test must not hide behind another.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn new_inode(&mut self) -> Inode {
        let inode = self.next_inode;
        self.next_inode += 1;
        inode
    }

    /// Counts an operation that changes something; says how it is to go wrong.
    pub(super) fn operation(&mut self) -> Option<Fault> {
        let number = self.operations;
        self.operations += 1;
        if self.off {
            return Some(Fault::Io);
        }
        let (fault, when) = self.fault?;
        let hit = match when {
            When::Once(at) => number == at,
            When::From(from) => number >= from,
        };
        hit.then_some(fault)
    }

    /// An error if the disk is off.
    pub(super) fn check_power(&self) -> io::Result<()> {
        if self.off { Err(io_error()) } else { Ok(()) }
    }

    /// An operation that is all or nothing: it goes well, or does not happen, or, when the plug is pulled,
    /// one of the two.
    pub(super) fn whole(&mut self) -> io::Result<bool> {
        match self.operation() {
            None => Ok(true),
            Some(Fault::Io) => Err(io_error()),
            Some(Fault::NoSpace) => Err(no_space()),
            Some(Fault::PowerCut) => {
                self.off = true;
                Ok(self.random.one_in(2))
            }
        }
    }

    /// The error of an operation that [`State::whole`] let happen while the plug was pulled.
    pub(super) fn done(&self) -> io::Result<()> {
        self.check_power()
    }

    /// How much of `bytes` is written, and the error if that is not all.
    pub(super) fn part(&mut self, bytes: usize) -> (usize, io::Result<()>) {
        match self.operation() {
            None => (bytes, Ok(())),
            Some(fault) => {
                let written = self.random.below(bytes + 1);
                (written, Err(self.error(fault)))
            }
        }
    }

    /// Whether a sync goes well.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.operation().map_or(Ok(()), |fault| Err(self.error(fault)))
    }

    pub(super) fn random(&mut self) -> Random {
        Random::new(self.random.next())
    }

    fn error(&mut self, fault: Fault) -> io::Error {
        match fault {
            Fault::Io => io_error(),
            Fault::NoSpace => no_space(),
            Fault::PowerCut => {
                self.off = true;
                io_error()
            }
        }
    }
}

fn io_error() -> io::Error {
    rustix::io::Errno::IO.into()
}

fn no_space() -> io::Error {
    rustix::io::Errno::NOSPC.into()
}
