//! The providers' own SDKs, which sign, send and verify in the tests: npm and Python packages at exact versions,
//! with the digests of what is installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::install::patient;
use crate::run::{check, program, root, step};

/// Tells the tests where the packages are.
pub(crate) const VARIABLE: &str = "HOOKSTEAD_SENDERS";

/// What is to be installed, in words that npm and pip understand.
const FILES: [&str; 4] = ["package.json", "package-lock.json", ".npmrc", "requirements.txt"];

/// Written last: when it equals the committed files, the installation is complete and current.
const STAMP: &str = "installed";

/// Packages with what they need to run; nothing of theirs is executed while they are installed.
const NPM: [&str; 5] = ["ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts"];

/// The requirements are complete, and wheels need no code of theirs to be run.
const PIP: [&str; 13] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--root-user-action=ignore",
    "--no-deps",
    "--only-binary=:all:",
    "--require-hashes",
    "--requirement",
    "requirements.txt",
    "--target",
    "python",
];

/// Where the packages are installed; the tests look here when [`VARIABLE`] is not set.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os(VARIABLE) {
        Some(dir) => root().join(dir),
        None => root().join("target/senders"),
    }
}

/// Installs the packages unless exactly these are there.
pub(crate) fn install() -> Result<()> {
    let folder = folder();
    let wanted = wanted()?;
    if fs::read(folder.join(STAMP)).is_ok_and(|installed| installed == wanted.concat()) {
        return Ok(());
    }
    step("install the senders' packages", || {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, content) in FILES.iter().zip(&wanted) {
            write(&folder.join(name), content)?;
        }
        install_with("npm", &NPM, &folder)?;
        remove(&folder.join("python"))?;
        install_with("python3", &PIP, &folder)?;
        write(&folder.join(STAMP), &wanted.concat())
    })
}

fn wanted() -> Result<Vec<Vec<u8>>> {
    let folder = root().join("crates/hookstead-cli/tests/it/senders");
    let read = |name| fs::read(folder.join(name)).with_context(|| format!("cannot read the senders' {name}"));
    FILES.iter().map(read).collect()
}

fn install_with(installer: &str, arguments: &[&str], folder: &Path) -> Result<()> {
    check(patient(&mut program(installer, arguments)).current_dir(folder)).with_context(|| {
        format!("the senders' packages cannot be installed; does {installer} reach its registry?")
    })
}

/// npm clears its folder by itself; pip would leave what an earlier list had beside the new packages.
fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

fn write(file: &Path, content: &[u8]) -> Result<()> {
    fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
