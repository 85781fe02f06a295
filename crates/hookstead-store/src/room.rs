//! Free space: events are refused before the disk is full, so that what must be written to finish old work, and the
//! work of other programs, still finds room. It knows no kind of store.

use std::path::PathBuf;
use std::sync::Arc;

use hookstead_core::{StoreError, Write};

use crate::fs::Fs;
use crate::open::OpenOptions;

/// How much must stay free where a store is.
#[derive(Debug)]
pub(crate) struct Room {
    fs: Arc<dyn Fs>,
    folder: PathBuf,
    bytes_min: u64,
}

impl Room {
    /// The room of a store in `folder`.
    pub(crate) fn new(options: &OpenOptions, folder: PathBuf) -> Self {
        Self { fs: Arc::clone(&options.fs), folder, bytes_min: options.free_bytes_min }
    }

    /// [`StoreError::Full`] if the batch has new events and there is less free than must stay.
    pub(crate) fn check_batch(&self, writes: &[Write]) -> Result<(), StoreError> {
        let grows = writes.iter().any(|write| matches!(write, Write::Accept(_)));
        if grows { self.check() } else { Ok(()) }
    }

    /// [`StoreError::Full`] if there is less free than must stay.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.bytes_min == 0 {
            return Ok(());
        }
        let folder = self.folder.display();
        let free = self.fs.free_bytes(&self.folder);
        let free =
            free.map_err(|error| StoreError::backend(format!("ask what is free in `{folder}`"), error))?;
        if free >= self.bytes_min {
            return Ok(());
        }
        let what =
            format!("`{folder}` has {free} bytes free, and {} must stay free (min_free)", self.bytes_min);
        Err(StoreError::Full { what })
    }
}
