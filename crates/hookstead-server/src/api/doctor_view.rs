//! What a server says of how it does, as JSON.

use hookstead::SkewFacts;
use hookstead::store::Finding;
use serde::{Deserialize, Serialize};

use crate::descriptors::OpenFiles;

/// What only the process itself knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorView {
    /// The program's version.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// The machine's wall time.
    pub now: String,
    /// How the steps of its store's start came out, in their order.
    pub start: Vec<FindingView>,
    /// Its file handles.
    pub open_files: OpenFilesView,
    /// How far the signed times of each source's requests are from their arrival, by name; without sources to which
    /// nothing with a time came.
    pub sources: Vec<SourceClockView>,
}

/// How one check came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    /// What was checked.
    pub name: String,
    /// `ok`, `skip`, `warn` or `fail`.
    pub outcome: String,
    /// What was seen, or why it failed.
    pub what: String,
    /// What to do about it, if anything is.
    pub fix: Option<String>,
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            name: finding.name.clone(),
            outcome: finding.verdict.to_string(),
            what: finding.words.clone(),
            fix: Some(finding.fix.clone()).filter(|fix| !fix.is_empty()),
        }
    }
}

/// File handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFilesView {
    /// As many as the connections of the limits and everything beside them need.
    pub needed: u64,
    /// As many as the system gives; `null`: as many as it wants.
    pub max: Option<u64>,
}

impl From<OpenFiles> for OpenFilesView {
    fn from(files: OpenFiles) -> Self {
        Self { needed: files.needed, max: files.max }
    }
}

/// How far the signed times of a source's requests are from their arrival, since the source was configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceClockView {
    /// The source's name.
    pub source: String,
    /// Verified requests with a signed time.
    pub verified: u64,
    /// Of the newest of them the shortest time from signing to arrival; negative if the sender's clock is ahead.
    pub skew_min_ms: Option<i64>,
    /// The same, the median.
    pub skew_median_ms: Option<i64>,
    /// Refused because they were signed too long ago.
    pub too_old: u64,
    /// Refused because they were signed in the future.
    pub too_new: u64,
}

impl SourceClockView {
    /// Of a source of this name.
    pub(crate) fn new(source: &str, facts: &SkewFacts) -> Self {
        let millis = |micros: i64| micros.div_euclid(1_000);
        Self {
            source: source.to_owned(),
            verified: facts.verified,
            skew_min_ms: facts.min_micros.map(millis),
            skew_median_ms: facts.median_micros.map(millis),
            too_old: facts.too_old,
            too_new: facts.too_new,
        }
    }
}
