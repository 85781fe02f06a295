//! Which function of which crate a fuzz target calls. What must hold is said there, in each crate's `fuzzing` module; the
//! tests of the crates call the same with the inputs that once crashed.

mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use hookstead_store::fuzzing::Cursors;
use hookstead_verify::fuzzing::Requests;
use hookstead_verify::vector::{self, Vector};

/// The targets: one program each in `fuzz_targets/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A request to a source of each provider.
    Request,
    /// A template over a request.
    Template,
    /// The record of a provider.
    Record,
    /// A document with public keys.
    Keys,
    /// What people and programs type or hand back.
    Names,
    /// What a target answers, and its URL.
    Answer,
    /// A cursor that nobody gave out.
    Cursor,
    /// A configuration file.
    Config,
    /// A file of a `files:` store that is one record.
    Entry,
    /// The log and the journal of a `files:` store.
    Journal,
    /// The write-ahead log of SQLite.
    Wal,
    /// The files that describe a backup, and the owner's record.
    Backup,
}

/// Names a folder that a target writes its seeds into before it begins.
pub const SEEDS: &str = "HOOKSTEAD_FUZZ_SEEDS";

/// What a target does first: it writes its seeds if it is asked to ([`SEEDS`]).
pub fn start(target: Target) {
    if let Some(folder) = std::env::var_os(SEEDS) {
        seeds::write(target, Path::new(&folder)).expect("the seeds can be written");
    }
}

/// Runs a target once. A panic is a finding.
pub fn run(target: Target, input: &[u8]) {
    match target {
        Target::Request => requests().run(input),
        Target::Template => hookstead_verify::fuzzing::template(input),
        Target::Record => hookstead_verify::fuzzing::record(input),
        Target::Keys => hookstead_verify::fuzzing::keys(input),
        Target::Names => hookstead_server::fuzzing::names(input),
        Target::Answer => hookstead_server::fuzzing::answer(input),
        Target::Cursor => cursors().run(input),
        Target::Config => hookstead_server::fuzzing::config(input),
        Target::Entry => hookstead_store::fuzzing::entry(input),
        Target::Journal => hookstead_store::fuzzing::journal(input),
        Target::Wal => hookstead_store::fuzzing::wal(input),
        Target::Backup => {
            hookstead_store::fuzzing::backup(input);
            hookstead_store::fuzzing::owner(input);
        }
    }
}

fn requests() -> &'static Requests {
    static REQUESTS: OnceLock<Requests> = OnceLock::new();
    REQUESTS.get_or_init(|| Requests::new(&vectors().expect("the vectors of the repository can be read")).0)
}

fn cursors() -> &'static Cursors {
    static CURSORS: OnceLock<(Cursors, tempfile::TempDir)> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        (Cursors::new(folder.path()).expect("the stores can be made"), folder)
    };
    &CURSORS.get_or_init(make).0
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/ lies in the repository")
}

/// Every vector of the repository, always in the same order.
pub fn vectors() -> Result<Vec<Vector>> {
    let files = files(&root().join("crates/hookstead-verify/vectors"), "json")?;
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        vector::parse(&text).with_context(|| format!("{} holds no vectors", file.display()))
    };
    files.iter().map(read).collect::<Result<Vec<_>>>().map(|vectors| vectors.concat())
}

/// The files of a folder and of those below it with this ending, sorted.
pub fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
