//! What a target answers and how it is addressed, under any bytes (see [`crate::fuzzing`]).

use hookstead_core::Timestamp;
use hookstead_core::retry::RETRY_WAIT_MAX;

use super::guard::{Reach, check_address};
use super::rules::retry_after;
use super::url::{PushHost, PushUrl};

/// The value of `Retry-After`, at any time, asks for a wait within bounds or for none; a URL never reaches further than it
/// may.
pub fn answer(input: &[u8]) {
    for now in [Timestamp::from_secs(1_770_000_000), Timestamp::from_micros(i64::MIN), Timestamp::MAX] {
        let wait = retry_after(input, now);
        assert!(wait.is_none_or(|wait| wait <= RETRY_WAIT_MAX), "{wait:?}");
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    for reach in [Reach::Public, Reach::Loopback, Reach::Private] {
        match PushUrl::parse(text, reach) {
            Ok(url) => check_url(&url, reach),
            Err(error) => assert!(!error.to_string().is_empty() && !error.fix().is_empty()),
        }
    }
}

/// Read again as it is used, it is the same place.
fn check_url(url: &PushUrl, reach: Reach) {
    if let PushHost::Address(address) = url.host() {
        assert_eq!(check_address(*address, reach), Ok(()), "{url}");
    }
    let again = PushUrl::parse(url.as_str(), reach);
    assert_eq!(again.as_ref(), Ok(url));
    assert!(url.target().starts_with('/') && !url.authority().is_empty(), "{url}");
}
