//! How a run of the bench is set up.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// The size of every body but those of the memory test: what the bars are written for.
pub(super) const BODY_BYTES: usize = 1024;

/// What the command line says.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    pub(super) rounds: u32,
    /// How long each contestant is measured in each round.
    pub(super) seconds: f64,
    /// How long it is under load before.
    pub(super) warm_up_seconds: f64,
    pub(super) body_bytes: usize,
    pub(super) seed: u64,
    /// How many events the growth bench fills in.
    pub(super) growth_events: u64,
    /// Where the servers keep their files; the disk that is measured.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

impl Settings {
    pub(super) fn measured(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    pub(super) fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up_seconds)
    }
}

/// SplitMix64's mixer: it maps 64 bits to 64 bits one to one, so that a count becomes ids in no order which never
/// repeat.
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
