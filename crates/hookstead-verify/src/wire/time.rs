//! The four ways in which providers write a time, read strictly and written back.
//!
//! Everything is Unix microseconds in 128 bits, so that no input can overflow. There is no clock here.

use serde::Deserialize;

/// Microseconds in a second.
pub(crate) const SECOND: i128 = 1_000_000;

/// How a timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Unit {
    /// Unix seconds as decimal digits.
    #[serde(rename = "s")]
    Seconds,
    /// Unix milliseconds as decimal digits.
    #[serde(rename = "ms")]
    Millis,
    /// `2026-11-29T13:20:00.123Z` or with an offset.
    #[serde(rename = "rfc3339")]
    Rfc3339,
    /// `Sun, 29 Nov 2026 13:20:00 GMT`.
    #[serde(rename = "http-date")]
    HttpDate,
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Unit {
    /// Reads a time; `canonical` additionally refuses every spelling of a number but its shortest.
    pub(crate) fn parse(self, text: &[u8], canonical: bool) -> Option<i128> {
        let text = std::str::from_utf8(text).ok()?;
        match self {
            Self::Seconds => Some(i128::from(integer(text, canonical)?) * SECOND),
            Self::Millis => Some(i128::from(integer(text, canonical)?) * 1_000),
            Self::Rfc3339 => rfc3339(text),
            Self::HttpDate => http_date(text),
        }
    }

    /// Writes a time as the provider would.
    pub(crate) fn format(self, micros: i64) -> String {
        let (days, second) =
            (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000) / 1_000_000);
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match self {
            Self::Seconds => micros.div_euclid(1_000_000).to_string(),
            Self::Millis => micros.div_euclid(1_000).to_string(),
            Self::Rfc3339 => {
                let fraction = micros.rem_euclid(1_000_000);
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
            }
            Self::HttpDate => {
                let weekday = usize::try_from(days.rem_euclid(7)).map_or("", |day| DAYS[day]);
                let month = usize::try_from(month - 1).map_or("", |month| MONTHS[month]);
                format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
            }
        }
    }
}

/// Decimal digits with an optional minus. `str::parse` alone would also take a plus.
fn integer(text: &str, canonical: bool) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let is_shortest = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0',
        [] => false,
    };
    text.parse().ok().filter(|_| is_shortest || !canonical)
}

fn rfc3339(text: &str) -> Option<i128> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let (year, month, day) = (digits(date, 0, 4)?, digits(date, 5, 7)?, digits(date, 8, 10)?);
    let time = rest.strip_prefix(['T', 't'])?;
    let clock = clock(time.get(..8)?)?;
    if date.as_bytes()[4] != b'-' || date.as_bytes()[7] != b'-' {
        return None;
    }
    let (fraction, zone) = fraction(&time[8..])?;
    Some((seconds(year, month, day, clock)? - offset(zone)?) * SECOND + fraction)
}

/// `.123456789` and what follows; digits beyond the microsecond are cut.
fn fraction(text: &str) -> Option<(i128, &str)> {
    let Some(text) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&length) {
        return None;
    }
    let micros: i128 = format!("{:0<6.6}", &text[..length]).parse().ok()?;
    Some((micros, &text[length..]))
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i128> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = (digits(zone, 1, 3)?, digits(zone, 4, 6)?);
    let shaped = zone.len() == 6 && zone.as_bytes()[3] == b':' && hours < 24 && minutes < 60;
    shaped.then_some(i128::from(sign * (hours * 3600 + minutes * 60)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that a sender may write (RFC 9110, 5.6.7).
fn http_date(text: &str) -> Option<i128> {
    let (weekday, rest) = text.split_once(", ")?;
    if text.len() != 29 || !text.is_ascii() || !DAYS.contains(&weekday) {
        return None;
    }
    let month = i64::try_from(MONTHS.iter().position(|month| *month == &rest[3..6])?).ok()? + 1;
    let blanks = rest.as_bytes()[2] == b' ' && rest.as_bytes()[6] == b' ' && rest.as_bytes()[11] == b' ';
    let (day, year) = (digits(rest, 0, 2)?, digits(rest, 7, 11)?);
    let clock = clock(rest.get(12..20)?)?;
    (blanks && &rest[20..] == " GMT")
        .then(|| seconds(year, month, day, clock))
        .flatten()
        .map(|at| at * SECOND)
}

/// Seconds since midnight of `hh:mm:ss`; a leap second counts as the next one.
fn clock(text: &str) -> Option<i64> {
    let (hour, minute, second) = (digits(text, 0, 2)?, digits(text, 3, 5)?, digits(text, 6, 8)?);
    let colons = text.as_bytes()[2] == b':' && text.as_bytes()[5] == b':';
    (colons && hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

fn digits(text: &str, from: usize, to: usize) -> Option<i64> {
    let part = text.get(from..to)?;
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
}

fn seconds(year: i64, month: i64, day: i64, clock: i64) -> Option<i128> {
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some(i128::from(days_from_civil(year, month, day) * 86_400 + clock))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, years counted from March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_digits() {
        let lenient = |text: &str| Unit::Seconds.parse(text.as_bytes(), false);
        let canonical = |text: &str| Unit::Seconds.parse(text.as_bytes(), true);
        for text in ["0", "-5", "1770000000", "9223372036854775807", "-9223372036854775808"] {
            assert!(canonical(text).is_some(), "{text}");
        }
        for text in ["01", "-0", "00"] {
            assert!(canonical(text).is_none() && lenient(text).is_some(), "{text}");
        }
        for text in
            ["", "-", "+1", "1.0", "1e3", "1_000", "0x1", "1 0", " 1", "1,0", "١", "9223372036854775808"]
        {
            assert!(lenient(text).is_none(), "{text}");
        }
    }

    #[test]
    fn written_times_are_read_back() {
        let now = 1_760_000_000_123_456;
        assert_eq!(Unit::Rfc3339.format(now), "2025-10-09T08:53:20.123456Z");
        assert_eq!(Unit::HttpDate.format(now), "Thu, 09 Oct 2025 08:53:20 GMT");
        assert_eq!(Unit::Rfc3339.parse(b"2025-10-09T08:53:20.123456789Z", false), Some(i128::from(now)));
        assert_eq!(
            Unit::HttpDate.parse(b"Thu, 09 Oct 2025 08:53:20 GMT", false),
            Some(1_760_000_000 * SECOND)
        );
        for day in (-719_162..2_900_000_i64).step_by(97) {
            let micros = day * 86_400_000_000 + 1;
            let text = Unit::Rfc3339.format(micros);
            assert_eq!(Unit::Rfc3339.parse(text.as_bytes(), false), Some(i128::from(micros)), "{text}");
        }
    }

    #[test]
    fn offsets_count_and_broken_dates_do_not() {
        let parse = |text: &str| Unit::Rfc3339.parse(text.as_bytes(), false);
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(parse("1969-12-31t23:30:00-00:30"), Some(0));
        for text in [
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01 00:00:00Z",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00+1:00",
            "2025-01-01T00:00:00Z ",
            "2025/01/01T00:00:00Z",
            "",
            "2025-01-01T00:00:0",
            "é025-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let date = |text: &str| Unit::HttpDate.parse(text.as_bytes(), false);
        for text in [
            "Thu, 9 Oct 2025 08:53:20 GMT",
            "Thu, 09 Oct 2025 08:53:20 UTC",
            "Xxx, 09 Oct 2025 08:53:20 GMT",
            "Thu, é9 Oct 2025 08:53:20 GM",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
