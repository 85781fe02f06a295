//! Installing what a machine lacks with Debian's package manager, and how patient every installer is.

use std::process::Command;

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

/// How often cargo and pip try a download again on a bad network. `.ci/run`, which runs before this is built, has the same
/// numbers, also apt's.
const RETRIES_MAX: u32 = 10;

/// npm waits longer each time, at last a minute.
const NPM_RETRIES_MAX: u32 = 5;

/// How often apt does so, for each of its files.
const APT_RETRIES_MAX: u32 = 3;

/// The machine's own upgrades may hold the lock for a while.
const APT_LOCK_SECONDS_MAX: u32 = 300;

/// The installer (cargo, pip or npm) tries its downloads again.
pub(crate) fn patient(installer: &mut Command) -> &mut Command {
    let retries = RETRIES_MAX.to_string();
    installer.env("CARGO_NET_RETRY", &retries).env("PIP_RETRIES", &retries);
    installer.env("npm_config_fetch_retries", NPM_RETRIES_MAX.to_string())
}

fn apt() -> String {
    format!(
        "env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout={APT_LOCK_SECONDS_MAX} \
         -o Acquire::Retries={APT_RETRIES_MAX}"
    )
}

fn apt_script(packages: &str) -> String {
    // A fresh container has no package lists, and a root user needs no sudo.
    let prefix = if is_root() { "" } else { "sudo " };
    let apt = format!("{prefix}{}", apt());
    format!("{apt} update && {apt} install -y --no-install-recommends {packages}")
}

fn is_root() -> bool {
    crate::run::output(&mut program("id", &["-u"])).is_ok_and(|uid| uid.trim() == "0")
}

#[cfg(test)]
mod tests {
    use crate::run::root;

    use super::*;

    #[test]
    fn what_runs_before_this_is_as_patient() {
        let script = std::fs::read_to_string(root().join(".ci/run")).expect("the script");
        assert!(script.contains(&format!("apt=\"{}\"\n", apt())), "{script}");
        let retries = format!("export CARGO_NET_RETRY={RETRIES_MAX} RUSTUP_MAX_RETRIES={RETRIES_MAX}\n");
        assert!(script.contains(&retries), "{script}");
    }
}
