//! The pages of guarantees, limits and evidence name the test behind each promise; here is that every name exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Shorter words in backticks are no names of tests: columns, verbs, keys.
const NAME_BYTES_MIN: usize = 16;

/// The pages that name tests.
const PAGES: &[&str] = &["docs/guarantees.md", "docs/limits.md", "docs/evidence.md"];

/// Checks every page that names tests.
pub(crate) fn check_all(root: &Path) -> Result<()> {
    PAGES.iter().try_for_each(|page| check(root, page))
}

/// Fails with the names in `page` that no function of the workspace has.
fn check(root: &Path, page: &str) -> Result<()> {
    let text = fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))?;
    let mut functions = BTreeSet::new();
    collect_functions(&root.join("crates"), &mut functions)?;
    let missing: Vec<&str> = names(&text).filter(|name| !functions.contains(*name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("{page} names tests that do not exist: {}", missing.join(", "))
}

/// The test names in a page: long words in backticks made of small letters, digits and `_`.
fn names(page: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| {
        let parts = word.matches('_').count();
        word.len() >= NAME_BYTES_MIN
            && parts >= 2
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    page.split('`').skip(1).step_by(2).filter(is_name)
}

fn collect_functions(folder: &Path, functions: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect_functions(&path, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            functions.extend(source.split("fn ").skip(1).map(|after| {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after[..end].to_owned()
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_names_a_test_that_exists() {
        check_all(crate::run::root()).unwrap();
    }

    #[test]
    fn a_name_that_does_not_exist_is_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("crates")).unwrap();
        fs::write(folder.path().join("page.md"), "see `a_test_that_nobody_wrote` and `short_name`").unwrap();
        let error = check(folder.path(), "page.md").unwrap_err().to_string();
        assert!(error.ends_with("do not exist: a_test_that_nobody_wrote"), "{error}");
    }
}
