//! Connections and their settings: how a writer, a reader and a checkpointer are opened, and that the
//! settings which durability rests on are read back. It knows no table.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookstead_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::open::OpenOptions;

/// Bytes of a page. Larger than SQLite's default: fewer pages to write for a body of a few kilobytes.
pub(super) const PAGE_BYTES: u64 = 8192;

/// What a frame of the write-ahead log adds to its page, and what the log begins with, in bytes.
const FRAME_HEAD_BYTES: u64 = 24;
const WAL_HEAD_BYTES: u64 = 32;

/// Marks a database as ours in its header: `Hkst`.
pub(super) const APPLICATION_ID: i32 = 0x486b_7374;

/// SQLite before this version can damage a write-ahead log that two connections checkpoint and write.
pub(super) const SQLITE_NEEDED: (i32, &str) = (3_051_003, "3.51.3");

/// How many prepared statements a connection keeps: more than there are statements in this crate.
const STATEMENTS_MAX: usize = 128;

/// The page cache of the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// The page cache of each reader, in KiB: most reads are of what the operating system has cached.
const READER_CACHE_KIB: i64 = 2 * 1024;

/// `PRAGMA synchronous` as a number.
const SYNCHRONOUS_EXTRA: i64 = 3;

/// Where the database is and how it is to be opened.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) vfs: Option<String>,
    pub(super) busy_timeout: Duration,
    pub(super) wal: WalCap,
}

/// How large the write-ahead log may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalCap {
    /// Whole frames.
    pub(super) frames: u32,
}

impl WalCap {
    /// The fewest frames that make sense: a checkpoint must be able to keep up.
    const FRAMES_MIN: u64 = 64;

    /// The largest cap of whole frames within `bytes`.
    pub(super) fn within(bytes: u64) -> Self {
        let frames = bytes.saturating_sub(WAL_HEAD_BYTES) / (PAGE_BYTES + FRAME_HEAD_BYTES);
        Self { frames: u32::try_from(frames.max(Self::FRAMES_MIN)).unwrap_or(u32::MAX) }
    }

    /// The size of a log with so many frames, in bytes.
    pub(super) fn bytes(self) -> u64 {
        WAL_HEAD_BYTES + u64::from(self.frames) * (PAGE_BYTES + FRAME_HEAD_BYTES)
    }
}

impl Target {
    /// The database at `path` as these options want it opened.
    pub(super) fn of(path: &Path, options: &OpenOptions) -> Self {
        Self {
            path: path.to_owned(),
            vfs: options.vfs.clone(),
            busy_timeout: options.busy_timeout,
            wal: WalCap::within(options.wal_bytes_max),
        }
    }

    /// A connection that writes.
    pub(super) fn writer(&self) -> rusqlite::Result<Connection> {
        let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_CACHE_KIB)?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = EXTRA;
             PRAGMA fullfsync = ON;
             PRAGMA checkpoint_fullfsync = ON;
             PRAGMA foreign_keys = OFF;
             PRAGMA temp_store = MEMORY;
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA journal_size_limit = {};",
            self.wal.bytes()
        ))?;
        Ok(connection)
    }

    /// A connection that only reads.
    pub(super) fn reader(&self) -> rusqlite::Result<Connection> {
        let connection = self.open(OpenFlags::SQLITE_OPEN_READ_ONLY, READER_CACHE_KIB)?;
        connection.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY;")?;
        Ok(connection)
    }

    /// A connection that reads the database as if there were no log. Only for a moment in which nobody writes: it takes
    /// no lock.
    pub(super) fn without_log(&self) -> rusqlite::Result<Connection> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let uri = format!("file:{}?immutable=1", percent_encoded(self.path.as_os_str().as_bytes()));
        match &self.vfs {
            None => Connection::open_with_flags(uri, flags),
            Some(vfs) => Connection::open_with_flags_and_vfs(uri, flags, vfs.as_str()),
        }
    }

    fn open(&self, access: OpenFlags, cache_kib: i64) -> rusqlite::Result<Connection> {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match &self.vfs {
            None => Connection::open_with_flags(&self.path, flags)?,
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs.as_str())?,
        };
        // The last connection to close would otherwise remove the log, and the next start write it anew.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Plans that do not depend on the values: else statements are prepared anew when values are bound.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.busy_timeout(self.busy_timeout)?;
        connection.execute_batch(&format!("PRAGMA mmap_size = 0; PRAGMA cache_size = -{cache_kib};"))?;
        Ok(connection)
    }
}

/// A path within a URI.
fn percent_encoded(path: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    let encoded =
        |byte: &u8| if is_plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    path.iter().map(encoded).collect()
}

/// A setting that did not hold, and what it was instead.
#[derive(Debug)]
pub(super) struct NotKept(pub(super) &'static str, pub(super) String);

impl NotKept {
    /// As a failure of an open store: what it writes now would not be what was promised.
    pub(super) fn into_store_error(self) -> StoreError {
        StoreError::Poisoned { reason: format!("SQLite did not keep `{}`: it is `{}`", self.0, self.1) }
    }
}

/// Whether a writer has the settings that durability rests on.
pub(super) fn check_writer(connection: &Connection) -> rusqlite::Result<Option<NotKept>> {
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != SYNCHRONOUS_EXTRA {
        return Ok(Some(NotKept("synchronous = EXTRA", synchronous.to_string())));
    }
    check_journal_mode(connection)
}

/// Whether a connection finds the database in WAL mode. Only one that was opened after the mode was set and
/// committed to tells the truth: the one that set it believes itself.
pub(super) fn check_journal_mode(connection: &Connection) -> rusqlite::Result<Option<NotKept>> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok((mode != "wal").then_some(NotKept("journal_mode = WAL", mode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f5_a_connection_that_does_not_write_as_promised_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("events.db")).unwrap();
        let told = |connection: &Connection| check_writer(connection).unwrap().map(|NotKept(what, _)| what);
        for (pragmas, expected) in [
            ("PRAGMA journal_mode = WAL; PRAGMA synchronous = EXTRA", None),
            ("PRAGMA synchronous = FULL", Some("synchronous = EXTRA")),
            ("PRAGMA synchronous = EXTRA; PRAGMA journal_mode = DELETE", Some("journal_mode = WAL")),
        ] {
            connection.execute_batch(pragmas).unwrap();
            assert_eq!(told(&connection), expected, "{pragmas}");
        }
    }

    #[test]
    fn a_path_in_a_uri_names_nothing_but_itself() {
        assert_eq!(percent_encoded("/a b/ä?x=1#y%.db".as_bytes()), "/a%20b/%C3%A4%3Fx%3D1%23y%25.db");
    }

    #[test]
    fn a_cap_is_whole_frames() {
        let cap = WalCap::within(1024 * 1024);
        assert!(cap.bytes() <= 1024 * 1024 && cap.bytes() + PAGE_BYTES + FRAME_HEAD_BYTES > 1024 * 1024);
        assert_eq!(u64::from(WalCap::within(0).frames), WalCap::FRAMES_MIN);
    }
}
