//! Where the evidence is made: what a reader needs to do the same.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::run::{cargo, output, program};

/// The kernel, the processors, SQLite, and the commit that is checked out.
pub(super) fn described() -> Result<String> {
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's release")?;
    let cores = std::thread::available_parallelism().context("cannot count the processors")?;
    let commit = output(&mut program("git", &["rev-parse", "--short", "HEAD"]))?;
    Ok(format!("Linux {}, {cores} cores, SQLite {}, commit {}", kernel.trim(), sqlite()?, commit.trim()))
}

/// The version of the SQLite that is built in, as its source says.
fn sqlite() -> Result<String> {
    let metadata = output(&mut cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).context("cargo's metadata is no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let package = packages.iter().find(|package| package["name"] == "libsqlite3-sys");
    let manifest = package
        .and_then(|package| package["manifest_path"].as_str())
        .context("there is no libsqlite3-sys")?;
    let header = PathBuf::from(manifest).with_file_name("sqlite3").join("sqlite3.h");
    let header = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let version = header.lines().find_map(|line| line.strip_prefix("#define SQLITE_VERSION "));
    Ok(version.context("SQLite's header has no version")?.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_sqlite_has_a_version() {
        assert!(sqlite().unwrap().starts_with("3."));
    }
}
