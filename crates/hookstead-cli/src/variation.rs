//! The ways in which a sample can be sent: as it is, again, or with something wrong, each with the answer that
//! it must get.

use bytes::Bytes;

use hookstead_verify::SignedRequest;

/// How old a stale request is: far outside every provider's window.
pub(crate) const STALE_BY_SECS: u64 = 3_600;

/// What is done to a sample before it goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Variation {
    /// A new event, rightly signed.
    #[default]
    Fresh,
    /// The last event again: same id, same bytes, signed anew.
    Duplicate,
    /// The id of the last event with other bytes, rightly signed.
    Conflict,
    /// A new event, changed after it was signed.
    Tamper,
    /// A new event that was signed an hour ago.
    Stale,
}

impl Variation {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Tamper => "tamper",
            Self::Stale => "stale",
        }
    }

    /// The answer that is asked for, in words.
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Self::Fresh => "a new event, stored",
            Self::Duplicate => "a duplicate, answered as success",
            Self::Conflict => "a conflict (409)",
            Self::Tamper | Self::Stale => "a refusal (401)",
        }
    }

    /// Whether it repeats the identity of an event that was sent before.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::Duplicate | Self::Conflict)
    }

    /// Whether an answer is the one that was asked for. A provider may want any 2xx as a success, and a source
    /// may answer a conflict as a success (`on_conflict = "hold"`), so the outcome decides where it is told.
    pub(crate) fn accepts(self, status: u16, outcome: Option<&str>) -> bool {
        let success = (200..300).contains(&status);
        match self {
            Self::Fresh => success && matches!(outcome, None | Some("stored")),
            Self::Duplicate => success && matches!(outcome, None | Some("duplicate")),
            Self::Conflict => status == 409 || (success && matches!(outcome, None | Some("conflict"))),
            Self::Tamper | Self::Stale => status == 401,
        }
    }
}

/// The same bytes but for one, which is not part of `keep`: the last digit that can change without making
/// another kind of value, else the last letter.
pub(crate) fn alter_one_byte(body: &[u8], keep: &str) -> Bytes {
    let kept = positions(body, keep.as_bytes());
    let free = |at: &usize| !kept.iter().any(|start| (*start..*start + keep.len()).contains(at));
    let last = |wanted: fn(&u8) -> bool| (0..body.len()).rev().filter(free).find(|at| wanted(&body[*at]));
    let mut altered = body.to_vec();
    match last(u8::is_ascii_digit).or_else(|| last(u8::is_ascii_alphabetic)) {
        Some(at) => altered[at] = other(altered[at]),
        None => altered.push(b' '),
    }
    altered.into()
}

/// The same request with one byte changed on the way: of the body, or of a header that itself is the proof and
/// covers no body.
pub(crate) fn tamper(mut signed: SignedRequest, proofs: &[&str]) -> SignedRequest {
    let is_proof = |name: &str| proofs.iter().any(|proof| proof.eq_ignore_ascii_case(name));
    match signed.headers.iter_mut().find(|(name, _)| is_proof(name)) {
        Some((_, value)) => *value = alter_one_byte(value, "").to_vec(),
        None => signed.body = alter_one_byte(&signed.body, "").to_vec(),
    }
    signed
}

fn positions(body: &[u8], part: &[u8]) -> Vec<usize> {
    if part.is_empty() {
        return Vec::new();
    }
    body.windows(part.len()).enumerate().filter(|(_, window)| *window == part).map(|(at, _)| at).collect()
}

/// Another byte of the same kind. A digit stays a digit, so that a number stays a number.
fn other(byte: u8) -> u8 {
    match byte {
        b'9' => b'8',
        b'0'..=b'8' => byte + 1,
        _ => byte ^ 0x20,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_changes_and_the_id_stays() {
        let altered =
            |body: &str, keep| String::from_utf8(alter_one_byte(body.as_bytes(), keep).to_vec()).unwrap();
        assert_eq!(altered(r#"{"cents":1200,"id":"evt_12"}"#, "evt_12"), r#"{"cents":1201,"id":"evt_12"}"#);
        assert_eq!(altered(r#"{"n":9}"#, ""), r#"{"n":8}"#);
        assert_eq!(altered(r#"{"id":"evt_1","x":"ab"}"#, "evt_1"), r#"{"id":"evt_1","x":"aB"}"#);
        assert_eq!(altered("", ""), " ");
        assert_eq!(altered("evt", "evt"), "evt ");
    }

    #[test]
    fn the_asked_for_answer_counts() {
        use Variation::{Conflict, Duplicate, Fresh, Stale, Tamper};
        for (variation, status, outcome) in [
            (Fresh, 202, Some("stored")),
            (Fresh, 200, None),
            (Duplicate, 200, Some("duplicate")),
            (Conflict, 409, None),
            (Conflict, 200, Some("conflict")),
            (Tamper, 401, None),
            (Stale, 401, None),
        ] {
            assert!(variation.accepts(status, outcome), "{variation:?} {status} {outcome:?}");
        }
        for (variation, status, outcome) in [
            (Fresh, 401, None),
            (Fresh, 200, Some("duplicate")),
            (Duplicate, 202, Some("stored")),
            (Conflict, 202, Some("stored")),
            (Tamper, 202, Some("stored")),
            (Stale, 503, None),
        ] {
            assert!(!variation.accepts(status, outcome), "{variation:?} {status} {outcome:?}");
        }
    }
}
