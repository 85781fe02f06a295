//! How many files and sockets the tests' own process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as the system allows, and says how many connections that makes.
pub(crate) fn descriptors_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("a limit up to the maximum can be set");
    let most = limit.maximum.unwrap_or(u64::MAX);
    // The other tests of this process have files open as well.
    usize::try_from(most / 2).unwrap_or(usize::MAX)
}
