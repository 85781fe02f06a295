//! The list of a backup's files with their digests, in the format of `sha256sum`, so that it can be checked without us:
//! `sha256sum -c SHA256SUMS`. It knows no kind of store.

use std::collections::BTreeMap;
use std::path::Path;

use super::folder::digest_of;
use super::report::{BackupError, BackupPhase, BackupProgress, Step, io_error};
use crate::fs::Fs;

/// The name of the list.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Digests in hex by the paths of their files, with `/` between the parts, below the backup's folder.
pub(super) type Sums = BTreeMap<String, String>;

/// The digests of all files below `root/folder`, and their length together.
pub(super) fn take(
    fs: &dyn Fs,
    root: &Path,
    folder: &str,
    step: Step<'_>,
) -> Result<(Sums, u64), BackupError> {
    let mut names = Vec::new();
    files_below(fs, root, folder, &mut names)?;
    let total = names.len() as u64;
    let (mut sums, mut all_bytes) = (Sums::new(), 0);
    for (done, name) in (1..).zip(names) {
        let (digest, bytes) = digest_of(fs, &root.join(&name))?;
        sums.insert(name, digest);
        all_bytes += bytes;
        step(BackupProgress { phase: BackupPhase::Digests, done, total });
    }
    Ok((sums, all_bytes))
}

/// How deep a store's folders are, with one to spare; what is deeper is none of ours.
const DEPTH_MAX: usize = 6;

fn files_below(fs: &dyn Fs, root: &Path, folder: &str, into: &mut Vec<String>) -> Result<(), BackupError> {
    let path = root.join(folder);
    for name in fs.list(&path).map_err(io_error("list", &path))? {
        let name = format!("{folder}/{}", name.to_string_lossy());
        let path = root.join(&name);
        match fs.facts(&path).map_err(io_error("look at", &path))? {
            Some(facts) if facts.is_dir && name.split('/').count() < DEPTH_MAX => {
                files_below(fs, root, &name, into)?;
            }
            _ => into.push(name),
        }
    }
    Ok(())
}

/// The list as text.
pub(super) fn to_text(sums: &Sums) -> String {
    sums.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect()
}

/// A list that was read; `None` if it is none.
pub(super) fn from_text(text: &str) -> Option<Sums> {
    let line = |line: &str| {
        let (digest, name) = line.split_once("  ")?;
        Some((name.to_owned(), digest.to_owned()))
    };
    text.lines().map(line).collect()
}

/// What differs between what a list says and what is there, if anything: the first of it.
pub(super) fn difference(listed: &Sums, found: &Sums) -> Option<String> {
    let changed = listed.iter().find_map(|(name, digest)| match found.get(name) {
        None => Some(format!("`{name}` is missing")),
        Some(other) if other != digest => Some(format!("`{name}` has another digest than when it was made")),
        Some(_) => None,
    });
    let added = || found.keys().find(|name| !listed.contains_key(*name));
    changed.or_else(|| added().map(|name| format!("`{name}` was added to it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pairs: &[(&str, &str)]) -> Sums {
        pairs.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect()
    }

    #[test]
    fn a_list_round_trips_and_names_what_differs() {
        let listed = sums(&[("store/a b", "01"), ("store/c", "02")]);
        assert_eq!(from_text(&to_text(&listed)), Some(listed.clone()));
        assert_eq!(from_text("no list"), None);
        assert_eq!(difference(&listed, &listed), None);
        let says = |found| difference(&listed, &sums(found)).unwrap();
        assert!(says(&[("store/a b", "01")]).contains("`store/c` is missing"));
        assert!(says(&[("store/a b", "01"), ("store/c", "03")]).contains("another digest"));
        assert!(says(&[("store/a b", "01"), ("store/c", "02"), ("store/d", "")]).contains("added"));
    }
}
