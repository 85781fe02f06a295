//! The step that looks at the file system below a store, before anything is made on it.

use std::io;
use std::path::Path;

use super::step::StartStep;
use super::steps::Steps;
use crate::fs::{FileSystem, Fs};
use crate::open::OpenError;

/// Refuses a folder on another machine, and warns of one that may go with the power or with its container. Where the
/// folder is not there yet, the one above it counts in which it would be made.
pub(crate) fn check_file_system(fs: &dyn Fs, folder: &Path, steps: &mut Steps) -> Result<(), OpenError> {
    steps.begin(StartStep::FileSystem);
    let failed = |doing: &str, path: &Path| {
        let doing = format!("{doing} `{}`", path.display());
        move |source| OpenError::Io { doing, source, step: Some(StartStep::FileSystem) }
    };
    let existing = nearest_existing(fs, folder).map_err(failed("look at", folder))?;
    match fs.file_system(existing).map_err(failed("find the file system of", existing))? {
        FileSystem::Local => Ok(()),
        FileSystem::Network(kind) => Err(OpenError::NetworkFileSystem { path: folder.to_owned(), kind }),
        FileSystem::Volatile(kind) => {
            steps.warn(
                format!(
                    "`{}` lies on {kind}, which may go with the power or with its container",
                    folder.display()
                ),
                "put the store on a disk or a volume that stays: `url` in [store], or --data DIR",
            );
            Ok(())
        }
    }
}

/// The folder itself, or the nearest one above it that is there.
pub(crate) fn nearest_existing<'a>(fs: &dyn Fs, folder: &'a Path) -> io::Result<&'a Path> {
    let mut existing = folder;
    while fs.facts(existing)?.is_none() {
        existing = existing.parent().unwrap_or(Path::new("/"));
    }
    Ok(existing)
}
