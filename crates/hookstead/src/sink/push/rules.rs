//! The rules by which an answer, or the lack of one, becomes a verdict: those of Standard Webhooks.
//!
//! Pure: it is given status, `Retry-After` and the time. Each rule has a name, which stands in the attempt.

use std::time::{Duration, SystemTime};

use hookstead_core::Timestamp;
use hookstead_core::retry::RETRY_WAIT_MAX;

use super::options::OnGone;
use crate::sink::contract::{TargetHealth, TriedVerdict};

/// The rule that decided about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PushRule {
    /// 2xx: done.
    Success,
    /// 2xx, and then the answer broke off, came too slowly or was shorter than it said: done all the same,
    /// since the target has said so; what was wrong stands in the attempt's error.
    SuccessCut,
    /// 3xx: retried. Redirects are never followed.
    Redirect,
    /// 410: the target is gone; the delivery is held, or dead or retried if the destination says so.
    Gone,
    /// 429: retried, not before `Retry-After`; the target is down for now.
    Throttled,
    /// 502, 503 and 504: as [`PushRule::Throttled`].
    Unavailable,
    /// Another 4xx: retried.
    ClientError,
    /// Another 5xx: retried; the target is down.
    ServerError,
    /// A status that is no final answer: retried.
    StatusUnknown,
    /// The target has an address that the destination may not reach: retried, nothing was connected to.
    AddressForbidden,
    /// The target's name stands for no address: retried.
    NameUnresolved,
    /// No connection came about: retried.
    ConnectFailed,
    /// A connection, but no TLS: retried.
    TlsFailed,
    /// No answer within the destination's timeout: retried.
    Timeout,
    /// The connection ended or was reset before there was an answer: retried.
    ConnectionLost,
    /// What came was not HTTP, or a head beyond the limits: retried.
    AnswerInvalid,
}

impl PushRule {
    /// Every rule, in the order of docs/delivery.md.
    pub const ALL: &[Self] = &[
        Self::Success,
        Self::SuccessCut,
        Self::Redirect,
        Self::Gone,
        Self::Throttled,
        Self::Unavailable,
        Self::ClientError,
        Self::ServerError,
        Self::StatusUnknown,
        Self::AddressForbidden,
        Self::NameUnresolved,
        Self::ConnectFailed,
        Self::TlsFailed,
        Self::Timeout,
        Self::ConnectionLost,
        Self::AnswerInvalid,
    ];

    /// The rule's name, as it stands in the attempt.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::SuccessCut => "success-answer-cut",
            Self::Redirect => "redirect-not-followed",
            Self::Gone => "gone",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::ClientError => "client-error",
            Self::ServerError => "server-error",
            Self::StatusUnknown => "status-unknown",
            Self::AddressForbidden => "address-forbidden",
            Self::NameUnresolved => "name-unresolved",
            Self::ConnectFailed => "connect-failed",
            Self::TlsFailed => "tls-failed",
            Self::Timeout => "timeout",
            Self::ConnectionLost => "connection-lost",
            Self::AnswerInvalid => "answer-invalid",
        }
    }

    /// What it says of the target.
    pub(super) const fn target(self) -> TargetHealth {
        match self {
            Self::Success
            | Self::SuccessCut
            | Self::Redirect
            | Self::Gone
            | Self::ClientError
            | Self::StatusUnknown => TargetHealth::Up,
            Self::Throttled
            | Self::Unavailable
            | Self::ServerError
            | Self::AddressForbidden
            | Self::NameUnresolved
            | Self::ConnectFailed
            | Self::TlsFailed
            | Self::Timeout
            | Self::ConnectionLost
            | Self::AnswerInvalid => TargetHealth::Down,
        }
    }
}

/// The rule for a status.
pub(super) fn rule_of(status: u16) -> PushRule {
    match status {
        200..=299 => PushRule::Success,
        300..=399 => PushRule::Redirect,
        410 => PushRule::Gone,
        429 => PushRule::Throttled,
        502..=504 => PushRule::Unavailable,
        400..=499 => PushRule::ClientError,
        500..=599 => PushRule::ServerError,
        _ => PushRule::StatusUnknown,
    }
}

