//! The steps of a start by name, and in which order each kind of store takes them.

use std::fmt;

/// One step of a start. When it fails the start ends, and nothing is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartStep {
    /// The linked SQLite damages nothing by itself.
    Library,
    /// The store lies on a file system whose locks and syncs mean something.
    FileSystem,
    /// Nobody else has the store open.
    Lock,
    /// What is there is ours, and of a version that this program knows.
    Format,
    /// What the page cache shows is what the disk has.
    PageCache,
    /// The log is whole.
    Log,
    /// The settings that durability rests on hold.
    Settings,
    /// The index of the identities is read, and what the last process did not write of it is known again.
    Identities,
    /// The records are brought in line with the log.
    Records,
    /// The newest events match their digests.
    Integrity,
    /// A write is committed and read back.
    WriteProbe,
    /// The entries of the folders are durable.
    Folders,
}

impl StartStep {
    /// The steps of a `sqlite:` store in their order.
    pub const SQLITE: &[Self] = &[
        Self::Library,
        Self::FileSystem,
        Self::Lock,
        Self::Format,
        Self::PageCache,
        Self::Log,
        Self::Settings,
        Self::Integrity,
        Self::Identities,
        Self::WriteProbe,
        Self::Folders,
    ];

    /// The steps of a `files:` store in their order.
    pub const FILES: &[Self] = &[
        Self::FileSystem,
        Self::Format,
        Self::Lock,
        Self::WriteProbe,
        Self::PageCache,
        Self::Log,
        Self::Records,
        Self::Integrity,
    ];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Library => "sqlite-library",
            Self::FileSystem => "file-system",
            Self::Lock => "lock",
            Self::Format => "format",
            Self::PageCache => "page-cache",
            Self::Log => "log",
            Self::Settings => "settings",
            Self::Identities => "identities",
            Self::Records => "records",
            Self::Integrity => "integrity",
            Self::WriteProbe => "write-probe",
            Self::Folders => "folders",
        }
    }

    /// What is true once it went well, where the step itself has nothing closer to say.
    pub(crate) fn proves(self) -> &'static str {
        match self {
            Self::Library => "SQLite is new enough",
            Self::FileSystem => "a local file system",
            Self::Lock => "nobody else has the store open",
            Self::Format => "a store of ours, of a version that is known",
            Self::PageCache => "synced and dropped, so that what is read comes from the disk",
            Self::Log => "whole",
            Self::Settings => "WAL, synchronous=EXTRA, read back",
            Self::Identities => {
                "every identity is found again, also those that wait to be written to the index"
            }
            Self::Records => "in line with the log",
            Self::Integrity => "the newest events match their digests",
            Self::WriteProbe => "a write was committed and read back",
            Self::Folders => "their entries are durable",
        }
    }
}

impl fmt::Display for StartStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
