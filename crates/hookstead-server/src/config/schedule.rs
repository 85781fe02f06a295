//! When the deliveries of a destination are tried again: `retry`, `max_attempts` and `max_age` of its table.

use std::time::Duration;

use hookstead::core::RetryPolicy;
use hookstead::core::retry::{RETRY_STEPS_MAX, RETRY_WAIT_MAX};
use toml::de::DeValue;

use super::destinations::refused;
use super::reader::{At, Section};
use super::units::parse_duration;

/// The most attempts that can be asked for: above it a delivery is never given up.
const ATTEMPTS_MAX: u64 = 10_000;

/// The longest that a delivery can be owed: ten years.
const AGE_MAX: Duration = Duration::from_hours(24 * 3_650);

/// The schedule: `"standard"` or a list of waits, within `max_attempts` and `max_age`.
pub(super) fn retry(section: &Section<'_>) -> Option<RetryPolicy> {
    let attempts = section.integer("max_attempts", 1..=ATTEMPTS_MAX);
    let age = section.duration("max_age", Duration::from_secs(1)..=AGE_MAX);
    let mut policy = RetryPolicy::default();
    if let Some(waits) = schedule(section)? {
        policy.attempts_max = u32::try_from(waits.len()).unwrap_or(u32::MAX);
        policy.schedule_s = waits;
    }
    if let Some(attempts) = attempts {
        policy.attempts_max = u32::try_from(attempts.value).unwrap_or(u32::MAX);
    }
    let repeats = usize::try_from(policy.attempts_max).unwrap_or(usize::MAX) > policy.schedule_s.len();
    if repeats && policy.schedule_s.last() == Some(&0) {
        let what = "the last wait of the schedule is used again and again, and it is no wait at all";
        let fix = "end the list with a wait of at least \"1s\", or lower max_attempts to its length";
        section.findings.at(&section.key_span("retry"), &section.key("retry"), what, fix);
        return None;
    }
    if let Some(age) = age {
        policy.age_max_s = u32::try_from(age.value.as_secs()).unwrap_or(u32::MAX);
    }
    Some(policy)
}

/// `None`: it is wrong. `Some(None)`: the standard one.
fn schedule(section: &Section<'_>) -> Option<Option<Vec<u32>>> {
    let Some(value) = section.value("retry") else { return Some(None) };
    if let DeValue::String(text) = value.get_ref() {
        if text == "standard" {
            return Some(None);
        }
        let what = format!("`{text}` is no schedule");
        let fix = "write retry = \"standard\", or the wait before each attempt: [\"0s\", \"5s\", \"5m\"]";
        section.findings.at(&value.span(), &section.key("retry"), what, fix);
        return None;
    }
    let waits = section.texts("retry")?;
    if waits.is_empty() || waits.len() > RETRY_STEPS_MAX {
        let what = format!("a schedule has 1 to {RETRY_STEPS_MAX} waits");
        section.findings.at(&value.span(), &section.key("retry"), what, "write retry = \"standard\"");
        return None;
    }
    let seconds: Vec<_> = waits.iter().map(|wait| seconds(section, wait)).collect();
    seconds.into_iter().collect::<Option<_>>().map(Some)
}

fn seconds(section: &Section<'_>, wait: &At<&str>) -> Option<u32> {
    let parsed = match parse_duration(wait.value) {
        Ok(wait) if wait > RETRY_WAIT_MAX => Err("is longer than 7d".to_owned()),
        Ok(wait) if wait.subsec_millis() > 0 => Err("is not in whole seconds".to_owned()),
        Ok(wait) => u32::try_from(wait.as_secs()).map_err(|_| "is too long".to_owned()),
        Err(fault) => Err(fault),
    };
    let parsed = parsed.map_err(|fault| format!("`{}` {fault}", wait.value));
    refused(section, "retry", &wait.span, parsed)
}
