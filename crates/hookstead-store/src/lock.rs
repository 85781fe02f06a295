//! One owner a store: a lock file beside the data, locked by the kernel for as long as its owner lives, with
//! a record in it that tells others who that is and how to reach it.
//!
//! The kernel's lock alone decides; the record is for people and for the command line. After a `kill -9` the
//! record is still there and the lock is gone, so the next owner starts. It knows nothing of databases.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookstead_core::Timestamp;

use crate::fs::{Fs, FsFile, LockKind, LockOutcome};

/// The longest record that is read: whatever is longer is not ours.
const RECORD_BYTES_MAX: usize = 4 * 1024;

/// How often a held lock is tried again before its holder counts as alive. [`owner_record`] holds a lock
/// for as long as it takes to read a page, and must not keep a starting server out.
const TRIES_MAX: u32 = 20;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// Who has a store open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRecord {
    /// The process.
    pub pid: u32,
    /// When it opened the store.
    pub started_at: Timestamp,
    /// Where it listens, by the listener's name; empty until it says so.
    pub addresses: Vec<(String, String)>,
}

impl OwnerRecord {
    /// The address of a listener.
    pub fn address(&self, listener: &str) -> Option<&str> {
        self.addresses.iter().find(|(name, _)| name == listener).map(|(_, address)| address.as_str())
    }

    pub(crate) fn to_text(&self) -> String {
        let head = format!("pid = {}\nstarted_at_us = {}\n", self.pid, self.started_at.as_micros());
        self.addresses.iter().fold(head, |text, (name, address)| text + &format!("{name} = {address}\n"))
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
        let pid = lines.next().filter(|(name, _)| *name == "pid")?.1.parse().ok()?;
        let started_at = lines.next().filter(|(name, _)| *name == "started_at_us")?.1.parse().ok()?;
        let addresses = lines.map(|(name, address)| (name.to_owned(), address.to_owned())).collect();
        Some(Self { pid, started_at: Timestamp::from_micros(started_at), addresses })
    }
}

impl fmt::Display for OwnerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}, since {}", self.pid, self.started_at)?;
        self.addresses.iter().try_for_each(|(name, address)| write!(f, ", {name} {address}"))
    }
}

/// Why a lock could not be taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process has it.
    Held(Option<OwnerRecord>),
    /// The lock file cannot be used.
    Io(io::Error),
}

/// The lock of an open store. It is let go when the store is closed or dropped.
#[derive(Debug)]
pub struct StoreLock {
    path: PathBuf,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    file: Box<dyn FsFile>,
    record: OwnerRecord,
}

impl StoreLock {
    /// Takes the lock and writes down who has it.
    pub(crate) fn acquire(fs: &dyn Fs, path: PathBuf, now: Timestamp) -> Result<Arc<Self>, LockError> {
        let file = fs.open_or_create(&path).map_err(LockError::Io)?;
        take(file.as_ref())?;
        let record = OwnerRecord { pid: std::process::id(), started_at: now, addresses: Vec::new() };
        write_record(file.as_ref(), &record).map_err(LockError::Io)?;
        Ok(Arc::new(Self { path, held: Mutex::new(Some(Held { file, record })) }))
    }

    /// Writes down where the owner listens, in place of what was written before. Does nothing once the
    /// store is closed. An error leaves the lock as it is.
    pub fn set_addresses(&self, addresses: Vec<(String, String)>) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = held.as_mut() else { return Ok(()) };
        held.record.addresses = addresses;
        write_record(held.file.as_ref(), &held.record)
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets go of the lock; the record is emptied first, so that nobody is sent to a listener that is gone.
    pub(crate) fn release(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(held) = held
            && let Err(error) = held.file.set_len(0)
        {
            tracing::warn!(path = %self.path.display(), %error, "the owner record could not be emptied");
        }
    }
}

/// Who has the lock at `path`; `None` if nobody has.
pub(crate) fn owner(fs: &dyn Fs, path: &Path) -> io::Result<Option<OwnerRecord>> {
    if fs.facts(path)?.is_none() {
        return Ok(None);
    }
    let file = fs.open_read(path)?;
    match file.try_lock(LockKind::Shared)? {
        LockOutcome::Taken => Ok(None),
        LockOutcome::Held => read_record(file.as_ref()),
    }
}

/// Who has a lock, as a look at the store sees it that holds off a start meanwhile.
pub(crate) enum Seen {
    /// Another process, as far as it said.
    Alive(Option<OwnerRecord>),
    /// Nobody has, and nobody gets it while this is kept. There is no lock file where no store was ever opened.
    Nobody { _held: Option<Box<dyn FsFile>> },
}

