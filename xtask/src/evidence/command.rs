//! `cargo xtask evidence`: what was done to the server how often, and what it lost: one table, on this machine.
//!
//! The checks are tests of the binary and of the stores; here are their sizes, and the table of what they wrote down.
//! It must not know how a check works.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::table;
use crate::longer::{Longer, Output, Record, Subject};
use crate::run::{output, program, root};

/// Show what becomes of acknowledged events under kills, faults, damage, a full disk and overload
///
/// A release build is killed at every system call and under load, its disk fails at every call, is slowed and filled,
/// its store's bytes are flipped. One table says how often, on which kernel and file system, and what was lost. A check
/// that fails says so, and its last line is the command that repeats it alone.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask evidence --quick\n  cargo xtask evidence --write docs/evidence.md\n  \
                        cargo xtask evidence --json"
)]
pub(crate) struct Evidence {
    /// As much as the test command does: some minutes
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Ten times as many kills, a longer overload
    #[arg(long)]
    long: bool,
    /// Seed of the random choices, as the table prints it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
    /// Put the table into this page, between its two marks
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// One check: its name, whose test it is, the filter that runs it, and the variables that say how much.
struct Check {
    name: &'static str,
    subject: Subject,
    filter: &'static str,
    variables: Vec<(&'static str, String)>,
}

/// Runs every check, also after one has failed, and shows the table of all that were done.
pub(crate) fn run(arguments: &Evidence) -> Result<()> {
    let longer = Longer::build(if arguments.json { Output::Kept } else { Output::Shown })?;
    let mut failed = Vec::new();
    for Check { name, subject, filter, variables } in checks(arguments) {
        if let Err(error) = longer.run_of(subject, name, filter, &variables) {
            let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
            failed.push(format!("{name}: {error:#}\n  again with: {set}cargo xtask test {filter}"));
        }
    }
    let records = longer.records()?;
    let table = table::of(&records, &machine()?, &command_line());
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&records).context("cannot make JSON of the records")?);
    } else {
        println!("\n{table}");
    }
    ensure!(failed.is_empty(), "{} checks failed\n{}", failed.len(), failed.join("\n"));
    no_losses(&records)?;
    arguments.write.as_ref().map_or(Ok(()), |file| write(&root().join(file), &table))
}

fn checks(arguments: &Evidence) -> Vec<Check> {
    // Quick, as it is, long.
    let size = |sizes: [u32; 3]| {
        sizes[if arguments.quick { 0 } else { 1 + usize::from(arguments.long) }].to_string()
    };
    let seed = || ("HOOKSTEAD_SEED", arguments.seed.to_string());
    let binary = |name, filter, variables| Check { name, subject: Subject::Binary, filter, variables };
    vec![
        binary("kill-points", "kill_points::", vec![("HOOKSTEAD_KILL_POINT_STEP", size([4, 1, 1]))]),
        binary("disk-faults", "disk_faults::", vec![("HOOKSTEAD_FAULT_STEP", size([5, 1, 1]))]),
        binary("kills under load", "kill_loop::", vec![("HOOKSTEAD_KILLS", size([20, 500, 5_000])), seed()]),
        binary(
            "kills of deliveries",
            "delivery_kills::",
            vec![("HOOKSTEAD_DELIVERY_KILLS", size([8, 300, 3_000])), seed()],
        ),
        binary("full disk", "full_disk::", Vec::new()),
        binary("storms", "storms::", vec![("HOOKSTEAD_STORM", size([2_000, 10_000, 10_000]))]),
        binary(
            "overload",
            "overload::run",
            vec![
                ("HOOKSTEAD_OVERLOAD_SECONDS", size([7, 30, 120])),
                ("HOOKSTEAD_OVERLOAD_RATE", size([400, 2_000, 3_000])),
            ],
        ),
        Check {
            name: "flipped bytes",
            subject: Subject::Store,
            filter: "flips::",
            variables: vec![("HOOKSTEAD_FLIPS", size([300, 20_000, 400_000]))],
        },
    ]
}

/// The tests fail of a loss by themselves; that the records agree is looked at all the same.
fn no_losses(records: &[Record]) -> Result<()> {
    ensure!(!records.is_empty(), "no check wrote anything down");
    for record in records {
        for (what, count) in record.figures.iter().filter(|(what, _)| table::is_loss(what)) {
            ensure!(*count == 0, "{} on {}: {what} {count}", record.check, record.store);
        }
    }
    Ok(())
}

/// Where it was done: the kernel, the processors, SQLite, and the commit that is checked out.
fn machine() -> Result<String> {
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's release")?;
    let cores = std::thread::available_parallelism().context("cannot count the processors")?;
    let commit = output(&mut program("git", &["rev-parse", "--short", "HEAD"]))?;
    Ok(format!("Linux {}, {cores} cores, SQLite {}, commit {}", kernel.trim(), sqlite()?, commit.trim()))
}

/// The version of the SQLite that is built in, as its source says.
fn sqlite() -> Result<String> {
    let metadata = output(&mut crate::run::cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).context("cargo's metadata is no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let package = packages.iter().find(|package| package["name"] == "libsqlite3-sys");
    let manifest = package
        .and_then(|package| package["manifest_path"].as_str())
        .context("there is no libsqlite3-sys")?;
    let header = PathBuf::from(manifest).with_file_name("sqlite3").join("sqlite3.h");
    let header = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let version = header.lines().find_map(|line| line.strip_prefix("#define SQLITE_VERSION "));
    Ok(version.context("SQLite's header has no version")?.trim().trim_matches('"').to_owned())
}

fn command_line() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo xtask {}", arguments.join(" "))
}

const BEGIN: &str = "<!-- evidence: begin -->";
const END: &str = "<!-- evidence: end -->";

fn write(file: &std::path::Path, table: &str) -> Result<()> {
    let page = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let page = replaced(&page, table)
        .with_context(|| format!("{} lacks the marks {BEGIN}, {END}", file.display()))?;
    fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
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

    #[test]
    fn the_table_stands_between_its_marks() {
        let page = format!("# A\n\n{BEGIN}\nold\n{END}\nrest\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("# A\n\n{BEGIN}\n\nnew\n\n{END}\nrest\n"));
        assert!(replaced("# A", "new").is_none());
    }

    #[test]
    fn a_loss_in_a_record_is_an_error() {
        let record = |lost: u64| Record {
            check: "storms".into(),
            store: "files".into(),
            ms: 1,
            file_system: "tmpfs".into(),
            figures: [("lost".to_owned(), lost), ("retries".to_owned(), 7)].into(),
        };
        assert!(no_losses(&[record(0)]).is_ok());
        assert_eq!(no_losses(&[record(1)]).unwrap_err().to_string(), "storms on files: lost 1");
        assert!(no_losses(&[]).is_err());
    }

    #[test]
    fn the_built_in_sqlite_has_a_version() {
        assert!(sqlite().unwrap().starts_with("3."));
    }
}
