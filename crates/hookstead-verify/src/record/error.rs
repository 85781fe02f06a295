//! What is wrong with a record, and where: line, column and a caret under the place.

use std::fmt;
use std::ops::Range;

/// A record that cannot be used. Its `Display` shows the line with a caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The provider's name, as the caller gave it.
    pub provider: String,
    /// Line of the fault, counted from 1.
    pub line: usize,
    /// Column of the fault in characters, counted from 1.
    pub column: usize,
    /// What is wrong, without place.
    pub message: String,
    /// A better spelling, if there is one.
    pub suggestion: Option<String>,
    excerpt: String,
    width: usize,
}

impl ProviderError {
    /// An error at a byte range of the record's text; an empty text has no excerpt.
    pub(crate) fn at(provider: &str, text: &str, span: Option<Range<usize>>, message: String) -> Self {
        let span = span.unwrap_or(0..0);
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let marked = &text[start..floor_boundary(text, span.end).clamp(start, line_end)];
        Self {
            provider: provider.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            suggestion: suggest(&message),
            message,
            excerpt: text[line_start..line_end].trim_end().to_owned(),
            width: marked.chars().count().max(1),
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, line, column, message, excerpt, .. } = self;
        write!(formatter, "{provider}.toml:{line}:{column}: {message}")?;
        if !excerpt.is_empty() {
            let gutter = " ".repeat(line.to_string().len());
            let indent = " ".repeat(column - 1);
            let caret = "^".repeat(self.width);
            write!(formatter, "\n{gutter} |\n{line} | {excerpt}\n{gutter} | {indent}{caret}")?;
        }
        match &self.suggestion {
            Some(suggestion) => write!(formatter, "\ndid you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ProviderError {}

/// The largest character boundary that is not beyond `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// For "unknown field `a`, expected one of `b`, `c`": the expected name that is close to the unknown one.
fn suggest(message: &str) -> Option<String> {
    if !message.contains("unknown") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    quoted
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, known)| known.to_owned())
}
