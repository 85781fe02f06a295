//! `hookstead store backup` and `hookstead store restore`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use hookstead_store::{BackupError, BackupReport, OpenError, OpenOptions};
use serde::Serialize;

use super::progress::Progress;
use crate::failure::{Exit, Failure};
use crate::output::{self, GOOD, counted};
use crate::place::PlaceArgs;
use crate::reader;
use crate::sample::now;

const BACKUP_EXAMPLES: &str = "\
Examples:
  hookstead store backup /backups/monday
  hookstead store backup /backups/monday --data /var/lib/hookstead --json";

const BACKUP_HELP: &str = "\
The folder gets `store/`, a whole store; `SHA256SUMS`, for `sha256sum -c`; and at last `backup.json`. Secrets and the \
configuration are not in it. While a sqlite store is copied its log cannot be reset: a server that writes more than \
16 MiB meanwhile answers 503 until the copy is through.

JSON: {\"ok\", \"store\", \"backup\", \"begun_at\", \"events\", \"files\", \"bytes\", \"problem_count\", \
\"older_schema\"}, the last of which is null unless a start would change the schema. Exit code 7 if the store is damaged: \
it was copied as it is.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  hookstead store restore /backups/monday
  hookstead store restore /backups/monday --data /var/lib/restored --json";

const RESTORE_HELP: &str = "\
JSON: {\"ok\", \"store\", \"backup\", \"begun_at\", \"events\", \"files\", \"bytes\", \"problem_count\", \
\"older_schema\"}, the last of which is null unless a start will change the schema. Exit code 7 if the backup is \
of a damaged store: it was restored as it was.";

/// Copy the store into a new folder, also while a server writes to it
///
/// Every event that was acknowledged before the start is in it. It is checked, and on the disk when this ends.
#[derive(Debug, Args)]
#[command(before_help = BACKUP_EXAMPLES, after_help = BACKUP_HELP)]
pub(super) struct Backup {
    /// The folder: a new one, or an empty one.
    #[arg(value_name = "FOLDER")]
    to: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Put a backup back where there is no store; nothing is ever written over
///
/// Each file must have the digest that was taken when the backup was made. The store is checked, and on the disk when
/// this ends.
#[derive(Debug, Args)]
#[command(before_help = RESTORE_EXAMPLES, after_help = RESTORE_HELP)]
pub(super) struct Restore {
    /// The folder of the backup.
    #[arg(value_name = "FOLDER")]
    from: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn backup(args: &Backup) -> Result<()> {
    let url = args.place.load()?.store.url;
    let mut progress = Progress::new();
    let step = &mut |seen| progress.show_backup(seen);
    let made = hookstead_store::backup(&url, &args.to, &options(), now(), step);
    progress.clear()?;
    let report = made.map_err(|error| failed(&error))?;
    tell(&report, &url, &args.to, args.json, "backed up")
}

pub(super) fn restore(args: &Restore) -> Result<()> {
    let url = args.place.load()?.store.url;
    let mut progress = Progress::new();
    let step = &mut |seen| progress.show_backup(seen);
    let done = hookstead_store::restore(&args.from, &url, &options(), now(), step);
    progress.clear()?;
    let report = done.map_err(|error| failed(&error))?;
    tell(&report, &url, &args.from, args.json, "restored")
}

/// Damaged events are copied and named; they keep nobody from saving the others.
fn options() -> OpenOptions {
    OpenOptions { spot_check_events: 0, ..OpenOptions::default() }
}

fn failed(error: &BackupError) -> Failure {
    let code = match error {
        BackupError::Open(error @ OpenError::Damaged { .. }) => {
            return Failure::new(Exit::Failed, "damaged", error.reason())
                .fix("find everything that is damaged: hookstead store check");
        }
        BackupError::Open(error) => return reader::refused(error),
        BackupError::NoStore { .. } => {
            return Failure::new(Exit::NotFound, "no-store", error.to_string())
                .fix("name its data folder with --data DIR, or its configuration with --config FILE");
        }
        BackupError::Taken { .. } => {
            return Failure::new(Exit::Refused, "taken", error.to_string());
        }
        BackupError::NoBackup { .. } => "no-backup",
        BackupError::Damaged { .. } => "damaged",
        BackupError::NoFiles { .. } | BackupError::OtherKind { .. } => "other-kind",
        _ => "backup",
    };
    Failure::new(Exit::Failed, code, error.to_string()).because(error)
}

/// What was done, for programs.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    store: &'a str,
    backup: &'a Path,
    begun_at: &'a str,
    events: u64,
    files: u64,
    bytes: u64,
    problem_count: u64,
    older_schema: Option<u32>,
}

fn tell(report: &BackupReport, url: &str, folder: &Path, json: bool, done: &str) -> Result<()> {
    let problem_count = report.check.problem_count;
    if json {
        output::json(&Document {
            ok: problem_count == 0,
            store: url,
            backup: folder,
            begun_at: &report.begun_at,
            events: report.check.events,
            files: report.files,
            bytes: report.bytes,
            problem_count,
            older_schema: report.older_schema,
        })?;
    } else {
        print(report, url, folder, done)?;
    }
    match problem_count {
        0 => Ok(()),
        count => Err(Failure::new(
            Exit::Partly,
            "damaged",
            format!("the store was {done} with {} in it, as it was", counted(count, "problem", "problems")),
        )
        .fix("see which events they concern: hookstead store check")
        .into()),
    }
}

fn print(report: &BackupReport, url: &str, folder: &Path, done: &str) -> Result<()> {
    output::labelled("store", url)?;
    output::labelled("backup", format_args!("{}, begun {}", folder.display(), report.begun_at))?;
    let (events, files) =
        (counted(report.check.events, "event", "events"), counted(report.files, "file", "files"));
    let size = output::size(report.bytes);
    output::labelled(done_label(done), format_args!("{events} in {files}, {size}"))?;
    if let Some(schema) = report.older_schema {
        output::labelled(
            "schema",
            format_args!("{schema}, an older one: the first start with it changes that"),
        )?;
    }
    if report.check.problem_count == 0 {
        output::labelled("result", format_args!("{GOOD}checked, and on the disk{GOOD:#}"))?;
    }
    Ok(())
}

/// Labels are short.
fn done_label(done: &str) -> &'static str {
    if done == "restored" { "restored" } else { "copied" }
}
