//! Names that people choose. Each is parsed once, at the edge, into a type that cannot be wrong.

use std::fmt;
use std::str::FromStr;

/// The longest name of a source or destination, in bytes: it is part of URLs, file names and metrics.
pub const NAME_BYTES_MAX: usize = 64;

/// The longest name of a run, in bytes (rule R50 of the contract).
pub const RUN_NAME_BYTES_MAX: usize = 128;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {what}: {rule}")]
pub struct NameError {
    what: &'static str,
    rule: &'static str,
    given: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(NameError { what: $what, rule: $rule, given: text.chars().take(80).collect() })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a source: `[a-z0-9][a-z0-9_-]{0,63}`. Its address is `/in/<name>`.
    SourceName,
    "source name",
    "use 1 to 64 of a-z, 0-9, `-` and `_`, beginning with a letter or digit",
    is_name
);

name!(
    /// The name of a destination: `[a-z0-9][a-z0-9_-]{0,63}`.
    DestinationName,
    "destination name",
    "use 1 to 64 of a-z, 0-9, `-` and `_`, beginning with a letter or digit",
    is_name
);

name!(
    /// The name of a processing run: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}` (rule R50 of the contract).
    RunName,
    "run name",
    "use 1 to 128 of A-Z, a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit",
    is_run_name
);

fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    is_word(text, NAME_BYTES_MAX, inner, |b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_run_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    is_word(text, RUN_NAME_BYTES_MAX, inner, |b| b.is_ascii_alphanumeric())
}

fn is_word(text: &str, bytes_max: usize, inner: impl Fn(u8) -> bool, first: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= bytes_max && bytes.first().is_some_and(|b| first(*b)) && bytes.iter().all(|b| inner(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["stripe", "a", "0", "my-app_2", &"x".repeat(64)] {
            assert!(good.parse::<SourceName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a b", "a/b", "..", "a\n", "é", &"x".repeat(65)] {
            assert!(bad.parse::<DestinationName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn run_names_follow_the_contract() {
        for good in ["r1", "A.b_c-d", "9..", &"x".repeat(128)] {
            assert!(good.parse::<RunName>().is_ok(), "{good}");
        }
        for bad in ["", ".a", "_a", "a/b", "a\n", &"x".repeat(129)] {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
    }
}
