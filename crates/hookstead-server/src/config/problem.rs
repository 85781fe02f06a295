//! What is wrong with a configuration: every problem at once, each with its place and its fix.
//!
//! Knows how to show a line without showing a secret that stands in it. Does not know which keys there are.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where it stands.
    pub place: Place,
    /// The key that it is about, such as `sources.stripe.secret`; empty if about none.
    pub key: String,
    /// What is wrong, as a sentence without a full stop.
    pub what: String,
    /// What to do about it; empty if that is plain from [`ConfigProblem::what`].
    pub fix: String,
}

/// Where a problem stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file.
    File {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// How many characters are meant, at least 1.
        width: usize,
        /// The line, with values that may be secrets left out.
        text: String,
    },
    /// In this environment variable.
    Environment(String),
    /// In this option of the command line.
    Flag(String),
    /// In no one place.
    Nowhere,
}

/// Everything that is wrong with a configuration. `Display` is what a person should see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    file: Option<PathBuf>,
    problems: Vec<ConfigProblem>,
}

impl ConfigErrors {
    pub(crate) fn new(file: Option<PathBuf>, problems: Vec<ConfigProblem>) -> Self {
        Self { file, problems }
    }

    /// The file, if there was one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The problems, those of the file first, in the order of their lines.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    fn file_name(&self) -> String {
        self.file.as_ref().map_or_else(|| "the configuration".to_owned(), |file| file.display().to_string())
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        writeln!(f, "error[config]: {count} {noun} in {}", self.file_name())?;
        let gutter = self.problems.iter().map(ConfigProblem::gutter).max().unwrap_or(1);
        for problem in &self.problems {
            problem.write(f, &self.file_name(), gutter)?;
        }
        Ok(())
    }
}

impl ConfigProblem {
    /// How many characters its line number takes.
    fn gutter(&self) -> usize {
        if let Place::File { line, .. } = &self.place { line.to_string().len() } else { 1 }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, file: &str, gutter: usize) -> fmt::Result {
        let blank = " ".repeat(gutter);
        match &self.place {
            Place::File { line, column, width, text } => {
                writeln!(f, "{blank} ┌ {file}:{line}:{column}")?;
                writeln!(f, "{line:>gutter$} │ {text}")?;
                let carets = "^".repeat(*width);
                writeln!(f, "{blank} │ {}{carets} {}", " ".repeat(column - 1), self.what)?;
            }
            elsewhere => {
                let where_it_is = match elsewhere {
                    Place::Environment(name) => format!("environment variable {name}"),
                    Place::Flag(name) => format!("option {name}"),
                    Place::File { .. } | Place::Nowhere => file.to_owned(),
                };
                writeln!(f, "{blank} ┌ {where_it_is}\n{blank} │ {}", self.what)?;
            }
        }
        if self.fix.is_empty() { Ok(()) } else { writeln!(f, "{blank} │ fix: {}", self.fix) }
    }
}

/// The place of a byte range in a text. A range over several lines counts to the end of its first one. What
/// lies in `hidden` may be a secret and is shown as stars.
pub(crate) fn place(text: &str, span: &Range<usize>, hidden: &[Range<usize>]) -> Place {
    let start = floor_boundary(text, span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor_boundary(text, span.end).clamp(start, line_end);
    Place::File {
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        width: text[start..end].chars().count().max(1),
        text: displayed(text, line_start..line_end, hidden),
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A line, each of its characters in one column.
fn displayed(text: &str, line: Range<usize>, hidden: &[Range<usize>]) -> String {
    let is_hidden = |at: usize| hidden.iter().any(|range| range.contains(&at));
    let shown = |(at, character): (usize, char)| match character {
        _ if is_hidden(line.start + at) => '*',
        control if control.is_control() => ' ',
        other => other,
    };
    text[line.clone()].trim_end_matches('\r').char_indices().map(shown).collect()
}

/// The known word that somebody may have meant.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const DISTANCE_MAX: usize = 3;
    let closest = known.into_iter().map(|word| (strsim::damerau_levenshtein(given, word), word)).min()?;
    let (distance, word) = closest;
    (distance <= DISTANCE_MAX && distance * 2 <= word.len().max(2)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "a = 1\nbé = \"x\"\r\nc = 3";
        let start = text.find("\"x\"").unwrap();
        let found = place(text, &(start..start + 3), &[]);
        assert_eq!(found, Place::File { line: 2, column: 6, width: 3, text: "bé = \"x\"".to_owned() });
        let end = place(text, &(text.len()..text.len()), &[]);
        assert_eq!(end, Place::File { line: 3, column: 6, width: 1, text: "c = 3".to_owned() });
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        let text = "a = 1\nsecret = \"whséc\" # x";
        let found = place(text, &(6..12), &[15..20, 20..23]);
        let expected = "secret = ******* # x".to_owned();
        assert_eq!(found, Place::File { line: 2, column: 1, width: 6, text: expected });
    }

    #[test]
    fn suggestions_are_close_or_absent() {
        let known = ["secret", "secrets", "provider", "body"];
        assert_eq!(did_you_mean("secrt", known), Some("secret"));
        assert_eq!(did_you_mean("providr", known), Some("provider"));
        assert_eq!(did_you_mean("timeout", known), None);
        assert_eq!(did_you_mean("x", known), None);
    }
}
