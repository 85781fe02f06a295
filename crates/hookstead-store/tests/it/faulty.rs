//! A disk with a fault that a test chooses, between a store and the real one. It knows no store.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hookstead_store::OsFs;
use hookstead_store::fs::{FileFacts, FileSystem, Fs, FsFile, FsVolume};

/// The real disk, but for what it is told to say.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    pub(crate) poses_as: Option<FileSystem>,
    /// No folder can be synced.
    pub(crate) sync_dir: bool,
    /// No file gets another name.
    pub(crate) rename: bool,
    /// No file can be removed whose name ends so.
    pub(crate) keeps: Option<&'static str>,
    /// No file can be evicted.
    pub(crate) evict: bool,
    /// So many bytes are free, and what is removed becomes so.
    pub(crate) free: Option<Arc<AtomicU64>>,
    /// What the disk has of files of which the page cache shows more. It is seen once they were evicted.
    pub(crate) on_disk: Mutex<Vec<(PathBuf, Vec<u8>)>>,
}

impl Fs for Faulty {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        OsFs.create_dir(dir)
    }
    fn create_new(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        OsFs.create_new(file)
    }
    fn open_or_create(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        OsFs.open_or_create(file)
    }
    fn open_read(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        OsFs.open_read(file)
    }
    fn facts(&self, path: &Path) -> io::Result<Option<FileFacts>> {
        OsFs.facts(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        OsFs.list(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.rename { Err(io::Error::other("EIO")) } else { OsFs.rename(from, to) }
    }
    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        OsFs.hard_link(file, name)
    }
    fn remove(&self, file: &Path) -> io::Result<()> {
        if self.keeps.is_some_and(|end| file.to_string_lossy().ends_with(end)) {
            return Err(io::Error::other("EIO"));
        }
        let bytes = OsFs.facts(file)?.map_or(0, |facts| facts.bytes);
        OsFs.remove(file)?;
        if let Some(free) = &self.free {
            free.fetch_add(bytes, Ordering::SeqCst);
        }
        Ok(())
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.sync_dir { Err(io::Error::other("EIO")) } else { OsFs.sync_dir(dir) }
    }
    fn evict(&self, file: &Path) -> io::Result<()> {
        if self.evict {
            return Err(io::Error::other("EIO"));
        }
        let mut on_disk = self.on_disk.lock().expect("no panic");
        match on_disk.iter().position(|(path, _)| path == file) {
            // A sync that succeeds brings nothing back that a failed one lost.
            Some(place) => std::fs::write(file, on_disk.swap_remove(place).1),
            None => OsFs.evict(file),
        }
    }
    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        match &self.free {
            Some(free) => Ok(free.load(Ordering::SeqCst)),
            None => OsFs.free_bytes(dir),
        }
    }
    fn file_system(&self, dir: &Path) -> io::Result<FileSystem> {
        self.poses_as.map_or_else(|| OsFs.file_system(dir), Ok)
    }
    fn volume(&self, dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>> {
        OsFs.volume(dir)
    }
}
