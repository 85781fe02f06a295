//! What the machine gives: room, file handles, the right time.

use std::path::{Path, PathBuf};

use hookstead_server::api::view::OpenFilesView;
use hookstead_server::config::{LimitsConfig, format_size, store_path};
use hookstead_server::{Config, open_files as open_files_here};
use hookstead_store::fs::Fs;
use hookstead_store::{Finding, OsFs};

const FREE_SPACE: &str = "free-space";
const OPEN_FILES: &str = "open-files";
const TIME: &str = "time-sync";

/// With less than this many times `min_free` a person is told before events are refused.
const ROOM_FACTOR: u64 = 2;

/// systemd's own word that the clock was set from the network.
const SYNCHRONISED: &str = "/run/systemd/timesync/synchronized";

/// How much is free where the store is, or would be.
pub(super) fn free_space(config: &Config) -> Finding {
    let Some(folder) = store_path(&config.store.url).and_then(nearest_folder) else {
        return Finding::skipped(FREE_SPACE, "the store is in memory");
    };
    let min = config.store.min_free;
    let free = match OsFs.free_bytes(&folder) {
        Ok(free) => free,
        Err(error) => {
            let words = format!("cannot ask what is free in `{}`: {error}", folder.display());
            return Finding::failed(FREE_SPACE, words, "check that the folder is there and yours");
        }
    };
    // Rounded, so that it is read at a glance.
    let (shown, must) = (crate::output::size(free), format_size(min));
    let words = format!("{shown} free in `{}`, {must} must stay (min_free)", folder.display());
    let fix = "make room, or lower min_free in [store]";
    match free {
        free if free < min => Finding::failed(FREE_SPACE, format!("{words}: new events are refused"), fix),
        free if free < min.saturating_mul(ROOM_FACTOR) => Finding::warning(FREE_SPACE, words, fix),
        _ => Finding::good(FREE_SPACE, words),
    }
}

fn nearest_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|above| above.is_dir()).map(Path::to_path_buf)
}

/// Whether a server that is started from here gets the file handles that its connections need.
pub(super) fn open_files(limits: &LimitsConfig) -> Finding {
    open_files_of(&OpenFilesView::from(open_files_here(limits)))
}

/// The same of a server that said what it got.
pub(super) fn open_files_of(files: &OpenFilesView) -> Finding {
    let needed = files.needed;
    match files.max {
        Some(max) if max < needed => Finding::warning(
            OPEN_FILES,
            format!("{max} at most, and the connections of [limits] need {needed}: some would wait"),
            "raise the system's limit (`ulimit -Hn`, LimitNOFILE of a systemd unit), or lower `connections` in [limits]",
        ),
        Some(max) => Finding::good(OPEN_FILES, format!("{max} at most, {needed} are needed")),
        None => Finding::good(OPEN_FILES, format!("as many as it wants, {needed} are needed")),
    }
}

/// Whether somebody keeps the clock right. Only systemd leaves a word for others; of other programs nothing is known.
pub(super) fn time_synchronised() -> Finding {
    if Path::new(SYNCHRONISED).exists() {
        return Finding::good(TIME, "the clock was set from the network");
    }
    Finding::skipped(TIME, "not known here; ask `timedatectl` or `chronyc tracking`")
}
