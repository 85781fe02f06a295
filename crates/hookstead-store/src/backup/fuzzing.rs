//! The files that describe a backup, under any bytes (see [`crate::fuzzing`]).

use std::path::Path;

use super::manifest::{self, FORMAT, MANIFEST};
use super::sums;
use crate::fs::Fs;
use crate::sim::SimDisk;

/// `backup.json` and `SHA256SUMS`.
pub fn backup(input: &[u8]) {
    let (disk, folder) = (SimDisk::new(1), Path::new("/"));
    let file = disk.create_new(&folder.join(MANIFEST)).expect("the disk is empty");
    file.write_all_at(input, 0).expect("the disk is sound");
    match manifest::read(&disk, folder) {
        Ok(manifest) => assert!(manifest.format <= FORMAT),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    // No file of a store has a carriage return in its name, and a list may have lines that end with one.
    let Some(listed) = sums::from_text(text).filter(|_| !text.contains('\r')) else { return };
    assert_eq!(sums::from_text(&sums::to_text(&listed)).as_ref(), Some(&listed));
    assert_eq!(sums::difference(&listed, &listed), None);
}
