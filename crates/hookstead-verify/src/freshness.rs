//! When a request was signed, and whether that is close enough to its arrival.
//!
//! Only a signed time is ever looked at; the record's translation sees to that.

use crate::scheme::Lifetime;
use crate::template::{Context, Template, Unresolved};
use crate::verdict::{Fault, Reason};
use crate::wire::time::{SECOND, Unit};

/// A record's rule for its timestamp.
#[derive(Debug, Clone)]
pub(crate) struct Freshness {
    pub(crate) from: Template,
    pub(crate) unit: Unit,
    /// Whether only the shortest spelling of a number is taken.
    pub(crate) canonical: bool,
    /// Seconds into the past; nothing for no limit.
    pub(crate) tolerance_s: Option<u32>,
    /// Seconds into the future.
    pub(crate) future: Future,
    /// Whether the limits themselves are already outside.
    pub(crate) exclusive: bool,
}

/// How far ahead a signed time may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Future {
    /// As far as into the past, also where a source sets another tolerance.
    AsTolerance,
    /// Up to so many seconds.
    Seconds(u32),
    /// No limit.
    Unbounded,
}

/// A time that was read, in Unix microseconds of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignedAt(i128);

impl SignedAt {
    /// The time, at the end of the range where it does not fit.
    pub(crate) fn micros(self) -> i64 {
        saturate(self.0)
    }
}

impl Freshness {
    /// Reads the time.
    pub(crate) fn read(&self, context: &Context<'_>) -> Result<SignedAt, Fault> {
        let text = match self.from.value(context) {
            Ok(text) => text,
            Err(Unresolved::Absent(part)) => return Err(Fault::new(Reason::TimestampMissing, part)),
            Err(Unresolved::Repeated(part)) => return Err(Fault::new(Reason::PartRepeated, part)),
        };
        match self.unit.parse(&text, self.canonical) {
            Some(micros) => Ok(SignedAt(micros)),
            None => Err(Fault::new(Reason::TimestampMalformed, self.from.to_string())),
        }
    }

    /// Whether the time is inside the window around `now`. Times in whole seconds are compared with whole
    /// seconds of the clock.
    pub(crate) fn check(&self, signed_at: SignedAt, now: i64, tolerance_s: Option<u32>) -> Result<(), Fault> {
        let now = match self.unit {
            Unit::Seconds | Unit::HttpDate => i128::from(now).div_euclid(SECOND) * SECOND,
            Unit::Millis | Unit::Rfc3339 => i128::from(now),
        };
        let age = now - signed_at.0;
        let past = tolerance_s.or(self.tolerance_s);
        let future = match self.future {
            Future::AsTolerance => past,
            Future::Seconds(seconds) => Some(seconds),
            Future::Unbounded => None,
        };
        if self.is_outside(age, past) {
            return Err(self.fault(Reason::TooOld, age));
        }
        if self.is_outside(-age, future) {
            return Err(self.fault(Reason::TooNew, age));
        }
        Ok(())
    }

    fn is_outside(&self, distance: i128, limit_s: Option<u32>) -> bool {
        let Some(limit) = limit_s.map(|limit| i128::from(limit) * SECOND) else { return false };
        if self.exclusive { distance >= limit } else { distance > limit }
    }

    fn fault(&self, reason: Reason, age: i128) -> Fault {
        Fault { reason, part: self.from.to_string(), age_micros: Some(saturate(age)) }
    }
}

/// Whether a token with these claims is good at `now`.
pub(crate) fn check_lifetime(claims: &[u8], now: i64, leeway_s: u32) -> Result<(), Fault> {
    let now_s = now.div_euclid(1_000_000);
    let leeway_s = i64::from(leeway_s);
    let lifetime = Lifetime::read(claims).ok_or_else(|| Fault::new(Reason::TimestampMalformed, "jwt.exp"))?;
    let fault = |reason, part: &str, age_s: i64| {
        Err(Fault { reason, part: part.to_owned(), age_micros: Some(age_s.saturating_mul(1_000_000)) })
    };
    match (lifetime.from_s, lifetime.until_s) {
        (_, Some(until)) if now_s >= until.saturating_add(leeway_s) => {
            fault(Reason::TooOld, "jwt.exp", now_s.saturating_sub(until))
        }
        (Some(from), _) if now_s < from.saturating_sub(leeway_s) => {
            fault(Reason::TooNew, "jwt.nbf", now_s.saturating_sub(from))
        }
        _ => Ok(()),
    }
}

