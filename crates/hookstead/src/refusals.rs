//! The newest refused requests of a source, for its operator: why, when, from where. In memory and bounded, so that a
//! flood of refusals costs no disk and hides nothing but older refusals; gone with the process, or when the source is
//! configured anew. Knows neither bodies nor values of headers, and so no secrets.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hookstead_core::Timestamp;

/// The most refusals that are kept of a source. Equal ones in a row count as one.
pub const REFUSALS_MAX: usize = 32;

/// The longest name of a part that is kept, in bytes: names are of records, and those are short.
const PART_BYTES_MAX: usize = 128;

/// Why and from where a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// A stable code: of [`Reason`](hookstead_verify::Reason), of [`Unavailable`](crate::Unavailable), or of whoever
    /// serves the intake.
    pub code: &'static str,
    /// The name of the part that is meant, such as `header.x-signature`, or empty. Never a value.
    pub part: String,
    /// How long before it arrived it was signed, in microseconds; negative if it was signed in the future. Only where
    /// that is the reason.
    pub age_micros: Option<i64>,
    /// Who called, if that is known.
    pub from: Option<IpAddr>,
}

/// One refusal, or several equal ones in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedRefusal {
    /// The place in the order of this source's refusals. It grows, also over a new configuration of the source.
    pub number: u64,
    /// When the last of them was refused.
    pub at: Timestamp,
    /// How many there were in a row.
    pub count: u64,
    /// The last of them.
    pub request: RefusedRequest,
}

/// The newest refusals of a source, at most [`REFUSALS_MAX`].
#[derive(Debug, Default)]
pub struct Refusals(Mutex<VecDeque<NotedRefusal>>);

impl Refusals {
    /// Takes note of a refusal, and forgets the oldest if there are too many.
    pub fn note(&self, mut request: RefusedRequest, at: Timestamp) {
        request.part = shortened(&request.part).to_owned();
        let mut newest = self.lock();
        // Numbers from the time go on where those of an earlier configuration of the source ended.
        let by_time = u64::try_from(at.as_micros()).unwrap_or_default();
        let number = newest.back().map_or(by_time, |last| by_time.max(last.number + 1));
        if let Some(last) = newest.back_mut()
            && (last.request.code, &last.request.part) == (request.code, &request.part)
        {
            *last = NotedRefusal { number, at, count: last.count.saturating_add(1), request };
            return;
        }
        if newest.len() == REFUSALS_MAX {
            newest.pop_front();
        }
        newest.push_back(NotedRefusal { number, at, count: 1, request });
    }

    /// Those with a number above this one, the oldest first; 0 for all.
    pub fn after(&self, number: u64) -> Vec<NotedRefusal> {
        self.lock().iter().filter(|noted| noted.number > number).cloned().collect()
    }

    /// Nothing that is done under the lock leaves it half done, so a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, VecDeque<NotedRefusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shortened(part: &str) -> &str {
    &part[..part.floor_char_boundary(PART_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(code: &'static str, part: &str) -> RefusedRequest {
        RefusedRequest { code, part: part.to_owned(), age_micros: None, from: None }
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn equal_ones_in_a_row_are_one_and_numbers_grow() {
        let refusals = Refusals::default();
        refusals.note(request("too-old", "a"), at(10));
        refusals.note(request("too-old", "a"), at(10));
        refusals.note(request("too-old", "b"), at(5));
        refusals.note(request("too-old", "a"), at(50));
        let noted = refusals.after(0);
        let seen: Vec<_> = noted.iter().map(|noted| (noted.number, noted.count)).collect();
        assert_eq!(seen, [(11, 2), (12, 1), (50, 1)]);
        assert_eq!(refusals.after(12).len(), 1);
        assert_eq!(refusals.after(50), []);
    }

    #[test]
    fn it_is_bounded() {
        let refusals = Refusals::default();
        for time in 0..100 {
            let code = if time % 2 == 0 { "too-old" } else { "too-new" };
            refusals.note(request(code, &"é".repeat(100)), at(time));
        }
        let noted = refusals.after(0);
        assert_eq!((noted.len(), noted[0].at, noted[0].count), (REFUSALS_MAX, at(68), 1));
        assert!(noted.iter().all(|noted| noted.request.part.len() <= PART_BYTES_MAX));
    }
}
