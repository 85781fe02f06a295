//! What real traffic says of the clock: how long after its signing each request arrived.

use hookstead_server::api::view::SourceClockView;
use hookstead_store::Finding;

const CLOCK: &str = "clock";

/// Nothing arrives before it was sent: what is further ahead than this has another time than we. Times are often whole
/// seconds, and clocks that are kept right differ by less.
const AHEAD_MAX_MS: i64 = 10_000;

/// The fastest of several requests is on its way for less than this; otherwise our clock is ahead, or the sender's behind.
const LATE_MAX_MS: i64 = 60_000;

/// Fewer requests may all have been late.
const LATE_COUNT_MIN: u64 = 3;

const FIX: &str = "compare this machine's clock with the true time (`timedatectl`, `chronyc tracking`) and have it set by NTP; \
                   if it is right, the sender's is wrong";

/// One check a source to which something with a time came.
pub(super) fn look(sources: &[SourceClockView]) -> Vec<Finding> {
    if sources.is_empty() {
        let why = "no request with a signed time came since the server started";
        return vec![Finding::skipped(CLOCK, why)];
    }
    sources.iter().map(judge).collect()
}

fn judge(source: &SourceClockView) -> Finding {
    let SourceClockView { source: name, verified, too_old, too_new, .. } = source;
    let refused = match too_old + too_new {
        0 => String::new(),
        _ => format!("; {too_old} refused as too old, {too_new} as signed in the future"),
    };
    let Some((min, median)) = source.skew_min_ms.zip(source.skew_median_ms) else {
        return Finding::warning(CLOCK, format!("`{name}`: nothing verified{refused}"), FIX);
    };
    let seen = format!(
        "`{name}`: {verified} verified; the fastest arrived {}, the median {}{refused}",
        after_signing(min),
        after_signing(median)
    );
    let is_off = min < -AHEAD_MAX_MS || (min > LATE_MAX_MS && *verified >= LATE_COUNT_MIN);
    if is_off || too_old + too_new > *verified {
        return Finding::warning(CLOCK, seen, FIX);
    }
    Finding::good(CLOCK, seen)
}

fn after_signing(millis: i64) -> String {
    let (tenths, way) = (millis.unsigned_abs() / 100, if millis < 0 { "before" } else { "after" });
    format!("{}.{} s {way} its signing", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use hookstead_store::Verdict;

    use super::*;

    fn verdict(verified: u64, min: Option<i64>, too_old: u64, too_new: u64) -> Verdict {
        let (skew_min_ms, skew_median_ms, source) = (min, min, "shop".to_owned());
        judge(&SourceClockView { source, verified, skew_min_ms, skew_median_ms, too_old, too_new }).verdict
    }

    #[test]
    fn a_clock_is_judged_by_the_fastest_request() {
        assert_eq!(verdict(5, Some(-900), 0, 0), Verdict::Good, "whole seconds");
        assert_eq!(verdict(1, Some(-200_000), 0, 0), Verdict::Warning);
        assert_eq!(verdict(2, Some(240_000), 0, 0), Verdict::Good, "two retries say nothing");
        assert_eq!(verdict(3, Some(240_000), 0, 0), Verdict::Warning);
        assert_eq!(verdict(0, None, 0, 4), Verdict::Warning);
        assert_eq!(verdict(50, Some(300), 4, 0), Verdict::Good, "old retries");
        assert_eq!(verdict(3, Some(300), 4, 0), Verdict::Warning);
    }
}
