//! The record of one try of a delivery.

use bytes::Bytes;

use crate::lease::LeaseToken;
use crate::time::Timestamp;

/// How much of a target's answer is kept, in bytes.
pub const ATTEMPT_EXCERPT_BYTES_MAX: usize = 4 * 1024;

/// How many attempts of one delivery are kept; of more, the newest.
pub const ATTEMPTS_KEPT_MAX: usize = 100;

/// One try of a delivery: what was done and what the target said. Written with the settle that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The lease that it was made under.
    pub token: LeaseToken,
    /// Which attempt it was, from 1.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// The target's HTTP status or exit code, if there was one.
    pub status: Option<u16>,
    /// The beginning of the target's answer, as bytes; at most [`ATTEMPT_EXCERPT_BYTES_MAX`].
    pub excerpt: Bytes,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// The rule that turned the answer into a verdict, by name.
    pub rule: Option<String>,
}
