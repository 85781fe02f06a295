//! Copies of a store in a folder of their own: made while it is written to, and put back where there is none.

mod folder;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod make;
mod manifest;
mod report;
mod restore;
mod sums;

pub(crate) use folder::{copy_file, make_folder};
pub use make::backup;
pub(crate) use make::checking;
pub use report::{BackupError, BackupPhase, BackupProgress, BackupReport};
pub(crate) use report::{Copied, Step, io_error};
pub use restore::restore;
