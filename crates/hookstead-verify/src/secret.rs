//! A shared secret that stays out of logs and memory dumps, and the mistakes that people make with one.
//!
//! Knows nothing of providers: what a record asks of its secrets (length, coding) is checked when a
//! [`Verifier`](crate::Verifier) is made.

use std::fmt;

use zeroize::Zeroizing;

/// Fewest bytes of a secret for which the record names no other minimum: less can be guessed by trying.
pub const SECRET_BYTES_MIN: usize = 8;

/// Most bytes of a secret; anything longer is a file that was given by mistake.
pub const SECRET_BYTES_MAX: usize = 4096;

/// Secrets shorter than this show no part of themselves in [`Secret::hint`].
const HINTED_CHARACTERS_MIN: usize = 12;

/// One secret of a source: wiped on drop, redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: Zeroizing<Vec<u8>>,
    decode: Option<SecretCoding>,
}

/// How a key is read from the text of one secret, in the words of a record's `key.decode`. For a provider that changed
/// how its keys are made, so that older and newer secrets of one source are read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretCoding {
    /// `utf8`: the bytes of the whole text, with whatever the record strips from its secrets.
    Utf8,
    /// `base64`: what is left after the record's prefixes were stripped, decoded; padding may be missing.
    Base64,
    /// `hex`: the same, from hex digits.
    Hex,
}

impl SecretCoding {
    /// Every coding.
    pub const ALL: [Self; 3] = [Self::Utf8, Self::Base64, Self::Hex];

    /// Its word in records and in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Base64 => "base64",
            Self::Hex => "hex",
        }
    }

    /// The coding of a word; `None` for any other text.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| coding.word() == word)
    }
}

