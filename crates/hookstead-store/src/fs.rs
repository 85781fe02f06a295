//! Every file call that a store makes outside its database engine, as one narrow trait, so that a simulated
//! disk can be put below. It knows nothing of databases or records.
//!
//! What is durable when: a file's bytes after [`FsFile::sync`] returned `Ok`; an entry of a directory (made,
//! linked, renamed, removed) after [`Fs::sync_dir`] of that directory returned `Ok`; both after
//! [`FsVolume::sync`]. Nothing else is. After any of them failed once, a later success proves nothing: the
//! caller must stop writing.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

/// A disk. All methods may be called from any thread.
pub trait Fs: fmt::Debug + Send + Sync {
    /// Makes one directory that only its owner may enter (mode 0700). Its parent must exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a new, empty file (mode 0600) for reading and writing; an error of the kind
    /// [`io::ErrorKind::AlreadyExists`] if the name is taken.
    fn create_new(&self, file: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Opens a file for reading and writing, made empty (mode 0600) if it was not there.
    fn open_or_create(&self, file: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Opens a file for reading.
    fn open_read(&self, file: &Path) -> io::Result<Box<dyn FsFile>>;

    /// What a path names now, links followed; `None` if nothing is there.
    fn facts(&self, path: &Path) -> io::Result<Option<FileFacts>>;

    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Gives a file another name in one step. What had that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name; [`io::ErrorKind::AlreadyExists`] if the name is taken. Never replaces.
    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Takes a name away from a file.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a file's bytes durable and drops them from the page cache, so that the next read shows what
    /// the disk has and not what a failed write left in memory.
    fn evict(&self, file: &Path) -> io::Result<()>;

    /// How many bytes are free for this process where a directory lies.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// What kind of file system a directory lies on.
    fn file_system(&self, dir: &Path) -> io::Result<FileSystem>;

    /// The file system that a directory lies on, to be synced as a whole. `None` where no such sync reports
    /// the errors of what it was to write.
    fn volume(&self, dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>>;
}

/// A file system that can be synced as a whole: many new files cost one sync instead of one each.
pub trait FsVolume: fmt::Debug + Send + Sync {
    /// Makes everything on the file system durable that was written before the call, bytes and entries, also
    /// what others wrote. It reports every error of a write since this handle was opened or last synced, so
    /// the handle must be older than what is to be synced.
    fn sync(&self) -> io::Result<()>;
}

/// An open file. Reads and writes name their place: there is no position to share.
pub trait FsFile: fmt::Debug + Send + Sync {
    /// Reads from `offset`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes bytes and length durable.
    fn sync(&self) -> io::Result<()>;

    /// What the open file is, whatever its name is now.
    fn facts(&self) -> io::Result<FileFacts>;

    /// Takes a lock that ends with the process, or when the file is closed. It does not wait.
    fn try_lock(&self, kind: LockKind) -> io::Result<LockOutcome>;
}

/// What a path or an open file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The device that it lies on.
    pub device: u64,
    /// Its number on the device: two names with one number are one file.
    pub inode: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

impl FileFacts {
    /// Whether both are the same file, whatever its length.
    pub fn same_file(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// Whom a lock keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Everybody else.
    Exclusive,
    /// Those who want it exclusively.
    Shared,
}

/// What became of a try to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// It is ours.
    Taken,
    /// Somebody else has it.
    Held,
}

/// What a file system promises, as far as a store cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// On a disk of this machine, or of a kind that is not known to be anything else.
    Local,
    /// Made for a container or held in memory: works, and may be gone with the container or the power.
    Volatile(&'static str),
    /// On another machine: locks and syncs do not mean what a store needs.
    Network(&'static str),
}
