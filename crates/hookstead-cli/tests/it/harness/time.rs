//! Times as the product tells them.

use serde_json::Value;

/// An instant of the API or of a verb. Their texts are not in the order of their times: a fraction that ends in zeros is
/// written shorter.
pub(crate) fn instant(at: &Value) -> jiff::Timestamp {
    let text = at.as_str().unwrap_or_else(|| panic!("no time: {at}"));
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}
