//! What a consumer hands back, under any bytes (see [`crate::fuzzing`]).

use super::lease_id::LeaseId;

/// The text of a lease: it is read as it is written, or not at all.
pub fn lease(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some(lease) = LeaseId::parse(text) {
        assert_eq!(lease.text(), text);
    }
}