fn saturate(micros: i128) -> i64 {
    i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(unit: Unit, future: Future, exclusive: bool) -> Freshness {
        let from = "{header.x}".parse().unwrap();
        Freshness { from, unit, canonical: false, tolerance_s: Some(300), future, exclusive }
    }

    fn verdict(rule: &Freshness, age_micros: i128, tolerance_s: Option<u32>) -> Option<Reason> {
        let now = 1_760_000_000_000_000;
        rule.check(SignedAt(i128::from(now) - age_micros), now, tolerance_s).err().map(|fault| fault.reason)
    }

    #[test]
    fn windows_are_exact() {
        let both = rule(Unit::Millis, Future::AsTolerance, false);
        assert_eq!(verdict(&both, 300 * SECOND, None), None);
        assert_eq!(verdict(&both, 300 * SECOND + 1, None), Some(Reason::TooOld));
        assert_eq!(verdict(&both, -300 * SECOND, None), None);
        assert_eq!(verdict(&both, -300 * SECOND - 1, None), Some(Reason::TooNew));
        assert_eq!(verdict(&both, -11 * SECOND, Some(10)), Some(Reason::TooNew));
        let exclusive = rule(Unit::Millis, Future::Seconds(0), true);
        assert_eq!(verdict(&exclusive, 300 * SECOND, None), Some(Reason::TooOld));
        assert_eq!(verdict(&exclusive, 0, None), Some(Reason::TooNew));
        let open = rule(Unit::Seconds, Future::Unbounded, false);
        assert_eq!(verdict(&open, -i128::from(i64::MAX) * SECOND, None), None);
    }

    #[test]
    fn tokens_end() {
        let verdict = |claims: &str, now_s: i64, leeway_s| {
            check_lifetime(claims.as_bytes(), now_s * 1_000_000, leeway_s).err().map(|fault| fault.reason)
        };
        let claims = r#"{"nbf":100,"exp":200.5}"#;
        assert_eq!(verdict(claims, 100, 0), None);
        assert_eq!(verdict(claims, 199, 0), None);
        assert_eq!(verdict(claims, 200, 0), Some(Reason::TooOld));
        assert_eq!(verdict(claims, 204, 5), None);
        assert_eq!(verdict(claims, 99, 0), Some(Reason::TooNew));
        assert_eq!(verdict(claims, 95, 5), None);
        assert_eq!(verdict("{}", 0, 0), None);
        assert_eq!(verdict(r#"{"exp":"soon"}"#, 0, 0), Some(Reason::TimestampMalformed));
        assert_eq!(verdict(r#"{"exp":9223372036854775807}"#, i64::MAX / 1_000_000, u32::MAX), None);
    }

    #[test]
    fn seconds_are_compared_with_seconds() {
        let rule = rule(Unit::Seconds, Future::AsTolerance, false);
        let now = 1_760_000_000_999_999;
        assert!(rule.check(SignedAt(1_759_999_700 * SECOND), now, None).is_ok());
        assert!(rule.check(SignedAt(1_760_000_300 * SECOND), now, None).is_ok());
        assert!(rule.check(SignedAt(1_760_000_301 * SECOND), now, None).is_err());
        assert!(rule.check(SignedAt(1_759_999_699 * SECOND), now, None).is_err());
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let rule = rule(Unit::Seconds, Future::AsTolerance, false);
        for text in ["9223372036854775807", "-9223372036854775808"] {
            let at = SignedAt(Unit::Seconds.parse(text.as_bytes(), true).unwrap());
            for now in [i64::MIN, -1, 0, i64::MAX] {
                assert!(rule.check(at, now, Some(u32::MAX)).is_err(), "{text} at {now}");
            }
        }
    }
}
