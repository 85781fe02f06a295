//! Installing what a machine lacks with Debian's package manager.

use anyhow::{Result, bail};

use crate::run::{check, is_installed, program, step};

/// A program, and the Debian package that brings it.
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    /// What needs it, for the message when it cannot be had.
    pub(crate) needed_for: &'static str,
}

/// Installs the packages of those tools that cannot be started.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !is_installed(tool.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let packages = packages.join(" ");
    let outcome = step(&format!("install {packages}"), || apt_install(&packages));
    let absent = missing.iter().find(|tool| !is_installed(tool.program));
    match (absent, outcome) {
        (None, _) => Ok(()),
        (Some(tool), Err(cause)) => bail!("{}\n  cause  {cause:#}", advice(tool)),
        (Some(tool), Ok(())) => bail!("{}", advice(tool)),
    }
}

fn advice(tool: &Tool) -> String {
    format!(
        "`{}` is missing and could not be installed; {} needs it\n  fix    install the package `{}` with this system's package manager, then run this again",
        tool.program, tool.needed_for, tool.package
    )
}

fn apt_install(packages: &str) -> Result<()> {
    if !is_installed("apt-get") {
        bail!("this system has no `apt-get`");
    }
    check(&mut program("sh", &["-c", &apt_script(packages)]))
}

/// The machine's own upgrades may hold the lock for a while, and a mirror may not answer at once.
const APT: &str =
    "env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3";

fn apt_script(packages: &str) -> String {
    // A fresh container has no package lists, and a root user needs no sudo.
    let prefix = if is_root() { "" } else { "sudo " };
    format!("{prefix}{APT} update && {prefix}{APT} install -y --no-install-recommends {packages}")
}

fn is_root() -> bool {
    crate::run::output(&mut program("id", &["-u"])).is_ok_and(|uid| uid.trim() == "0")
}
