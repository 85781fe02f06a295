//! File handles: as many as the configured connections need, where the system gives them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::LimitsConfig;
use crate::limits::{ADMIN_CONNECTIONS_MAX, DESCRIPTORS_BESIDE};

/// File handles of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// As many as the connections of the limits and everything beside them need.
    pub needed: u64,
    /// As many as the system gives, once a server has raised its own limit; `None`: as many as it wants.
    pub max: Option<u64>,
}

/// How many files a server with these limits needs and could get, asked of this process.
pub fn open_files(limits: &LimitsConfig) -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    let needed = needed(limits);
    OpenFiles { needed, max: target(limit.current, limit.maximum, needed).or(limit.current) }
}

fn needed(limits: &LimitsConfig) -> u64 {
    (limits.connections + ADMIN_CONNECTIONS_MAX + DESCRIPTORS_BESIDE) as u64
}

/// Raises this process's own limit as far as its connections need and as the system allows, and warns where that is
/// not enough: connections above it are not lost, they wait until others end.
pub(crate) fn provide(limits: &LimitsConfig) {
    let needed = needed(limits);
    let limit = getrlimit(Resource::Nofile);
    let Some(target) = target(limit.current, limit.maximum, needed) else { return };
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum: limit.maximum });
    let open_max = if raised.is_ok() { target } else { limit.current.unwrap_or(u64::MAX) };
    if open_max < needed {
        tracing::warn!(
            files.open_max = open_max,
            files.needed = needed,
            connections.max = limits.connections,
            "the system gives fewer file handles than the connections need: raise its limit (`ulimit -Hn`, or \
             LimitNOFILE of a systemd unit), or lower `connections` in [limits]"
        );
    }
}

/// To what the limit has to be set; `None` where it suffices as it is.
fn target(current: Option<u64>, maximum: Option<u64>, needed: u64) -> Option<u64> {
    let current = current.filter(|current| *current < needed)?;
    Some(needed.min(maximum.unwrap_or(needed)).max(current))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed() {
        assert_eq!(target(Some(1024), Some(500_000), 5000), Some(5000));
        assert_eq!(target(Some(1024), None, 5000), Some(5000));
        assert_eq!(target(Some(1024), Some(4096), 5000), Some(4096));
        assert_eq!(target(Some(20_000), Some(20_000), 5000), None);
        assert_eq!(target(None, None, 5000), None);
    }
}
