//! When an overload is over. It knows what became of the requests, and nothing of how they were sent.

use std::time::Duration;

use super::load::Sent;

/// Nothing is refused for so long: what was too much is over. One commit that took long may still refuse some later.
pub(super) const CALM: Duration = Duration::from_secs(1);

/// How it went on after the disk was fast again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// From then on until the last request was due that was refused before [`CALM`]. Without calm it is the last one that
    /// was refused at all.
    pub(super) after: Duration,
    /// How many requests were due from then on.
    sent: usize,
    /// How many of them were refused.
    refused: usize,
}

impl Recovery {
    /// Of the requests that were due when the disk was fast again.
    pub(super) fn of(all: &[Sent], fast_again: Duration) -> Self {
        let mut refused: Vec<Duration> = all
            .iter()
            .filter(|sent| sent.status != 202)
            .filter_map(|sent| sent.due.checked_sub(fast_again))
            .collect();
        refused.sort_unstable();
        let mut after = Duration::ZERO;
        for due in &refused {
            if *due >= after + CALM {
                break;
            }
            after = *due;
        }
        let is_later = |due: &Duration| *due > after;
        let sent = all.iter().filter_map(|sent| sent.due.checked_sub(fast_again)).filter(is_later).count();
        Self { after, sent, refused: refused.into_iter().filter(is_later).count() }
    }

    /// Whether calm began before `max`, and whether of what came from then on no more was refused than so many in a
    /// hundred: calm that is nothing but a pause between two refusals is none.
    pub(super) fn is_within(&self, max: Duration, refused_percent_max: usize) -> bool {
        self.after < max && self.refused * 100 <= self.sent * refused_percent_max
    }
}

const FAST_AGAIN: Duration = Duration::from_secs(3);

/// Ten requests a second until nine seconds after the disk is fast again, refused where this says so of the tenths of
/// seconds from then on.
fn recovery(is_refused: impl Fn(usize) -> bool) -> Recovery {
    let sent = |number: usize| Sent {
        number,
        due: Duration::from_millis(number as u64 * 100),
        took: Duration::ZERO,
        status: if number.checked_sub(30).is_none_or(&is_refused) { 503 } else { 202 },
        retry_after: true,
    };
    Recovery::of(&(0..120).map(sent).collect::<Vec<_>>(), FAST_AGAIN)
}

fn is_in_time(recovery: Recovery) -> bool {
    recovery.is_within(Duration::from_secs(2), 10)
}

#[test]
fn who_refuses_for_a_while_and_a_few_later_has_recovered() {
    let recovery = recovery(|tenth| tenth <= 15 || (40..47).contains(&tenth));
    assert_eq!(recovery.after, Duration::from_millis(1_500));
    assert!(is_in_time(recovery), "{recovery:?}");
}

#[test]
fn who_refuses_for_too_long_has_not_recovered() {
    assert!(!is_in_time(recovery(|tenth| tenth <= 20)));
    assert!(!is_in_time(recovery(|tenth| tenth % 9 == 0)));
}

#[test]
fn who_takes_events_for_a_second_and_then_refuses_has_not_recovered() {
    let recovery = recovery(|tenth| tenth >= 10);
    assert_eq!(recovery.after, Duration::ZERO);
    assert!(!is_in_time(recovery), "{recovery:?}");
}
