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

/// Whether the values of a line may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The whole line.
    Line,
    /// Only what stands before the value: the value may be a secret.
    KeyOnly,
}

/// The place of a byte range in a text. A range over several lines counts to the end of its first one.
pub(crate) fn place(text: &str, span: &Range<usize>, shown: Shown) -> Place {
    let start = floor_boundary(text, span.start);
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor_boundary(text, span.end).clamp(start, line_end);
    let line_text = text[line_start..line_end].trim_end_matches('\r');
    Place::File {
        line: before.matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        width: text[start..end].chars().count().max(1),
        text: displayed(line_text, shown),
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn displayed(line: &str, shown: Shown) -> String {
    let visible = match (shown, line.split_once('=')) {
        (Shown::KeyOnly, Some((key, _))) => format!("{key}= (not shown: it may be a secret)"),
        (Shown::KeyOnly, None) => "(not shown: it may be a secret)".to_owned(),
        (Shown::Line, _) => line.to_owned(),
    };
    visible.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// ` ; did you mean ...?` for the known word that is closest, or nothing.
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
        let found = place(text, &(start..start + 3), Shown::Line);
        assert_eq!(found, Place::File { line: 2, column: 6, width: 3, text: "bé = \"x\"".to_owned() });
        let end = place(text, &(text.len()..text.len()), Shown::Line);
        assert_eq!(end, Place::File { line: 3, column: 6, width: 1, text: "c = 3".to_owned() });
    }

    #[test]
    fn a_line_that_may_hold_a_secret_is_not_shown() {
        let text = "secret = \"whsec_abcdef\"";
        let Place::File { text, .. } = place(text, &(9..23), Shown::KeyOnly) else { panic!("no place") };
        assert!(!text.contains("abcdef") && text.starts_with("secret ="), "{text}");
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
