//! Everything that one run found: as a table for people, as JSON for programs, and whether it may be called good.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::table;
use crate::longer::Record;

const BEGIN: &str = "<!-- evidence: begin -->";
const END: &str = "<!-- evidence: end -->";

/// What was found, and how to find it again.
#[derive(Serialize)]
pub(super) struct Report {
    /// The command that made it.
    pub(super) made_by: String,
    /// Kernel, processors, SQLite and commit.
    pub(super) on: String,
    pub(super) records: Vec<Record>,
    pub(super) failures: Vec<Failure>,
}

/// A check that did not hold.
#[derive(Serialize)]
pub(super) struct Failure {
    pub(super) check: &'static str,
    /// What went wrong.
    pub(super) why: String,
    /// The command that does it again, with the same seed.
    pub(super) again_with: String,
}

impl Report {
    /// The table of all records.
    pub(super) fn table(&self) -> String {
        table::of(&self.records, &self.on, &self.made_by)
    }

    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).context("cannot make JSON of the records")
    }

    /// Fails with every check that did not hold; and if a record holds a loss, though its test should have failed of it.
    pub(super) fn judge(&self) -> Result<()> {
        let failed = |failure: &Failure| {
            let Failure { check, why, again_with } = failure;
            format!("{check}: {why}\n  again with: {again_with}")
        };
        let failures: Vec<String> = self.failures.iter().map(failed).collect();
        ensure!(failures.is_empty(), "{} checks failed\n{}", failures.len(), failures.join("\n"));
        ensure!(!self.records.is_empty(), "no check wrote anything down");
        for record in &self.records {
            for (what, count) in record.figures.iter().filter(|(what, _)| table::is_loss(what)) {
                ensure!(*count == 0, "{} on {}: {what} {count}", record.check, record.store);
            }
        }
        Ok(())
    }

    /// Puts the table into a page, between its marks.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let page = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let page = replaced(&page, &self.table())
            .with_context(|| format!("{} lacks the marks {BEGIN}, {END}", file.display()))?;
        fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
    }
}

/// The page with the table between its marks.
fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lost: u64) -> Report {
        let record = Record {
            check: "storms".into(),
            store: "files".into(),
            ms: 1,
            file_system: "tmpfs".into(),
            figures: [("lost".to_owned(), lost), ("retries".to_owned(), 7)].into(),
        };
        let (made_by, on) = ("cargo xtask evidence".to_owned(), "Linux".to_owned());
        Report { made_by, on, records: vec![record], failures: Vec::new() }
    }

    #[test]
    fn the_table_stands_between_its_marks() {
        let page = format!("# A\n\n{BEGIN}\nold\n{END}\nrest\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("# A\n\n{BEGIN}\n\nnew\n\n{END}\nrest\n"));
        assert!(replaced("# A", "new").is_none());
    }

    #[test]
    fn a_loss_in_a_record_is_an_error_and_so_is_no_record() {
        assert!(report(0).judge().is_ok());
        assert_eq!(report(1).judge().unwrap_err().to_string(), "storms on files: lost 1");
        assert!(Report { records: Vec::new(), ..report(0) }.judge().is_err());
    }

    #[test]
    fn a_failure_ends_with_the_command_that_repeats_it() {
        let again_with = "cargo xtask evidence --only storms --seed 7".to_owned();
        let failure = Failure { check: "storms", why: "exit code 101".to_owned(), again_with };
        let error = Report { failures: vec![failure], ..report(0) }.judge().unwrap_err().to_string();
        assert!(error.ends_with("again with: cargo xtask evidence --only storms --seed 7"), "{error}");
    }
}
