//! What each error of SQLite means for the store: the one place where it is decided whether a failure
//! poisons. It knows no operation.

use hookstead_core::StoreError;
use rusqlite::ErrorCode;

/// What SQLite was at when it failed: the same code means different things at different moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A statement that only reads.
    Read,
    /// A statement that changes rows, or takes the write lock.
    Write,
    /// The commit itself.
    Commit,
}

/// The failure of a statement that only reads, in store words.
pub(super) fn reading(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| store_error(Moment::Read, doing, error)
}

/// The failure of a statement that changes rows, in store words.
pub(super) fn writing(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| store_error(Moment::Write, doing, error)
}

/// The failure of a commit, in store words.
pub(super) fn committing(error: rusqlite::Error) -> StoreError {
    store_error(Moment::Commit, "commit", error)
}

/// The failure of a statement of an effect, if it is the store's; `None` if it is the statement's own.
pub(super) fn of_an_effect(error: &rusqlite::Error) -> Option<StoreError> {
    use ErrorCode::{
        AuthorizationForStatementDenied, DatabaseBusy, DatabaseLocked, OperationAborted, PermissionDenied,
    };
    let its_own = match error.sqlite_error() {
        None => true,
        // A virtual table says so of what it keeps in tables that an effect may write.
        Some(code) if code.extended_code == rusqlite::ffi::SQLITE_CORRUPT_VTAB => true,
        Some(code) => matches!(
            code.code,
            AuthorizationForStatementDenied
                | DatabaseBusy
                | DatabaseLocked
                | OperationAborted
                | PermissionDenied
        ),
    };
    let what = || format!("run the statements of an effect: {}", describe(error));
    match meaning(Moment::Write, error.sqlite_error_code()) {
        _ if its_own => None,
        Meaning::Full => Some(StoreError::Full { what: what() }),
        Meaning::Poisoned => Some(StoreError::Poisoned { reason: what() }),
        Meaning::Busy | Meaning::Corrupt | Meaning::Other => None,
    }
}

fn store_error(moment: Moment, doing: &str, error: rusqlite::Error) -> StoreError {
    let what = format!("{doing}: {}", describe(&error));
    if moment == Moment::Read && is_of_a_value(&error) {
        return StoreError::Corrupt { what };
    }
    match meaning(moment, error.sqlite_error_code()) {
        Meaning::Busy => StoreError::Busy { what },
        Meaning::Full => StoreError::Full { what },
        Meaning::Poisoned => StoreError::Poisoned { reason: what },
        Meaning::Corrupt => StoreError::Corrupt { what },
        Meaning::Other => StoreError::backend(doing, error),
    }
}

/// The message, with the extended code: `disk I/O error` alone does not say which.
fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) => format!("{error} (SQLite code {})", code.extended_code),
        None => error.to_string(),
    }
}

/// Whether a column holds what no write of ours puts there, or a row is missing that must be there.
fn is_of_a_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::Utf8Error(..)
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Busy,
    Full,
    Poisoned,
    Corrupt,
    Other,
}

fn meaning(moment: Moment, code: Option<ErrorCode>) -> Meaning {
    match (moment, code) {
        (_, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => Meaning::Busy,
        (_, Some(ErrorCode::DiskFull | ErrorCode::CannotOpen)) => Meaning::Full,
        (Moment::Read, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) => Meaning::Corrupt,
        (Moment::Read, _) => Meaning::Other,
        (Moment::Write, Some(ErrorCode::OutOfMemory)) => Meaning::Full,
        // These are about the statement and its values, and SQLite has written nothing.
        (
            Moment::Write,
            None
            | Some(
                ErrorCode::ConstraintViolation
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::OperationInterrupted
                | ErrorCode::SchemaChanged
                | ErrorCode::ApiMisuse
                | ErrorCode::Unknown,
            ),
        ) => Meaning::Other,
        // An input or output error, a disk that became read-only, damage found while writing, and whatever
        // is not known to be harmless: the disk cannot be trusted to hold what it showed before.
        _ => Meaning::Poisoned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_poisons_and_what_does_not() {
        use ErrorCode::{
            CannotOpen, ConstraintViolation, DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly,
            SystemIoFailure,
        };
        for moment in [Moment::Write, Moment::Commit] {
            for code in [SystemIoFailure, ReadOnly, DatabaseCorrupt, NotADatabase] {
                assert_eq!(meaning(moment, Some(code)), Meaning::Poisoned, "{moment:?} {code:?}");
            }
            assert_eq!(meaning(moment, Some(DiskFull)), Meaning::Full);
            assert_eq!(meaning(moment, Some(CannotOpen)), Meaning::Full);
            assert_eq!(meaning(moment, Some(DatabaseBusy)), Meaning::Busy);
        }
        assert_eq!(meaning(Moment::Write, Some(ConstraintViolation)), Meaning::Other);
        assert_eq!(meaning(Moment::Commit, Some(ConstraintViolation)), Meaning::Poisoned);
        assert_eq!(meaning(Moment::Commit, None), Meaning::Poisoned);
    }

    #[test]
    fn damage_that_a_read_meets_is_of_that_record_alone() {
        assert_eq!(meaning(Moment::Read, Some(ErrorCode::DatabaseCorrupt)), Meaning::Corrupt);
        assert_eq!(meaning(Moment::Read, Some(ErrorCode::SystemIoFailure)), Meaning::Other);
    }
}
