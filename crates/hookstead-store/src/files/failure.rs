//! What each error of the disk means for the store: the one place where it is decided whether a failure
//! poisons. It knows no operation.

use std::io;

use hookstead_core::StoreError;
use rustix::io::Errno;

/// The failure of a write that was not a sync: no space and no file handles are `Full`, everything else
/// poisons, since nobody knows what is on the disk now.
pub(super) fn writing(doing: impl Into<String>, error: &io::Error) -> StoreError {
    let what = format!("{}: {error}", doing.into());
    if is_full(error) { StoreError::Full { what } } else { StoreError::Poisoned { reason: what } }
}

/// The failure of a sync, of a file or a directory. It always poisons: what the kernel shows from now on may
/// not be on the disk, and a second sync that succeeds proves nothing.
pub(super) fn syncing(what: impl Into<String>, error: &io::Error) -> StoreError {
    StoreError::Poisoned { reason: format!("sync {}: {error}", what.into()) }
}

/// The failure of a read. Reads change nothing, so they poison nothing.
pub(super) fn reading(what: &str, error: io::Error) -> StoreError {
    if is_full(&error) {
        return StoreError::Full { what: format!("read {what}: {error}") };
    }
    StoreError::backend(format!("read {what}"), error)
}

/// A record that is damaged or contradicts what is known of it.
pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

/// Whether an error says that something ran out that may come back.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || Errno::from_io_error(error).is_some_and(|errno| {
            [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE, Errno::NOMEM]
                .contains(&errno)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn what_runs_out_is_no_reason_to_stop_and_everything_unknown_is() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE] {
            assert!(matches!(writing("write", &os(errno)), StoreError::Full { .. }), "{errno}");
            assert!(matches!(syncing("a", &os(errno)), StoreError::Poisoned { .. }), "{errno}");
        }
        for errno in [Errno::IO, Errno::ROFS, Errno::NOENT, Errno::ACCESS, Errno::STALE] {
            assert!(matches!(writing("write", &os(errno)), StoreError::Poisoned { .. }), "{errno}");
        }
    }

    #[test]
    fn a_read_poisons_nothing() {
        assert!(matches!(reading("a", os(Errno::IO)), StoreError::Backend { .. }));
        assert!(matches!(reading("a", os(Errno::MFILE)), StoreError::Full { .. }));
    }
}
