//! The checks: whose tests they are, how much of each is done, and how long that takes. It must not know how a check
//! works, nor what its figures mean.

use crate::longer::Subject;

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// About as much as the test command does: three minutes at most.
    Quick,
    /// Every point of every sweep: a quarter of an hour at most.
    Full,
    /// For hours.
    Long,
}

impl Size {
    /// What has to be typed for it, with a blank before it.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Quick => " --quick",
            Self::Full => "",
            Self::Long => " --long",
        }
    }

    fn of<T: Copy>(self, [quick, full, long]: [T; 3]) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
            Self::Long => long,
        }
    }
}

/// One check, on both stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// As in the records that it writes, which may go on with a dash and a word.
    pub(super) name: &'static str,
    /// Whose tests they are.
    pub(super) subject: Subject,
    /// What is in their names.
    pub(super) filter: &'static str,
    /// The variables that say how much, with their value at each size.
    sizes: &'static [(&'static str, [u32; 3])],
    /// What it takes at each size, in seconds, on two processors that have nothing else to do.
    seconds: [u32; 3],
    /// How many of its tests run at a time: both stores at once, unless its figures are of time.
    pub(super) at_once: u8,
}

/// To add one: its name and filter, the variables that its test reads, and the seconds that it took here.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "kill-points",
        subject: Subject::Binary,
        filter: "kill_points::",
        sizes: &[("HOOKSTEAD_KILL_POINT_STEP", [4, 1, 1])],
        seconds: [10, 50, 50],
        at_once: 2,
    },
    Check {
        name: "disk-faults",
        subject: Subject::Binary,
        filter: "disk_faults::",
        sizes: &[
            ("HOOKSTEAD_FAULT_STEP", [5, 1, 1]),
            ("HOOKSTEAD_START_STEP", [90, 25, 1]),
            ("HOOKSTEAD_START_EVENTS", [60, 100, 300]),
        ],
        seconds: [15, 115, 1_300],
        at_once: 2,
    },
    Check {
        name: "fail-stop",
        subject: Subject::Binary,
        filter: "failstop::",
        sizes: &[],
        seconds: [10, 10, 10],
        at_once: 2,
    },
    Check {
        name: "leases",
        subject: Subject::Binary,
        filter: "clocks::",
        sizes: &[],
        seconds: [8, 20, 20],
        at_once: 2,
    },
    // On each store.
    Check {
        name: "kills-under-load",
        subject: Subject::Binary,
        filter: "kill_loop::",
        sizes: &[("HOOKSTEAD_KILLS", [20, 500, 20_000])],
        seconds: [6, 180, 8_000],
        at_once: 2,
    },
    Check {
        name: "kills-of-deliveries",
        subject: Subject::Binary,
        filter: "delivery_kills::",
        sizes: &[("HOOKSTEAD_DELIVERY_KILLS", [8, 60, 1_000])],
        seconds: [40, 65, 700],
        at_once: 2,
    },
    Check {
        name: "full-disk",
        subject: Subject::Binary,
        filter: "full_disk::",
        sizes: &[],
        seconds: [4, 4, 4],
        at_once: 2,
    },
    Check {
        name: "storms",
        subject: Subject::Binary,
        filter: "storms::",
        sizes: &[("HOOKSTEAD_STORM", [2_000, 10_000, 100_000])],
        seconds: [2, 8, 80],
        at_once: 2,
    },
    Check {
        name: "overload",
        subject: Subject::Binary,
        filter: "overload::run",
        sizes: &[
            ("HOOKSTEAD_OVERLOAD_SECONDS", [7, 20, 600]),
            ("HOOKSTEAD_OVERLOAD_RATE", [400, 2_000, 3_000]),
        ],
        seconds: [27, 60, 1_300],
        at_once: 1,
    },
    // On each store; together twice as many.
    Check {
        name: "backups",
        subject: Subject::Binary,
        filter: "backup::backups_under_load",
        sizes: &[("HOOKSTEAD_BACKUPS", [2, 25, 500])],
        seconds: [3, 35, 900],
        at_once: 2,
    },
    Check {
        name: "flipped-bytes",
        subject: Subject::Store,
        filter: "flips::",
        sizes: &[("HOOKSTEAD_FLIPS", [300, 10_000, 400_000])],
        seconds: [2, 45, 1_500],
        at_once: 2,
    },
];

impl Check {
    /// What its tests find in their environment.
    pub(super) fn variables(&self, size: Size, seed: u32) -> Vec<(&'static str, String)> {
        let sizes = self.sizes.iter().map(|(name, values)| (*name, size.of(*values).to_string()));
        // Those without random choices do not look at it.
        sizes.chain([("HOOKSTEAD_SEED", seed.to_string())]).collect()
    }

    /// What it is expected to take.
    pub(super) fn seconds(&self, size: Size) -> u32 {
        size.of(self.seconds)
    }
}

/// The names, in the order in which the checks are done.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_every_check_is_larger_at_a_larger_size() {
        let distinct: std::collections::BTreeSet<_> = names().collect();
        assert_eq!(distinct.len(), CHECKS.len());
        for check in CHECKS {
            let [quick, full, long] = check.seconds;
            assert!(quick <= full && full <= long, "{check:?}");
        }
    }

    #[test]
    fn the_sizes_keep_their_time() {
        let sum = |size| CHECKS.iter().map(|check| check.seconds(size)).sum::<u32>();
        assert!(sum(Size::Quick) <= 3 * 60, "{}", sum(Size::Quick));
        // Three minutes of the quarter of an hour are left for a machine that is slower.
        assert!(sum(Size::Full) <= 12 * 60, "{}", sum(Size::Full));
    }

    #[test]
    fn a_size_and_a_seed_become_variables() {
        let storms = CHECKS.iter().find(|check| check.name == "storms").unwrap();
        let expected = [("HOOKSTEAD_STORM", "2000".to_owned()), ("HOOKSTEAD_SEED", "7".to_owned())];
        assert_eq!(storms.variables(Size::Quick, 7), expected);
    }
}
