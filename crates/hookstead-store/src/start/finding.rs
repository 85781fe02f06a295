//! How one check came out, in words. It knows nothing of what is checked.

use std::fmt;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It was not looked at; the words say why.
    Skipped,
    /// It works, and may not for long or not as well as it could.
    Warning,
    /// It does not work, or must not be trusted.
    Failed,
}

impl Verdict {
    /// The word for it in text and JSON: `ok`, `skip`, `warn` or `fail`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Skipped => "skip",
            Self::Warning => "warn",
            Self::Failed => "fail",
        }
    }

    /// The verdict with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Good, Self::Skipped, Self::Warning, Self::Failed]
            .into_iter()
            .find(|known| known.as_str() == word)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one check came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked: a stable name of lower-case letters and hyphens.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What was seen, or why it failed: a fragment without a full stop.
    pub words: String,
    /// What to do about it; empty where there is nothing to do.
    pub fix: String,
}

impl Finding {
    /// A check that came out well.
    pub fn good(name: impl Into<String>, words: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Good, words: words.into(), fix: String::new() }
    }

    /// A check that was not made.
    pub fn skipped(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, ..Self::good(name, why) }
    }

    /// A check that found something to see to.
    pub fn warning(name: impl Into<String>, words: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, fix: fix.into(), ..Self::good(name, words) }
    }

    /// A check that failed.
    pub fn failed(name: impl Into<String>, words: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, fix: fix.into(), ..Self::good(name, words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_verdicts_are_one_to_one() {
        for verdict in [Verdict::Good, Verdict::Skipped, Verdict::Warning, Verdict::Failed] {
            assert_eq!(Verdict::from_word(&verdict.to_string()), Some(verdict));
        }
        assert_eq!(Verdict::from_word("good"), None);
        assert!(Verdict::Failed > Verdict::Warning && Verdict::Warning > Verdict::Skipped);
    }
}
