//! The server under test: the release binary, with a configuration that names what the bench sends to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::child::Server;
use super::contestant::Place;
use super::template::{SECRET, SECRET_VARIABLE};
use crate::run::{cargo, check, step, target_dir};

/// The memory for bodies in flight, written out because P12 is measured against it. It is the default.
pub(super) const BODY_MEMORY_MIB: u64 = 32;

/// The source for bodies of a megabyte: `signed-inbox` takes 64 KiB at the most, GitHub takes more.
pub(super) const LARGE_TARGET: &str = "/in/large";

/// Builds the binary as users build it and says where it is.
pub(super) fn build() -> Result<PathBuf> {
    step("build hookstead for release", || {
        check(&mut cargo(&["build", "--quiet", "--release", "--package", "hookstead-cli"]))
    })?;
    Ok(target_dir().join("release/hookstead"))
}

/// The database of a run.
pub(super) fn sqlite(place: &Place) -> String {
    format!("sqlite:{}", place.data().join("hookstead.db").display())
}

/// The folder of records of a run.
pub(super) fn files(place: &Place) -> String {
    format!("files:{}", place.data().join("inbox").display())
}

/// Starts it on an empty store.
pub(super) fn start(binary: &Path, place: &Place, store: &str) -> Result<Server> {
    start_with(binary, place, store, "")
}

/// The same with more tables in its configuration.
pub(super) fn start_with(binary: &Path, place: &Place, store: &str, tables: &str) -> Result<Server> {
    let config = place.folder().join("bench.toml");
    fs::write(&config, configuration(store) + tables)
        .with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = Command::new(binary);
    command.args(["serve", "--json", "--while-stdin", "--config"]).arg(config);
    command.current_dir(place.folder()).env("HOME", place.folder()).env(SECRET_VARIABLE, SECRET);
    Server::start("hookstead", &mut command, &place.log())
}

fn configuration(store: &str) -> String {
    format!(
        "[server]\nintake = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
         [store]\nurl = \"{store}\"\n\n\
         [limits]\nbody_memory = \"{BODY_MEMORY_MIB} MiB\"\n\n\
         [sources.bench]\nprovider = \"signed-inbox\"\nsecret = {{ env = \"{SECRET_VARIABLE}\" }}\n\n\
         [sources.large]\nprovider = \"github\"\nsecret = {{ env = \"{SECRET_VARIABLE}\" }}\n"
    )
}
