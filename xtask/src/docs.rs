//! `cargo xtask docs`: what the documents tell people to type must work as written.
//!
//! Each document is one shell session in an empty home, so a later block may build on an earlier one:
//!
//! - `console`: lines that start with `$ ` are commands, what follows is their output, where `…` stands for
//!   anything on a line and a line `…` for any lines. A last line `exit N` tells the exit code, else it is 0. No
//!   output shown means that any will do.
//! - `sh`: a script; each command must succeed.
//! - `toml`: a configuration, checked by the binary; with a file name after the language it is also kept.
//! - `rust`: compiled and run by rustdoc.
//!
//! A comment `<!-- background: COMMAND -->` starts a command that runs beside the blocks after it, as in another
//! terminal; they begin once it has printed a line. So `hookstead serve --json` is there for them when it is ready.
//!
//! A block with `ignore` after its language does not run. Languages that cannot be run are listed here, so that
//! a misspelt one is noticed.

mod artifacts;
mod blocks;
mod orphans;
mod proofs;
mod providers;
mod session;
mod transcript;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::install::{Tool, ensure};
use crate::run::{program, root, step};
use artifacts::Artifacts;
use blocks::Block;
pub(crate) use providers::write as write_providers;
use session::{Ran, Session};

const NOT_RUN: &[&str] =
    &["text", "json", "http", "sql", "yaml", "ini", "html", "js", "python", "diff", "dockerfile", "mermaid"];

/// What the documents tell people to type, beside hookstead.
const TOOLS: &[Tool] = &[
    Tool { program: "curl", package: "curl", needed_for: "a block of README.md" },
    Tool { program: "openssl", package: "openssl", needed_for: "a block of CONTRIBUTING.md" },
];

/// Stands in for every secret that a configuration takes from the environment: well-formed for all providers.
const ANY_SECRET: &str = "whsec_b25seS1mb3ItdGhlLWRvY3VtZW50cy1uZXZlci11c2Vk";

/// What became of the blocks so far.
#[derive(Default)]
struct Report {
    ran: usize,
    ignored: Vec<String>,
    failed: Vec<String>,
}

/// Runs the blocks of these files, or of all documents when none are given.
pub(crate) fn run(files: &[PathBuf]) -> Result<()> {
    let all = files.is_empty();
    let files = if all { documents()? } else { files.to_vec() };
    ensure(TOOLS)?;
    step("tests that the documents name", || proofs::check_all(root()))?;
    let artifacts = step("build the binary", artifacts::build)?;
    if all {
        step("pages of the providers", || providers::check(&artifacts))?;
    }
    let mut report = Report::default();
    for file in &files {
        step(&format!("blocks of {}", file.display()), || check_file(file, &artifacts, &mut report))?;
    }
    print(&report, files.len());
    if !report.failed.is_empty() {
        bail!("{} blocks of the documents failed", report.failed.len());
    }
    Ok(())
}

fn print(report: &Report, files: usize) {
    for failure in &report.failed {
        eprintln!("\n{failure}");
    }
    for ignored in &report.ignored {
        eprintln!("ignored  {ignored}");
    }
    let (ran, ignored, failed) = (report.ran, report.ignored.len(), report.failed.len());
    eprintln!("{files} documents: {ran} blocks ran, {failed} failed, {ignored} ignored");
}

/// README.md, CONTRIBUTING.md, the README.md of each crate, and every Markdown file below docs/, relative to the
/// root. Pages that are made are not among them: whether they are fresh is checked, and the binary's own tests
/// read their configurations.
fn documents() -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    for entry in fs::read_dir(root().join("crates")).context("cannot list crates/")? {
        let name = entry.context("cannot list crates/")?.file_name();
        found.push(Path::new("crates").join(name).join("README.md"));
    }
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if path != Path::new(providers::FOLDER) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.retain(|path| root().join(path).exists());
    found.sort();
    Ok(found)
}

fn check_file(file: &Path, artifacts: &Artifacts, report: &mut Report) -> Result<()> {
    let text =
        fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {}", file.display()))?;
    let blocks = blocks::parse(&text);
    let mut session = Session::start(&artifacts.binary_dir)?;
    for block in &blocks {
        let place = format!("{}:{}", file.display(), block.line);
        if block.is_ignored() {
            report.ignored.push(format!("{place}  {}", block.language));
        } else if let Err(failure) = check_block(block, &mut session) {
            report.failed.push(format!("{place}: {failure:#}"));
        } else if !NOT_RUN.contains(&block.language.as_str()) {
            report.ran += 1;
        }
    }
    if blocks.iter().any(|block| block.language == "rust" && !block.is_ignored())
        && let Err(failure) = rust_examples(file, artifacts)
    {
        report.failed.push(format!("{}: {failure:#}", file.display()));
    }
    Ok(())
}

fn check_block(block: &Block, session: &mut Session) -> Result<()> {
    match block.language.as_str() {
        "console" => console(block, session),
        "sh" => script(block, session),
        "toml" => configuration(block, session),
        blocks::BACKGROUND => expect_success(&session.run_beside(&block.text)?),
        // All of a file's at once, by rustdoc.
        "rust" => Ok(()),
        "" => bail!("a block without a language; write `text` if there is nothing to run"),
        other if NOT_RUN.contains(&other) => Ok(()),
        other => bail!("unknown language `{other}`; not run are {}", NOT_RUN.join(", ")),
    }
}

fn console(block: &Block, session: &mut Session) -> Result<()> {
    for exchange in transcript::parse(&block.text)? {
        let ran = session.run(&exchange.command)?;
        exchange.check(&ran)?;
    }
    Ok(())
}

fn script(block: &Block, session: &mut Session) -> Result<()> {
    expect_success(&session.run_strictly(&block.text)?)
}

fn configuration(block: &Block, session: &mut Session) -> Result<()> {
    let name = block.words.first().map_or("checked.toml", String::as_str);
    fs::write(session.folder().join(name), &block.text).context("cannot write the configuration")?;
    let variables: String =
        environment_names(&block.text).map(|name| format!("{name}='{ANY_SECRET}' ")).collect();
    expect_success(&session.run(&format!("{variables}hookstead config check {name}"))?)
}

/// The names in `{ env = "NAME" }`.
fn environment_names(toml: &str) -> impl Iterator<Item = &str> {
    toml.split("env = \"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(name, _)| name)
}

fn expect_success(ran: &Ran) -> Result<()> {
    if ran.exit_code != 0 {
        bail!("exit code {}\n{}", ran.exit_code, ran.output);
    }
    Ok(())
}

fn rust_examples(file: &Path, artifacts: &Artifacts) -> Result<()> {
    let mut rustdoc = program("rustdoc", &["--test", "--edition", "2024"]);
    artifacts.add_externs(&mut rustdoc);
    crate::run::check(rustdoc.arg(file))
}

/// A command of a document that runs longer than this is taken to hang.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_names_are_found_in_a_configuration() {
        let toml = "secret = { env = \"A\" }\nsecrets = [{ env = \"B\" }, { file = \"x\" }]\n";
        assert_eq!(environment_names(toml).collect::<Vec<_>>(), ["A", "B"]);
    }
}
