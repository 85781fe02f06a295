//! The operating system's disk behind [`Fs`].

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fs::{FileFacts, FileSystem, Fs, FsFile, FsVolume, LockKind, LockOutcome};

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFs;

#[derive(Debug)]
struct OsFile {
    file: File,
    is_locked: AtomicBool,
}

/// A process that this one is just starting has every open file for a moment, and with it what the file has locked: closing
/// it here would not be enough.
impl Drop for OsFile {
    fn drop(&mut self) {
        if *self.is_locked.get_mut()
            && let Err(error) = self.file.unlock()
        {
            tracing::warn!(%error, "a lock could not be let go before its file is closed");
        }
    }
}

impl Fs for OsFs {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(dir)
    }

    fn create_new(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        boxed(writable().create_new(true).open(file))
    }

    fn open_or_create(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        boxed(writable().create(true).open(file))
    }

    fn open_read(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        boxed(File::open(file))
    }

    fn facts(&self, path: &Path) -> io::Result<Option<FileFacts>> {
        match facts_of_path(path) {
            Ok(facts) => Ok(Some(facts)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        std::fs::hard_link(file, name)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        std::fs::remove_file(file)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn evict(&self, file: &Path) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(file)?;
        file.sync_all()?;
        drop_cached(&file)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let facts = rustix::fs::statvfs(dir)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    fn file_system(&self, dir: &Path) -> io::Result<FileSystem> {
        file_system_of(dir)
    }

    fn volume(&self, dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>> {
        volume_of(dir)
    }
}

impl FsFile for OsFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn facts(&self) -> io::Result<FileFacts> {
        facts_of_file(&self.file)
    }

    fn try_lock(&self, kind: LockKind) -> io::Result<LockOutcome> {
        let taken = match kind {
            LockKind::Exclusive => self.file.try_lock(),
            LockKind::Shared => self.file.try_lock_shared(),
        };
        match taken {
            Ok(()) => {
                self.is_locked.store(true, Ordering::Relaxed);
                Ok(LockOutcome::Taken)
            }
            Err(TryLockError::WouldBlock) => Ok(LockOutcome::Held),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn boxed(file: io::Result<File>) -> io::Result<Box<dyn FsFile>> {
    Ok(Box::new(OsFile { file: file?, is_locked: AtomicBool::new(false) }))
}

#[cfg(target_os = "linux")]
fn facts_of_path(path: &Path) -> io::Result<FileFacts> {
    match facts_at(rustix::fs::CWD, path, rustix::fs::AtFlags::empty()) {
        Err(rustix::io::Errno::NOSYS) => std::fs::metadata(path).map(|metadata| facts_of(&metadata)),
        found => Ok(found?),
    }
}

#[cfg(target_os = "linux")]
fn facts_of_file(file: &File) -> io::Result<FileFacts> {
    match facts_at(file, Path::new(""), rustix::fs::AtFlags::EMPTY_PATH) {
        Err(rustix::io::Errno::NOSYS) => file.metadata().map(|metadata| facts_of(&metadata)),
        found => Ok(found?),
    }
}

/// Without the times of the file. Who asks for them has the kernel give the next write a time of its own (Linux 6.13 and
/// later), instead of one that many writes share; and an inode with a new time is one more write for a sync, also for
/// `fdatasync` where ext4 has no journal. Asked around each commit, that made every sync of the log a third longer.
///
/// `NOSYS` where there is no such call: in kernels before 4.11, and in some sandboxes.
#[cfg(target_os = "linux")]
fn facts_at(dir: impl AsFd, path: &Path, flags: rustix::fs::AtFlags) -> rustix::io::Result<FileFacts> {
    use rustix::fs::{FileType, StatxFlags, makedev, statx};
    let found = statx(dir, path, flags, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE)?;
    Ok(FileFacts {
        device: makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        bytes: found.stx_size,
        is_dir: FileType::from_raw_mode(u32::from(found.stx_mode)).is_dir(),
    })
}

#[cfg(not(target_os = "linux"))]
fn facts_of_path(path: &Path) -> io::Result<FileFacts> {
    std::fs::metadata(path).map(|metadata| facts_of(&metadata))
}

#[cfg(not(target_os = "linux"))]
fn facts_of_file(file: &File) -> io::Result<FileFacts> {
    file.metadata().map(|metadata| facts_of(&metadata))
}

fn facts_of(metadata: &Metadata) -> FileFacts {
    FileFacts {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        is_dir: metadata.is_dir(),
    }
}

#[cfg(target_os = "linux")]
fn drop_cached(file: &File) -> io::Result<()> {
    // A length of `None` means: to the end of the file.
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).map_err(io::Error::from)
}

/// Elsewhere there is no such call; the promise of power-loss safety is made for Linux alone.
#[cfg(not(target_os = "linux"))]
fn drop_cached(_file: &File) -> io::Result<()> {
    Ok(())
}

/// A directory of the file system, opened once: the kernel reports to a handle the errors since it was opened.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct OsVolume(File);

#[cfg(target_os = "linux")]
impl FsVolume for OsVolume {
    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.0)?)
    }
}

/// `syncfs` reports the errors of file data since Linux 5.8; before, it may succeed where it lost something.
#[cfg(target_os = "linux")]
const SYNCFS_REPORTS_SINCE: (u32, u32) = (5, 8);

#[cfg(target_os = "linux")]
fn volume_of(dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if kernel_version(&release).is_none_or(|version| version < SYNCFS_REPORTS_SINCE) {
        return Ok(None);
    }
    Ok(Some(Box::new(OsVolume(File::open(dir)?))))
}

#[cfg(not(target_os = "linux"))]
fn volume_of(_dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>> {
    Ok(None)
}

/// The two first numbers of a kernel's release, `6.18.44-generic`.
#[cfg(target_os = "linux")]
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(target_os = "linux")]
fn file_system_of(dir: &Path) -> io::Result<FileSystem> {
    let magic = rustix::fs::statfs(dir).map_err(io::Error::from)?.f_type;
    // The field's type differs between machines; the numbers have 32 bits.
    Ok(file_system_from_magic(magic as u64 & 0xffff_ffff))
}

#[cfg(not(target_os = "linux"))]
fn file_system_of(_dir: &Path) -> io::Result<FileSystem> {
    Ok(FileSystem::Local)
}

/// The kinds by the numbers of `statfs(2)` and the kernel's `magic.h`.
#[cfg(target_os = "linux")]
fn file_system_from_magic(magic: u64) -> FileSystem {
    match magic {
        0x6969 => FileSystem::Network("NFS"),
        0xff53_4d42 => FileSystem::Network("CIFS"),
        0xfe53_4d42 => FileSystem::Network("SMB2"),
        0x517b => FileSystem::Network("SMB"),
        0x0102_1997 => FileSystem::Network("9p"),
        0x6573_5546 => FileSystem::Network("FUSE"),
        0x00c3_6400 => FileSystem::Network("Ceph"),
        0x5346_414f => FileSystem::Network("AFS"),
        0x7375_7245 => FileSystem::Network("Coda"),
        0x0bd0_0bd0 => FileSystem::Network("Lustre"),
        0x0116_1970 => FileSystem::Network("GFS2"),
        0x7461_636f => FileSystem::Network("OCFS2"),
        0x786f_4256 => FileSystem::Network("a shared folder of VirtualBox"),
        0x0102_1994 => FileSystem::Volatile("tmpfs"),
        0x8584_58f6 => FileSystem::Volatile("ramfs"),
        0x794c_7630 => FileSystem::Volatile("overlay"),
        _ => FileSystem::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn files_are_private_and_never_replaced_by_a_new_one_or_a_link() {
        let dir = folder();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let file = OsFs.create_new(&a).unwrap();
        file.write_all_at(b"abc", 2).unwrap();
        let mut bytes = [9; 8];
        assert_eq!(file.read_at(&mut bytes, 1).unwrap(), 4);
        assert_eq!(&bytes[..4], b"\0abc");
        assert_eq!(std::fs::metadata(&a).unwrap().mode() & 0o777, 0o600);
        assert_eq!(OsFs.create_new(&a).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        OsFs.hard_link(&a, &b).unwrap();
        assert_eq!(OsFs.hard_link(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let facts = OsFs.facts(&b).unwrap().unwrap();
        assert!(facts.same_file(&file.facts().unwrap()) && facts.bytes == 5);
    }

    #[test]
    fn both_ways_to_look_at_a_file_see_the_same() {
        let dir = folder();
        let path = dir.path().join("a");
        std::fs::write(&path, b"four").unwrap();
        for path in [dir.path(), &path] {
            let (file, metadata) = (File::open(path).unwrap(), std::fs::metadata(path).unwrap());
            assert_eq!(facts_of_path(path).unwrap(), facts_of(&metadata));
            assert_eq!(facts_of_file(&file).unwrap(), facts_of(&metadata));
        }
    }

    #[test]
    fn a_lock_keeps_others_out_until_its_file_is_closed() {
        let dir = folder();
        let path = dir.path().join("lock");
        let first = OsFs.open_or_create(&path).unwrap();
        assert_eq!(first.try_lock(LockKind::Exclusive).unwrap(), LockOutcome::Taken);
        let second = OsFs.open_or_create(&path).unwrap();
        assert_eq!(second.try_lock(LockKind::Exclusive).unwrap(), LockOutcome::Held);
        assert_eq!(second.try_lock(LockKind::Shared).unwrap(), LockOutcome::Held);
        drop(first);
        assert_eq!(second.try_lock(LockKind::Shared).unwrap(), LockOutcome::Taken);
    }

    #[test]
    fn a_lock_ends_with_its_file_also_while_a_process_that_is_starting_has_it() {
        let dir = folder();
        let path = dir.path().join("lock");
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            let first = OsFile { file: File::create(&path).unwrap(), is_locked: AtomicBool::new(false) };
            assert_eq!(first.try_lock(kind).unwrap(), LockOutcome::Taken);
            // As a fork has it, up to its exec.
            let _inherited = first.file.try_clone().unwrap();
            drop(first);
            let second = OsFs.open_or_create(&path).unwrap();
            assert_eq!(second.try_lock(LockKind::Exclusive).unwrap(), LockOutcome::Taken, "{kind:?}");
        }
    }

    #[test]
    fn what_is_evicted_reads_the_same() {
        let dir = folder();
        let path = dir.path().join("data");
        OsFs.create_new(&path).unwrap().write_all_at(&[7; 100_000], 0).unwrap();
        OsFs.evict(&path).unwrap();
        OsFs.sync_dir(dir.path()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [7; 100_000]);
        assert_eq!(OsFs.facts(&dir.path().join("absent")).unwrap(), None);
        assert!(OsFs.evict(&dir.path().join("absent")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        assert_eq!(file_system_from_magic(0x6969), FileSystem::Network("NFS"));
        assert_eq!(file_system_from_magic(0xff53_4d42), FileSystem::Network("CIFS"));
        assert_eq!(file_system_from_magic(0xef53), FileSystem::Local);
        assert!(OsFs.file_system(Path::new("/")).is_ok());
    }
}