/// What a rule makes of the delivery.
pub(super) fn verdict(rule: PushRule, after: Option<Duration>, on_gone: OnGone) -> TriedVerdict {
    const GONE: &str = "the target answered 410 Gone";
    match rule {
        PushRule::Success | PushRule::SuccessCut => TriedVerdict::Done,
        PushRule::Gone => match on_gone {
            OnGone::Hold => TriedVerdict::Hold(GONE.into()),
            OnGone::Dead => TriedVerdict::Dead(GONE.into()),
            OnGone::Retry => TriedVerdict::Retry { after: None },
        },
        PushRule::Throttled | PushRule::Unavailable => TriedVerdict::Retry { after },
        _ => TriedVerdict::Retry { after: None },
    }
}

/// The wait that `Retry-After` asks for, in seconds or as an HTTP date, at most [`RETRY_WAIT_MAX`]. A date
/// that has passed is no wait; what is neither is `None`.
pub(super) fn retry_after(value: &[u8], now: Timestamp) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text.parse().unwrap_or(u64::MAX); // digits that do not fit are more than any limit
        return Some(Duration::from_secs(seconds).min(RETRY_WAIT_MAX));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let at = Timestamp::default().plus(date);
    Some(at.since(now).min(RETRY_WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_rule() {
        for (statuses, rule) in [
            (&[200, 201, 202, 204, 299][..], PushRule::Success),
            (&[300, 301, 302, 303, 304, 307, 308, 399], PushRule::Redirect),
            (&[410], PushRule::Gone),
            (&[429], PushRule::Throttled),
            (&[502, 503, 504], PushRule::Unavailable),
            (&[400, 401, 404, 409, 411, 428, 430, 499], PushRule::ClientError),
            (&[500, 501, 505, 599], PushRule::ServerError),
            (&[100, 101, 199, 600, 999], PushRule::StatusUnknown),
        ] {
            for status in statuses {
                assert_eq!(rule_of(*status), rule, "{status}");
            }
        }
    }

    /// The page for people has a row for each rule, and says what it means for the target.
    #[test]
    fn every_rule_is_documented() {
        let page = include_str!("../../../../../docs/delivery.md");
        let push = page.split("## exec").next().expect("a part about push");
        for rule in PushRule::ALL {
            let row = format!("| `{}` |", rule.as_str());
            let row =
                push.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no row {row}"));
            let target = if rule.target() == TargetHealth::Up { "| up |" } else { "| down |" };
            assert!(row.ends_with(target), "{row}");
        }
        assert_eq!(
            push.lines().filter(|line| line.ends_with("| up |") || line.ends_with("| down |")).count(),
            PushRule::ALL.len()
        );
    }

    #[test]
    fn only_throttling_answers_lengthen_the_wait() {
        let wait = Some(Duration::from_secs(7));
        for (status, after) in [(429, wait), (502, wait), (503, wait), (504, wait), (500, None), (404, None)]
        {
            assert_eq!(
                verdict(rule_of(status), wait, OnGone::Hold),
                TriedVerdict::Retry { after },
                "{status}"
            );
        }
    }

    #[test]
    fn gone_is_held_unless_the_destination_says_otherwise() {
        assert!(matches!(verdict(PushRule::Gone, None, OnGone::Hold), TriedVerdict::Hold(_)));
        assert!(matches!(verdict(PushRule::Gone, None, OnGone::Dead), TriedVerdict::Dead(_)));
        assert!(matches!(verdict(PushRule::Gone, None, OnGone::Retry), TriedVerdict::Retry { after: None }));
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        let now = Timestamp::from_secs(1_445_412_480); // Wed, 21 Oct 2015 07:28:00 GMT
        let secs = |secs| Some(Duration::from_secs(secs));
        for (value, wait) in [
            ("120", secs(120)),
            (" 0 ", secs(0)),
            ("Wed, 21 Oct 2015 07:29:00 GMT", secs(60)),
            ("Wed, 21 Oct 2015 07:00:00 GMT", secs(0)),
            ("Wednesday, 21-Oct-15 07:29:00 GMT", secs(60)),
            ("1000000000", Some(RETRY_WAIT_MAX)),
            ("99999999999999999999999999999999", Some(RETRY_WAIT_MAX)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(RETRY_WAIT_MAX)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(value.as_bytes(), now), wait, "{value}");
        }
        assert_eq!(retry_after(b"\xff\xfe", now), None);
    }
}
