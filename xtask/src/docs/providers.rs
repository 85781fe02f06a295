//! docs/providers/: a page for each provider, printed by the binary and stored here.
//!
//! The binary makes the pages; this file only knows where they are, and whether they are the same as those that
//! are stored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::artifacts::{self, Artifacts};
use crate::run::{output, program, root, step};

/// Where the pages are, from the root.
pub(super) const FOLDER: &str = "docs/providers";

const INDEX: &str = "README.md";

/// Most names that a complaint lists; the rest is counted.
const LISTED_MAX: usize = 5;

/// File name to content.
type Pages = BTreeMap<String, String>;

/// Writes all pages anew, and removes those of providers that are gone.
pub(crate) fn write() -> Result<()> {
    let artifacts = step("build the binary", artifacts::build)?;
    let pages = made(&artifacts.binary_dir)?;
    let stored = stored()?;
    fs::create_dir_all(folder()).with_context(|| format!("cannot make {FOLDER}"))?;
    for name in stored.keys().filter(|name| !pages.contains_key(*name)) {
        fs::remove_file(folder().join(name)).with_context(|| format!("cannot remove {FOLDER}/{name}"))?;
    }
    for (name, text) in pages.iter().filter(|(name, text)| stored.get(*name) != Some(text)) {
        fs::write(folder().join(name), text).with_context(|| format!("cannot write {FOLDER}/{name}"))?;
        eprintln!("wrote {FOLDER}/{name}");
    }
    eprintln!("{} pages", pages.len());
    Ok(())
}

/// Fails unless the stored pages are those that the binary prints.
pub(super) fn check(artifacts: &Artifacts) -> Result<()> {
    let stale = differing(&made(&artifacts.binary_dir)?, &stored()?);
    if stale.is_empty() {
        return Ok(());
    }
    let listed = stale.iter().take(LISTED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    bail!("{} pages of {FOLDER} are not fresh ({listed}): run `cargo xtask providers-docs`", stale.len())
}

/// The names of pages that are in one of the two only, or not the same in both.
fn differing(made: &Pages, stored: &Pages) -> Vec<String> {
    let mut names: Vec<&String> = made.keys().chain(stored.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| made.get(*name) != stored.get(*name)).cloned().collect()
}

fn made(binary_dir: &Path) -> Result<Pages> {
    let binary = binary_dir.join("hookstead");
    let binary = binary.to_str().context("the binary's folder has a name that is no text")?;
    let print = |arguments: &[&str]| output(&mut program(binary, &[&["providers"], arguments].concat()));
    let list: Vec<Value> =
        serde_json::from_str(&print(&["list", "--json"])?).context("the list is no JSON")?;
    let mut pages = Pages::from([(INDEX.to_owned(), print(&["list", "--markdown"])?)]);
    for entry in &list {
        let name = entry["provider"].as_str().context("a provider without a name")?;
        pages.insert(format!("{name}.md"), print(&["show", name, "--markdown"])?);
    }
    Ok(pages)
}

fn stored() -> Result<Pages> {
    let Ok(entries) = fs::read_dir(folder()) else { return Ok(Pages::new()) };
    let mut pages = Pages::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {FOLDER}"))?;
        let name = entry.file_name().into_string().ok().context("a page with a name that is no text")?;
        let text =
            fs::read_to_string(entry.path()).with_context(|| format!("cannot read {FOLDER}/{name}"))?;
        pages.insert(name, text);
    }
    Ok(pages)
}

fn folder() -> PathBuf {
    root().join(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_left_over_or_changed_is_not_fresh() {
        let pages = |list: &[(&str, &str)]| -> Pages {
            list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let made = pages(&[("a.md", "1"), ("b.md", "2"), ("c.md", "3")]);
        assert!(differing(&made, &made).is_empty());
        let stored = pages(&[("a.md", "1"), ("b.md", "old"), ("d.md", "4")]);
        assert_eq!(differing(&made, &stored), ["b.md", "c.md", "d.md"]);
    }
}
