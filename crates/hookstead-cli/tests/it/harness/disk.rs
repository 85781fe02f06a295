//! The real binary on a disk that can be slowed and made to fail while it runs: a small library between the program
//! and the kernel, built here and loaded into it. Nothing in the product knows of it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

const SOURCE: &str = include_str!("disk.c");

/// The numbers that the library and this process share, each of eight bytes, in the order of `disk.c`.
const DELAY: u64 = 0;
const SLOWED: u64 = 1;
const KINDS: u64 = 2;
const ERROR: u64 = 3;
const FIRST: u64 = 4;
const LAST: u64 = 5;
const CALLS: u64 = 6;
const STRUCK: u64 = 7;

/// The kinds of calls that can be made to fail; only those that concern the folder of the store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sync = 1,
    Write = 2,
    Open = 4,
    /// Making, linking, renaming and removing.
    Name = 8,
    Read = 16,
    /// All of them that change the disk.
    Any = 15,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A write writes half of what it should, and says so.
    Half = 0,
    /// `EIO`.
    Broken = 5,
    /// `ENOSPC`.
    Full = 28,
    /// `EROFS`, as after the kernel took the file system for damaged.
    ReadOnly = 30,
    /// None: the process is killed before the call.
    Killed = -9,
}

pub(crate) struct Disk {
    folder: TempDir,
    control: File,
}

impl Disk {
    /// Builds the library. The disk is without faults.
    pub(crate) fn build() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("disk.c");
        fs::write(&source, SOURCE).expect("the source can be written");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]);
        let built = compile.arg(folder.path().join("disk.so")).arg(&source).output();
        let built = built.expect("`cc` starts; the product's build needs it too");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let control = folder.path().join("control");
        let control =
            File::options().read(true).write(true).create_new(true).open(control).expect("a new file");
        control.set_len(4096).expect("a page");
        Self { folder, control }
    }

    /// A command to which the program that is to have this disk is added as arguments; its store is in `store`.
    pub(crate) fn below(&self, store: &Path) -> Command {
        let mut env = Command::new("env");
        env.arg(format!("LD_PRELOAD={}", self.folder.path().join("disk.so").display()));
        env.arg(format!("DISK_CONTROL={}", self.folder.path().join("control").display()));
        env.arg(format!("DISK_FOLDER={}", store.display()));
        env
    }

    /// From now on every sync takes this long; one that is under way as well.
    pub(crate) fn slow_by(&self, delay: Duration) {
        self.set(DELAY, i64::try_from(delay.as_micros()).expect("a delay in microseconds"));
    }

    /// How many syncs were slowed.
    pub(crate) fn slowed(&self) -> i64 {
        self.number(SLOWED)
    }

    /// Of the calls of this kind from now on, those from the `first` to the `last` one fail.
    pub(crate) fn fail(&self, kind: Kind, fault: Fault, first: i64, last: i64) {
        self.heal();
        for (place, number) in [(ERROR, fault as i64), (FIRST, first), (LAST, last), (CALLS, 0), (STRUCK, 0)]
        {
            self.set(place, number);
        }
        self.set(KINDS, kind as i64);
    }

    /// Nothing fails any more.
    pub(crate) fn heal(&self) {
        self.set(KINDS, 0);
    }

    /// How many calls have failed since [`Disk::fail`].
    pub(crate) fn struck(&self) -> i64 {
        self.number(STRUCK)
    }

    fn set(&self, place: u64, number: i64) {
        self.control.write_all_at(&number.to_ne_bytes(), 8 * place).expect("the page can be written");
    }

    fn number(&self, place: u64) -> i64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, 8 * place).expect("the page can be read");
        i64::from_ne_bytes(bytes)
    }
}
