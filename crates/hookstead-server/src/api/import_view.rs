//! What an import answers, as types.

use serde::{Deserialize, Serialize};

/// How much a request that imports may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportLimits {
    /// How many lines.
    pub lines_max: usize,
    /// How many bytes, of several lines.
    pub bytes_max: u64,
    /// The longest line, in bytes without its LF; one that is longer than `bytes_max` comes alone.
    pub line_bytes_max: u64,
}

/// What became of the lines of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportView {
    /// An answer for each line that is not blank, in their order.
    pub lines: Vec<ImportedLine>,
}

/// What became of one line. Whatever it says of an event rests on a durable commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedLine {
    /// The number of the line in the request, from 1.
    pub line: u64,
    /// `stored`; `duplicate`: it was there with the same bytes; `conflict`: it is there with other bytes, is untouched,
    /// and these are kept beside it; `erased`: the line has no body, so nothing was stored, and its identity is
    /// unknown here; `refused`.
    pub outcome: String,
    /// The event that holds the identity.
    pub event: Option<String>,
    /// Its short id.
    pub short_id: Option<String>,
    /// If refused: the stable name of the reason.
    pub code: Option<String>,
    /// If refused: what is wrong.
    pub reason: Option<String>,
    /// If refused: what to do.
    pub fix: Option<String>,
}
