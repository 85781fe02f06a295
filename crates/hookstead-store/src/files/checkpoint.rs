//! Checkpoints: what makes the log and the records durable in their own places, so that the segment of the
//! journal that holds them can go. One runs at a time, beside the writer; it only syncs. Taking the segment away
//! is the writer's, so that a store that is gone changes nothing any more.
//!
//! When one fails the store is poisoned by the next write. What was acknowledged meanwhile rests on the journal's
//! own syncs, which succeeded, and on nothing that the checkpoint was to sync.

use std::collections::BTreeSet;
use std::io;
use std::thread::{Builder, JoinHandle};

use hookstead_core::StoreError;

use super::disk::Disk;
use super::failure::{syncing, writing};
use super::layout::{LOG, RecordPath};
use crate::open::Checkpoints;

/// The checkpoint that runs, and what goes when it is through.
#[derive(Debug)]
pub(super) struct Checkpoint {
    when: Checkpoints,
    running: Option<JoinHandle<Result<(), StoreError>>>,
    /// The segment that it makes useless.
    segment: Option<RecordPath>,
}

impl Checkpoint {
    pub(super) fn new(when: Checkpoints) -> Self {
        Self { when, running: None, segment: None }
    }

    /// Begins a checkpoint: everything that was written so far is made durable. Then `segment` goes. `folders`
    /// are those with new records. The one before must be [finished](Self::finish).
    pub(super) fn begin(
        &mut self,
        disk: &Disk,
        folders: &BTreeSet<RecordPath>,
        segment: RecordPath,
    ) -> Result<(), StoreError> {
        self.segment = Some(segment);
        if self.when == Checkpoints::Beside {
            let (disk, folders) = (disk.clone(), folders.clone());
            let thread = Builder::new().name("hookstead-checkpoint".to_owned());
            if let Ok(running) = thread.spawn(move || sync_written(&disk, &folders)) {
                self.running = Some(running);
                return Ok(());
            }
        }
        sync_written(disk, folders)
    }

    /// Ends the checkpoint if it is through. Where there is no room even to remove, the segment stays for now.
    pub(super) fn poll(&mut self, disk: &Disk) -> Result<(), StoreError> {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return Ok(());
        }
        match self.finish(disk) {
            Err(StoreError::Full { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Waits for the checkpoint; then its segment is gone. What has no room can be tried again.
    pub(super) fn finish(&mut self, disk: &Disk) -> Result<(), StoreError> {
        if let Some(running) = self.running.take() {
            let panicked = |_| StoreError::Poisoned { reason: "a checkpoint panicked".to_owned() };
            running.join().map_err(panicked)??;
        }
        if let Some(segment) = &self.segment {
            remove(disk, segment)?;
        }
        self.segment = None;
        Ok(())
    }
}

impl Drop for Checkpoint {
    /// It changes nothing, but a thread that was started is waited for.
    fn drop(&mut self) {
        if let Some(running) = self.running.take()
            && let Ok(Err(error)) = running.join()
        {
            tracing::error!(%error, "the last checkpoint failed; the journal stays for the next start");
        }
    }
}

/// Makes the log, and the records in `folders`, durable where they are.
pub(super) fn sync_written(disk: &Disk, folders: &BTreeSet<RecordPath>) -> Result<(), StoreError> {
    if let Some(volume) = &disk.volume {
        return volume.sync().map_err(|error| syncing("the file system of the store", &error));
    }
    for folder in folders {
        disk.fs.sync_dir(&disk.path(folder)).map_err(|error| syncing(format!("`{folder}`"), &error))?;
    }
    let log = disk.fs.open_read(&disk.path(LOG)).and_then(|log| log.sync());
    log.map_err(|error| syncing("the log", &error))
}

/// Takes a segment away.
pub(super) fn remove(disk: &Disk, segment: &str) -> Result<(), StoreError> {
    match disk.fs.remove(&disk.path(segment)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(writing(format!("remove `{segment}`"), &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::super::layout::Layout;
    use super::*;
    use crate::sim::{Fault, SimDisk, When};

    const SEGMENT: &str = "segment";

    fn begun(when: Checkpoints, fault: Option<Fault>) -> (Disk, Result<(), StoreError>) {
        let sim = SimDisk::new(1);
        let disk = Disk::new(Arc::new(sim.clone()), Layout::new(Path::new("/"), false), [1; 32]).unwrap();
        disk.write_new(SEGMENT, b"1").unwrap();
        if let Some(fault) = fault {
            sim.fail(fault, When::From(0));
        }
        let mut checkpoint = Checkpoint::new(when);
        let begun = checkpoint.begin(&disk, &BTreeSet::new(), SEGMENT.to_owned());
        let ended = begun.and_then(|()| checkpoint.finish(&disk));
        (disk, ended)
    }

    fn is_there(disk: &Disk) -> bool {
        disk.fs.facts(&disk.path(SEGMENT)).unwrap().is_some()
    }

    #[test]
    fn the_segment_goes_when_all_is_synced() {
        for when in [Checkpoints::Beside, Checkpoints::InTheCall] {
            let (disk, ended) = begun(when, None);
            assert!(ended.is_ok() && !is_there(&disk), "{when:?}: {ended:?}");
        }
    }

    #[test]
    fn a_sync_that_fails_poisons_and_the_segment_stays() {
        for when in [Checkpoints::Beside, Checkpoints::InTheCall] {
            for fault in [Fault::Io, Fault::NoSpace] {
                let (disk, ended) = begun(when, Some(fault));
                assert!(matches!(ended, Err(StoreError::Poisoned { .. })), "{when:?} {fault:?}: {ended:?}");
                assert!(is_there(&disk), "{when:?} {fault:?}");
            }
        }
    }
}
