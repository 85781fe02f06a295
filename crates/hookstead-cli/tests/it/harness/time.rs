//! Times: as the product tells them, and how long what a test asked for took.

use std::time::Duration;

use serde_json::Value;

/// An instant of the API or of a verb. Their texts are not in the order of their times: a fraction that ends in zeros is
/// written shorter.
pub(crate) fn instant(at: &Value) -> jiff::Timestamp {
    let text = at.as_str().unwrap_or_else(|| panic!("no time: {at}"));
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

/// The middle one of these times: more than half of what took them took no longer. A promise on how soon something comes
/// is judged by it, since a disk may take its time for one sync or another.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    assert!(!times.is_empty(), "nothing was timed");
    times.sort_unstable();
    times[times.len() / 2]
}
