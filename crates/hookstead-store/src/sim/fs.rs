//! The simulated disk as an [`Fs`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};

use super::disk::{Links, ROOT, SimDisk, State};
use super::file::SimFile;
use super::folder::{Inode, SimFolder};
use crate::fs::{FileFacts, FileSystem, Fs, FsFile, FsVolume, LockKind, LockOutcome};

/// An open file.
#[derive(Debug)]
struct Handle {
    disk: SimDisk,
    inode: Inode,
    locked: std::sync::atomic::AtomicBool,
}

impl Fs for SimDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (parent, name) = state.free(dir)?;
        if state.whole()? {
            let inode = state.new_inode();
            state.folders.insert(inode, SimFolder::default());
            state.folder(parent)?.add(name, inode);
        }
        state.done()
    }

    fn create_new(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        let mut state = self.state();
        let (parent, name) = state.free(file)?;
        let inode = state.new_inode();
        if state.whole()? {
            state.files.insert(inode, SimFile::default());
            state.folder(parent)?.add(name, inode);
        }
        state.done()?;
        Ok(self.handle(inode))
    }

    fn open_or_create(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        let found = self.state().find(file)?;
        found.map_or_else(|| self.create_new(file), |inode| Ok(self.handle(inode)))
    }

    fn open_read(&self, file: &Path) -> io::Result<Box<dyn FsFile>> {
        let state = self.state();
        let inode = state.find(file)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(inode))
    }

    fn facts(&self, path: &Path) -> io::Result<Option<FileFacts>> {
        let state = self.state();
        state.find(path)?.map(|inode| state.facts(inode)).transpose()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut state = self.state();
        let inode = state.find(dir)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(state.folder(inode)?.cached().keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (parent, old) = state.parent(from)?;
        let (parent_to, new) = state.parent(to)?;
        if parent != parent_to {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        state.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        if state.whole()? {
            state.folder(parent)?.rename(old, new);
        }
        state.done()
    }

    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(file)?.ok_or(io::ErrorKind::NotFound)?;
        let (parent, name) = state.free(name)?;
        if state.links == Links::Refused {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if state.whole()? {
            state.folder(parent)?.add(name, inode);
        }
        state.done()
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (parent, name) = state.parent(file)?;
        state.find(file)?.ok_or(io::ErrorKind::NotFound)?;
        if state.whole()? {
            state.folder(parent)?.remove(name);
        }
        state.done()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(dir)?.ok_or(io::ErrorKind::NotFound)?;
        let outcome = state.sync();
        let folder = state.folder(inode)?;
        if outcome.is_ok() {
            folder.sync();
        } else {
            folder.fail_sync();
        }
        outcome
    }

    fn evict(&self, file: &Path) -> io::Result<()> {
        let inode = self.state().find(file)?.ok_or(io::ErrorKind::NotFound)?;
        self.handle(inode).sync()?;
        self.state().file(inode)?.evict();
        Ok(())
    }

    fn file_system(&self, _dir: &Path) -> io::Result<FileSystem> {
        Ok(self.state().system)
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn volume(&self, _dir: &Path) -> io::Result<Option<Box<dyn FsVolume>>> {
        Ok(Some(Box::new(self.clone())))
    }
}

impl FsVolume for SimDisk {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        let outcome = state.sync();
        let mut random = state.random();
        for file in state.files.values_mut() {
            if outcome.is_ok() { file.sync() } else { file.fail_sync(&mut random) }
        }
        for folder in state.folders.values_mut() {
            if outcome.is_ok() { folder.sync() } else { folder.fail_sync() }
        }
        outcome
    }
}

impl SimDisk {
    fn handle(&self, inode: Inode) -> Box<dyn FsFile> {
        Box::new(Handle { disk: self.clone(), inode, locked: false.into() })
    }
}

impl FsFile for Handle {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.check_power()?;
        let content = state.file(self.inode)?.cached();
        let rest = content.get(place(offset)?..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let (written, outcome) = state.part(bytes.len());
        state.file(self.inode)?.write(place(offset)?, &bytes[..written]);
        outcome
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.whole()? {
            state.file(self.inode)?.set_len(place(bytes)?);
        }
        state.done()
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let outcome = state.sync();
        let mut random = state.random();
        let file = state.file(self.inode)?;
        if outcome.is_ok() {
            file.sync();
        } else {
            file.fail_sync(&mut random);
        }
        outcome
    }

    fn facts(&self) -> io::Result<FileFacts> {
        let state = self.disk.state();
        state.check_power()?;
        state.facts(self.inode)
    }

    fn try_lock(&self, _kind: LockKind) -> io::Result<LockOutcome> {
        let mut state = self.disk.state();
        if !state.locks.insert(self.inode) {
            return Ok(LockOutcome::Held);
        }
        self.locked.store(true, std::sync::atomic::Ordering::SeqCst);
        Ok(LockOutcome::Taken)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.locked.load(std::sync::atomic::Ordering::SeqCst) {
            self.disk.state().locks.remove(&self.inode);
        }
    }
}

impl State {
    /// What a path names; `None` if nothing is there.
    fn find(&self, path: &Path) -> io::Result<Option<Inode>> {
        self.check_power()?;
        let mut inode = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Some(folder) = self.folders.get(&inode) else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            match folder.cached().get(name) {
                Some(found) => inode = *found,
                None => return Ok(None),
            }
        }
        Ok(Some(inode))
    }

    /// The folder that a path lies in, and its name there.
    fn parent(&self, path: &Path) -> io::Result<(Inode, OsString)> {
        let above = path.parent().unwrap_or(Path::new("/"));
        let parent = self.find(above)?.ok_or(io::ErrorKind::NotFound)?;
        let name = path.file_name().map(OsStr::to_owned).ok_or(io::ErrorKind::InvalidInput)?;
        Ok((parent, name))
    }

    /// The same, if nothing has the name.
    fn free(&self, path: &Path) -> io::Result<(Inode, OsString)> {
        if self.find(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.parent(path)
    }

    fn folder(&mut self, inode: Inode) -> io::Result<&mut SimFolder> {
        self.folders.get_mut(&inode).ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    /// A name may outlive its file in a power cut, if the folder was synced and the file never was: it is
    /// empty then.
    fn file(&mut self, inode: Inode) -> io::Result<&mut SimFile> {
        if self.folders.contains_key(&inode) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(self.files.entry(inode).or_default())
    }

    fn facts(&self, inode: Inode) -> io::Result<FileFacts> {
        let is_dir = self.folders.contains_key(&inode);
        let bytes = self.files.get(&inode).map_or(0, |file| file.cached().len() as u64);
        Ok(FileFacts { device: 1, inode, bytes, is_dir })
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