impl Seen {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Alive(Some(owner)) => format!("another process has the store open: {owner}"),
            Self::Alive(None) => "another process has the store open; it did not say which it is".to_owned(),
            Self::Nobody { .. } => "nobody has the store open".to_owned(),
        }
    }

    /// Whether a process has the store open of which nothing is known: it is in the way of a server, and none itself.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Alive(None))
    }

    /// Whether a process has the store open.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self, Self::Alive(_))
    }
}

/// Looks who has the lock at `path`, and holds it if nobody has, shared with others that look. An error is what a start
/// would run into as well. The file is not made.
pub(crate) fn look(fs: &dyn Fs, path: &Path) -> io::Result<Seen> {
    if fs.facts(path)?.is_none() {
        return Ok(Seen::Nobody { _held: None });
    }
    let file = fs.open_or_create(path)?;
    match file.try_lock(LockKind::Shared)? {
        LockOutcome::Taken => Ok(Seen::Nobody { _held: Some(file) }),
        LockOutcome::Held => Ok(Seen::Alive(read_record(file.as_ref())?)),
    }
}

/// The lock file of a database.
pub(crate) fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn take(file: &dyn FsFile) -> Result<(), LockError> {
    for _ in 0..TRIES_MAX {
        if file.try_lock(LockKind::Exclusive).map_err(LockError::Io)? == LockOutcome::Taken {
            return Ok(());
        }
        std::thread::sleep(TRY_AGAIN_AFTER);
    }
    Err(LockError::Held(read_record(file).map_err(LockError::Io)?))
}

fn read_record(file: &dyn FsFile) -> io::Result<Option<OwnerRecord>> {
    let mut bytes = [0; RECORD_BYTES_MAX];
    let count = file.read_at(&mut bytes, 0)?;
    Ok(std::str::from_utf8(&bytes[..count]).ok().and_then(OwnerRecord::from_text))
}

/// The new text goes over the old one before the rest is cut, so that a reader never finds nothing.
fn write_record(file: &dyn FsFile, record: &OwnerRecord) -> io::Result<()> {
    let text = record.to_text();
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_os::OsFs;

    const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

    #[test]
    fn records_round_trip_as_text() {
        let record = OwnerRecord {
            pid: 4711,
            started_at: NOW,
            addresses: vec![("intake".into(), "127.0.0.1:4665".into())],
        };
        assert_eq!(OwnerRecord::from_text(&record.to_text()), Some(record.clone()));
        assert_eq!(record.address("intake"), Some("127.0.0.1:4665"));
        assert_eq!(record.address("admin"), None);
        assert_eq!(record.to_string(), "pid 4711, since 2026-02-02T02:40:00Z, intake 127.0.0.1:4665");
        for bad in ["", "pid = x\n", "pid = 1\n", "started_at_us = 1\npid = 2\n"] {
            assert_eq!(OwnerRecord::from_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_second_owner_is_told_who_the_first_is_and_starts_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = lock_path(&dir.path().join("a.db"));
        assert_eq!(owner(&OsFs, &path).unwrap(), None);
        let first = StoreLock::acquire(&OsFs, path.clone(), NOW).unwrap();
        first.set_addresses(vec![("admin".into(), "127.0.0.1:4666".into())]).unwrap();
        let Err(LockError::Held(Some(record))) = StoreLock::acquire(&OsFs, path.clone(), NOW) else {
            panic!("a held lock was given out");
        };
        assert_eq!((record.pid, record.address("admin")), (std::process::id(), Some("127.0.0.1:4666")));
        assert_eq!(owner(&OsFs, &path).unwrap(), Some(record));
        first.release();
        assert_eq!(owner(&OsFs, &path).unwrap(), None);
        first.set_addresses(vec![("admin".into(), "127.0.0.1:1".into())]).unwrap();
        let second = StoreLock::acquire(&OsFs, path.clone(), NOW).unwrap();
        assert_eq!(owner(&OsFs, &path).unwrap().unwrap().addresses, []);
        second.release();
    }

    #[test]
    fn a_stale_record_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db.lock");
        std::fs::write(&path, "pid = 1\nstarted_at_us = 5\nadmin = 127.0.0.1:4666\nand = more\n").unwrap();
        assert_eq!(owner(&OsFs, &path).unwrap(), None);
        let lock = StoreLock::acquire(&OsFs, path.clone(), NOW).unwrap();
        let record = owner(&OsFs, &path).unwrap().unwrap();
        assert_eq!((record.pid, record.started_at, record.addresses.len()), (std::process::id(), NOW, 0));
        lock.release();
    }
}
