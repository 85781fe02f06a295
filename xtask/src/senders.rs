//! The providers' own SDKs, which sign and send in the tests: npm packages at exact versions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::{check, program, root, step};

/// Tells the tests where the packages are.
pub(crate) const VARIABLE: &str = "HOOKSTEAD_SENDERS";

const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Copied last: when it equals the committed one, the installation is complete and current.
const STAMP: &str = "installed.json";

/// Where the packages are installed; the tests look here when [`VARIABLE`] is not set.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os(VARIABLE) {
        Some(dir) => root().join(dir),
        None => root().join("target/senders"),
    }
}

/// Installs the packages unless exactly these are there.
pub(crate) fn install() -> Result<()> {
    let wanted = root().join("crates/hookstead-cli/tests/it/senders");
    let folder = folder();
    let lock =
        fs::read(wanted.join("package-lock.json")).context("cannot read the senders' package-lock.json")?;
    if fs::read(folder.join(STAMP)).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    step("install the senders' npm packages", || {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for file in FILES {
            copy(&wanted.join(file), &folder.join(file))?;
        }
        let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
        check(program("npm", &arguments).current_dir(&folder)).context(
            "the npm packages `stripe` and `svix` cannot be installed; is the npm registry reachable?",
        )?;
        copy(&wanted.join("package-lock.json"), &folder.join(STAMP))
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
