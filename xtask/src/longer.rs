//! Tests of the binary at another size than in the test command: with a release build, and one after the other so that
//! none is another's load. Their figures come back as the records that they write.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::run::{cargo, check, step};

/// Whose tests they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The real binary's.
    Binary,
    /// The stores', within their own process.
    Store,
}

impl Subject {
    fn test(self) -> [&'static str; 6] {
        let package = match self {
            Self::Binary => "hookstead-cli",
            Self::Store => "hookstead-store",
        };
        ["test", "--release", "--package", package, "--test", "it"]
    }
}

/// What a test found out on one store.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    /// What was checked.
    pub(crate) check: String,
    pub(crate) store: String,
    /// How long it took.
    pub(crate) ms: u64,
    /// The kind of file system that the store was on.
    pub(crate) file_system: String,
    pub(crate) figures: BTreeMap<String, u64>,
}

/// The tests, built, and a folder for what they write down.
pub(crate) struct Longer {
    records: tempfile::TempDir,
    output: Output,
}

/// Where the tests' own words go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// To stdout.
    Shown,
    /// Nowhere, unless one fails: stdout is for JSON.
    Kept,
}

impl Longer {
    /// Builds those of the subjects for release.
    pub(crate) fn build(output: Output, subjects: &[Subject]) -> Result<Self> {
        step("build for release", || {
            subjects.iter().try_for_each(|subject| check(cargo(&subject.test()).arg("--no-run")))
        })?;
        let records = tempfile::tempdir().context("cannot make a temporary folder")?;
        Ok(Self { records, output })
    }

    /// Runs those of the binary whose names hold `filter`, with these variables in their environment.
    pub(crate) fn run(&self, what: &str, filter: &str, variables: &[(&str, String)]) -> Result<()> {
        self.run_of(Subject::Binary, what, filter, variables, 1)
    }

    /// The same of another subject, and so many tests at a time.
    pub(crate) fn run_of(
        &self,
        subject: Subject,
        what: &str,
        filter: &str,
        variables: &[(&str, String)],
        at_once: u8,
    ) -> Result<()> {
        step(what, || {
            let mut test = cargo(&subject.test());
            test.args(["--", filter, "--test-threads", &at_once.to_string()]);
            match self.output {
                Output::Shown => test.arg("--nocapture"),
                // The harness of the tests speaks to stdout: to stderr with it.
                Output::Kept => test.stdout(std::io::stderr()),
            };
            test.env("HOOKSTEAD_EVIDENCE", self.records.path());
            test.envs(variables.iter().map(|(name, value)| (name, value)));
            check(&mut test)
        })
    }

    /// What the tests wrote down, in the order of its names.
    pub(crate) fn records(&self) -> Result<Vec<Record>> {
        read(self.records.path())
    }
}

fn read(folder: &Path) -> Result<Vec<Record>> {
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record =
            serde_json::from_slice(&text).with_context(|| format!("{} is no record", path.display()))?;
        records.insert(path, record);
    }
    Ok(records.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_the_tests_write_them() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            r#"{"check":"storms","store":"files","ms":7,"file_system":"ext2/ext3","figures":{"lost":0}}"#;
        fs::write(folder.path().join("storms-files.json"), text).unwrap();
        let records = read(folder.path()).unwrap();
        assert_eq!(
            serde_json::to_value(&records[0]).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
        fs::write(folder.path().join("other.json"), "{}").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
