//! Instants as the API reads them: RFC 3339.

use hookstead::core::Timestamp;

use super::error::ApiError;
use crate::problem::Problem;

/// Reads an instant such as `2026-11-29T14:03:31Z`.
pub(super) fn moment(name: &str, text: &str) -> Result<Timestamp, ApiError> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed.map(|instant| Timestamp::from_micros(instant.as_microsecond())).map_err(|_| {
        let detail = format!("`{name}`: `{text}` is no time; write one such as 2026-11-29T14:03:31Z");
        ApiError::new(Problem::Query, detail)
    })
}
