//! A disk that is not there: [`crate::fs::Fs`] in memory, with power cuts and faults that follow from a seed.
//!
//! It keeps two pictures apart. What programs see is the page cache: every write, name and removal, at once.
//! What a power cut leaves is the disk: what was synced, and of the rest any part, torn where it pleases. A
//! sync that failed leaves the cache as it is and loses what it should have written; a later sync that
//! succeeds does not bring it back, as real kernels do it. It knows nothing of stores.

mod disk;
mod file;
mod folder;
mod fs;
mod random;

pub use disk::{Fault, Links, SimDisk, When};
