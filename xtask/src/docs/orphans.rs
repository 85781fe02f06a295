//! Being the parent of processes whose own has ended, so that their end can be waited for. It knows nothing of shells.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

/// As long as one of these lives, this process is the parent of orphans among its descendants; after the last, it is so
/// no longer: those of whatever runs then would stay as zombies, since nobody here waits for them.
pub(super) struct Adoption(());

/// How many of them live.
static ADOPTIONS: Mutex<usize> = Mutex::new(0);

impl Adoption {
    pub(super) fn begin() -> Result<Self> {
        let mut count = adoptions();
        if *count == 0 {
            adopt(true).context("cannot become the parent of orphans")?;
        }
        *count += 1;
        Ok(Self(()))
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let mut count = adoptions();
        *count -= 1;
        if *count == 0
            && let Err(error) = adopt(false)
        {
            eprintln!("this process stays the parent of orphans: {error}");
        }
    }
}

fn adoptions() -> MutexGuard<'static, usize> {
    ADOPTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
fn adopt(orphans: bool) -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(orphans.then(rustix::process::getpid))
}

/// Elsewhere nobody can: what ran beside a shell may end a moment after it.
#[cfg(not(target_os = "linux"))]
fn adopt(_orphans: bool) -> rustix::io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use rustix::process::child_subreaper;

    use super::*;
    use crate::docs::COMMAND_TIME_MAX;

    fn is_parent_of_orphans() -> bool {
        child_subreaper().expect("the setting can be read").is_some()
    }

    #[test]
    fn orphans_are_adopted_until_the_last_adoption_is_over() {
        let (one, other) = (Adoption::begin().expect("the first"), Adoption::begin().expect("another"));
        drop(one);
        assert!(is_parent_of_orphans(), "another adoption goes on");
        drop(other);
        // Tests of sessions, which adopt orphans as well, may run at the same time.
        let deadline = Instant::now() + COMMAND_TIME_MAX;
        while is_parent_of_orphans() {
            assert!(Instant::now() < deadline, "orphans are still adopted");
            std::thread::yield_now();
        }
    }
}