/// Why a text is refused as a secret, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Nothing is there, or only white space.
    #[error("the secret is empty")]
    Empty,
    /// White space at the start or the end.
    #[error("the secret {0}")]
    Blank(&'static str),
    /// Quotation marks around it.
    #[error("the secret stands in quotation marks")]
    Quoted,
    /// Fewer bytes of key than needed.
    #[error("the secret gives {bytes} bytes of key, fewer than {bytes_min}")]
    TooShort {
        /// Bytes of key in it.
        bytes: usize,
        /// Bytes of key needed.
        bytes_min: usize,
    },
    /// More than [`SECRET_BYTES_MAX`] bytes.
    #[error("the secret has {bytes} bytes, more than {SECRET_BYTES_MAX}")]
    TooLong {
        /// Bytes in it.
        bytes: usize,
    },
    /// An API key or another credential instead of a signing secret.
    #[error("this is {what} (`{prefix}...`), not a signing secret")]
    WrongKind {
        /// The prefix by which it was seen.
        prefix: &'static str,
        /// What it is instead.
        what: &'static str,
    },
    /// The record wants a coding in which the text is not written.
    #[error("the secret is not {0}")]
    Undecodable(&'static str),
    /// A coding is named for a secret that is sent as it is, or that is a public key.
    #[error("the secret has a coding, and this provider's secrets are not decoded")]
    UselessCoding,
    /// The record wants a form such as `user:password`.
    #[error("the secret is not of the form `{0}`")]
    Form(&'static str),
}

impl SecretError {
    /// What a person can do about it, as one sentence without a full stop.
    pub fn fix(&self) -> String {
        match self {
            Self::Empty => {
                "set the variable or file to the signing secret of the provider's webhook page".into()
            }
            Self::Blank(_) => "remove the white space around it; `printf %s` writes no line feed".into(),
            Self::Quoted => "remove the quotation marks; an env file or shell kept them as part of it".into(),
            Self::TooShort { bytes_min, .. } => {
                format!("copy the whole secret, or make one of at least {bytes_min} random bytes")
            }
            Self::TooLong { .. } => "give the secret itself, not a file that holds more than it".into(),
            Self::WrongKind { .. } => {
                "look for the signing secret on the provider's webhook page; revoke this key if it was shared"
                    .into()
            }
            Self::Undecodable(coding) => format!("copy it again, whole and unchanged: it has to be {coding}"),
            Self::UselessCoding => "remove `decode` beside it".into(),
            Self::Form(form) => format!("write it as `{form}`"),
        }
    }
}

const PEM_START: &[u8] = b"-----BEGIN ";

/// Credentials that are often pasted where a signing secret belongs.
const WRONG_KINDS: &[(&str, &str)] = &[
    ("sk_live_", "a Stripe API key"),
    ("sk_test_", "a Stripe API key"),
    ("rk_live_", "a restricted Stripe API key"),
    ("rk_test_", "a restricted Stripe API key"),
    ("pk_live_", "a publishable Stripe key"),
    ("pk_test_", "a publishable Stripe key"),
    ("ghp_", "a GitHub personal access token"),
    ("gho_", "a GitHub OAuth token"),
    ("ghs_", "a GitHub app token"),
    ("github_pat_", "a GitHub personal access token"),
    ("glpat-", "a GitLab personal access token"),
    ("shpat_", "a Shopify admin API token"),
    ("lin_api_", "a Linear API key"),
    ("xoxb-", "a Slack bot token"),
    ("xoxp-", "a Slack user token"),
    ("xapp-", "a Slack app-level token"),
];

impl Secret {
    /// Takes the bytes as they are: nothing is trimmed or decoded.
    ///
    /// # Errors
    ///
    /// [`SecretError`] for what is never meant as a secret: nothing, white space around it, quotation marks, a
    /// known API key, an absurd length. [`SECRET_BYTES_MIN`] and the record's own minimum are checked by
    /// [`Verifier::new`](crate::Verifier::new) and [`Provider::check_secret`](crate::Provider::check_secret).
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let bytes = Zeroizing::new(bytes.into());
        check(&bytes)?;
        Ok(Self { text: bytes, decode: None })
    }

    /// The same text, from which the key is read in this way; `None`: as the provider's record says. Whether the text
    /// is of this coding, and whether the provider has keys that are decoded, is checked where its length is.
    #[must_use]
    pub fn decoded_as(self, coding: Option<SecretCoding>) -> Self {
        Self { decode: coding, ..self }
    }

    /// How the key is read, where that was said beside the secret.
    pub fn coding(&self) -> Option<SecretCoding> {
        self.decode
    }

    /// The last four characters, for people who compare them with the provider's page; only `…` when so much
    /// would be a noticeable part of the secret.
    pub fn hint(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        if self.text.starts_with(PEM_START) {
            return "…PEM".to_owned();
        }
        let length = text.chars().count();
        let shown = if length < HINTED_CHARACTERS_MIN { 0 } else { 4 };
        let tail: String =
            text.chars().skip(length - shown).filter(|character| !character.is_control()).collect();
        format!("…{tail}")
    }

    /// The bytes themselves.
    pub fn expose(&self) -> &[u8] {
        &self.text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret([REDACTED])")
    }
}

fn check(bytes: &[u8]) -> Result<(), SecretError> {
    match bytes {
        [] => return Err(SecretError::Empty),
        _ if bytes.iter().all(u8::is_ascii_whitespace) => return Err(SecretError::Empty),
        _ if bytes.len() > SECRET_BYTES_MAX => return Err(SecretError::TooLong { bytes: bytes.len() }),
        // A key in PEM stands in a file of its own, which ends with a line feed. Where a shared secret belongs it
        // is refused when a verifier is made.
        _ if bytes.starts_with(PEM_START) => return Ok(()),
        [.., b'\n' | b'\r'] => return Err(SecretError::Blank("ends with a line feed")),
        [.., last] if last.is_ascii_whitespace() => return Err(SecretError::Blank("ends with white space")),
        [first, ..] if first.is_ascii_whitespace() => {
            return Err(SecretError::Blank("starts with white space"));
        }
        [b'"', .., b'"'] | [b'\'', .., b'\''] => return Err(SecretError::Quoted),
        _ => {}
    }
    match WRONG_KINDS.iter().find(|(prefix, _)| bytes.starts_with(prefix.as_bytes())) {
        Some(&(prefix, what)) => Err(SecretError::WrongKind { prefix, what }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_a_way_out() {
        let refused = |text: &str| {
            let error = Secret::new(text).unwrap_err();
            assert!(!error.fix().is_empty());
            error.to_string()
        };
        assert_eq!(refused(""), "the secret is empty");
        assert_eq!(refused(" \n"), "the secret is empty");
        assert_eq!(refused("abcdefgh12345678\n"), "the secret ends with a line feed");
        assert_eq!(refused("abcdefgh12345678\t"), "the secret ends with white space");
        assert_eq!(refused(" abcdefgh12345678"), "the secret starts with white space");
        assert_eq!(refused("\"abcdefgh12345678\""), "the secret stands in quotation marks");
        assert_eq!(
            refused("sk_live_abcdef"),
            "this is a Stripe API key (`sk_live_...`), not a signing secret"
        );
        assert!(refused("xoxb-1").contains("Slack bot token"));
        assert!(refused(&"a".repeat(5000)).contains("more than 4096"));
    }

    #[test]
    fn nothing_of_a_secret_leaks() {
        let secret = Secret::new("whsec_abcdefghijkl").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret([REDACTED])");
        assert_eq!(secret.hint(), "…ijkl");
        assert_eq!(Secret::new("12345").unwrap().hint(), "…");
        assert_eq!(Secret::new(vec![0xff; 16]).unwrap().hint().chars().count(), 5);
        assert!(Secret::new("It's a Secret to Everybody ✓ é").unwrap().hint().ends_with("✓ é"));
    }
}
