//! Durations and sizes as people write them: `30s`, `5m`, `10 MiB`. Knows nothing of keys.

use std::time::Duration;

const DURATIONS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: &[(&str, u64)] =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Reads a duration: a whole number and one of `ms`, `s`, `m`, `h`, `d`, with or without a blank between.
///
/// # Errors
///
/// What is wrong with the text, as a fragment that follows the text in a message.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let millis = parse(text, DURATIONS, "a duration such as `30s`, `5m` or `2h`")?;
    Ok(Duration::from_millis(millis))
}

/// Reads a size in bytes: a whole number and one of `B`, `KiB`, `MiB`, `GiB`, `TiB`.
///
/// # Errors
///
/// What is wrong with the text, as a fragment that follows the text in a message.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse(text, SIZES, "a size such as `512 KiB`, `10 MiB` or `1 GiB`")
}

/// The duration in the largest unit that gives a whole number.
pub fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    format(millis, DURATIONS, "")
}

/// The size in the largest unit that gives a whole number.
pub fn format_size(bytes: u64) -> String {
    format(bytes, SIZES, " ")
}

fn parse(text: &str, units: &[(&'static str, u64)], expected: &str) -> Result<u64, String> {
    let refused = || format!("is not {expected}");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(refused());
    }
    let unit = rest.trim_start_matches(' ');
    if unit.is_empty() {
        return Err(format!("has no unit; write {expected}"));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(match meant(unit, units) {
            Some(name) => format!("has a unit that is not known; did you mean `{number} {name}`?"),
            None => refused(),
        });
    };
    let value: Option<u64> = number.parse().ok();
    value.and_then(|value| value.checked_mul(*factor)).ok_or_else(|| "is too large".to_owned())
}

/// The unit that somebody meant by `MB`, `mib`, `M`, `sec` or `min`.
fn meant(unit: &str, units: &[(&'static str, u64)]) -> Option<&'static str> {
    let lower = unit.to_ascii_lowercase();
    let initial = lower.chars().next()?;
    let known = units.iter().map(|(name, _)| *name);
    if lower.len() > 8 || !lower.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    if lower.starts_with("mil") {
        return known.into_iter().find(|name| *name == "ms");
    }
    known.into_iter().find(|name| *name != "ms" && name.to_ascii_lowercase().starts_with(initial))
}

fn format(value: u64, units: &[(&str, u64)], between: &str) -> String {
    let (name, factor) = units
        .iter()
        .rev()
        .find(|(_, factor)| value > 0 && value.is_multiple_of(*factor))
        .unwrap_or(&units[usize::from(units[0].0 == "ms")]);
    format!("{}{between}{name}", value / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, millis, canonical) in [
            ("30s", 30_000, "30s"),
            ("30 s", 30_000, "30s"),
            ("250ms", 250, "250ms"),
            ("5m", 300_000, "5m"),
            ("300s", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
            ("30d", 2_592_000_000, "30d"),
            ("0s", 0, "0s"),
            ("1500ms", 1_500, "1500ms"),
        ] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(duration, Duration::from_millis(millis), "{text}");
            assert_eq!(format_duration(duration), canonical, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes, canonical) in [
            ("1 B", 1, "1 B"),
            ("512KiB", 524_288, "512 KiB"),
            ("10 MiB", 10_485_760, "10 MiB"),
            ("1 GiB", 1_073_741_824, "1 GiB"),
            ("1024 MiB", 1_073_741_824, "1 GiB"),
            ("2 TiB", 2_199_023_255_552, "2 TiB"),
            ("1000 B", 1000, "1000 B"),
            ("0 B", 0, "0 B"),
        ] {
            let size = parse_size(text).unwrap();
            assert_eq!(size, bytes, "{text}");
            assert_eq!(format_size(size), canonical, "{text}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_what_was_meant() {
        let duration = |text: &str| parse_duration(text).unwrap_err();
        let size = |text: &str| parse_size(text).unwrap_err();
        assert!(duration("30").contains("no unit"));
        assert!(duration("5 min").contains("did you mean `5 m`"));
        assert!(duration("30sec").contains("did you mean `30 s`"));
        assert!(duration("7 millis").contains("did you mean `7 ms`"));
        assert!(duration("-5s").contains("is not a duration"));
        assert!(duration("1.5h").contains("is not a duration"));
        assert!(duration("").contains("is not a duration"));
        assert!(duration("99999999999999999d").contains("too large"));
        assert!(size("10MB").contains("did you mean `10 MiB`"));
        assert!(size("1 gb").contains("did you mean `1 GiB`"));
        assert!(size("10").contains("no unit"));
        assert!(size("ten").contains("is not a size"));
        assert!(size("99999999 TiB").contains("too large"));
    }
}
