//! The files store as a backend of the conformance suite, on the disk of the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::Store;
use hookstead_core::conformance::{Backend, Instance};
use hookstead_store::{OpenError, OpenOptions, Opened, open};

use crate::backend::OPENED_AT;

/// Stores in folders that vanish with them.
pub(crate) struct Files;

impl Backend for Files {
    fn name(&self) -> &str {
        "files"
    }

    fn open(&self) -> Box<dyn Instance> {
        let dir = Dir::new();
        let opened = dir.open();
        Box::new(OpenFiles { dir, opened: Some(opened) })
    }
}

struct OpenFiles {
    dir: Dir,
    opened: Option<Opened>,
}

impl Instance for OpenFiles {
    fn store(&self) -> Arc<dyn Store> {
        self.opened.as_ref().expect("it is open between the calls").store.clone()
    }

    fn reopen(&mut self) {
        if let Some(opened) = self.opened.take() {
            opened.store.close(OPENED_AT).expect("it can be closed");
        }
        self.opened = Some(self.dir.open());
    }
}

/// A folder for one store, which is not there yet.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is a place for temporary files"))
    }

    /// The store's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("store")
    }

    pub(crate) fn open(&self) -> Opened {
        self.try_open().expect("the store opens")
    }

    pub(crate) fn try_open(&self) -> Result<Opened, OpenError> {
        self.open_with(&OpenOptions::default())
    }

    pub(crate) fn open_with(&self, options: &OpenOptions) -> Result<Opened, OpenError> {
        open(&url(&self.root()), options, OPENED_AT)
    }
}

pub(crate) fn url(folder: &Path) -> String {
    format!("files:{}", folder.display())
}
