//! Reads tables of a TOML file key by key and gathers everything that is wrong, with its place.
//!
//! Knows TOML and the shape of values. Which keys there are and what they mean, its callers know.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{ConfigProblem, Place, did_you_mean, place};
use super::units::{format_duration, format_size, parse_duration, parse_size};

/// The text of a file and the problems found so far.
pub(crate) struct Findings<'d> {
    text: &'d str,
    /// What may be a secret and is never shown.
    hidden: Vec<Range<usize>>,
    problems: RefCell<Vec<ConfigProblem>>,
}

impl<'d> Findings<'d> {
    /// `hidden` is what may be a secret, wherever a line of it is shown.
    pub(crate) fn new(text: &'d str, hidden: Vec<Range<usize>>) -> Self {
        Self { text, hidden, problems: RefCell::default() }
    }

    /// Adds a problem with a place in the file.
    pub(crate) fn at(&self, span: &Range<usize>, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        self.push(self.place(span), key, what, fix);
    }

    /// Adds a problem anywhere.
    pub(crate) fn push(&self, place: Place, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        let problem = ConfigProblem { place, key: key.to_owned(), what: what.into(), fix: fix.into() };
        self.problems.borrow_mut().push(problem);
    }

    /// The problems: those of the file by line and column, then the others as they were found.
    pub(crate) fn into_problems(self) -> Vec<ConfigProblem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| match &problem.place {
            Place::File { line, column, .. } => (0, *line, *column),
            _ => (1, 0, 0),
        });
        problems
    }

    /// A range as a place.
    pub(crate) fn place(&self, span: &Range<usize>) -> Place {
        place(self.text, span, &self.hidden)
    }

    /// The line of a place in the file, from 1.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        let end = span.start.min(self.text.len());
        self.text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// One table of the file.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    /// Its name as in `[sources.stripe]`.
    pub(crate) path: String,
    /// Where it begins.
    pub(crate) span: Range<usize>,
    table: &'a DeTable<'a>,
    pub(crate) findings: &'a Findings<'a>,
}

impl<'a> Section<'a> {
    /// A table whose keys are checked by the caller.
    pub(crate) fn open(
        path: impl Into<String>,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        findings: &'a Findings<'a>,
    ) -> Self {
        Self { path: path.into(), span, table, findings }
    }

    /// The full name of a key.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Reports every key that is not among `known`.
    pub(crate) fn check_keys(&self, known: &[&str]) {
        for (key, _) in self.table {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let suggestion = did_you_mean(name, known.iter().copied());
            let what = match suggestion {
                Some(word) => format!("unknown key{}; did you mean `{word}`?", self.within()),
                None => format!("unknown key{}", self.within()),
            };
            let fix = if suggestion.is_some() {
                String::new()
            } else {
                format!("known keys: {}", known.join(", "))
            };
            self.findings.at(&key.span(), &self.key(name), what, fix);
        }
    }

    fn within(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!(" in [{}]", self.path) }
    }

    /// The entries: name, its place, value.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Spanned<DeValue<'a>>)> {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
    }

    /// The value of a key.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(name)
    }

    /// The place of a key, or of the section where the key is absent.
    pub(crate) fn key_span(&self, name: &str) -> Range<usize> {
        self.table.get_key_value(name).map_or_else(|| self.span.clone(), |(key, _)| key.span())
    }

    /// A table below this one.
    pub(crate) fn section(&self, name: &str) -> Option<Section<'a>> {
        let (key, value) = self.table.get_key_value(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::open(self.key(name), key.span(), table, self.findings)),
            other => {
                let what = format!("expected a table, found {}", kind(other));
                self.findings.at(&value.span(), &self.key(name), what, format!("write [{}]", self.key(name)));
                None
            }
        }
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Option<At<&'a str>> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text.as_ref(), span: value.span() }),
            other => {
                let what = format!("expected a text in quotation marks, found {}", kind(other));
                self.findings.at(&value.span(), &self.key(name), what, "");
                None
            }
        }
    }

    /// A text that `parse` understands; its error is a fragment that follows the text.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<At<T>> {
        let text = self.text(name)?;
        match parse(text.value) {
            Ok(value) => Some(At { value, span: text.span }),
            Err(fault) => {
                self.findings.at(&text.span, &self.key(name), format!("`{}` {fault}", text.value), "");
                None
            }
        }
    }

    /// A duration within a range.
    pub(crate) fn duration(&self, name: &str, range: RangeInclusive<Duration>) -> Option<At<Duration>> {
        let example = "a duration has a unit: \"30s\", \"5m\", \"2h\"";
        self.quantity(name, example)?;
        let found = self.parsed(name, parse_duration)?;
        self.in_range(name, found, &range, |value| format_duration(*value))
    }

    /// A size in bytes within a range.
    pub(crate) fn size(&self, name: &str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let example = "a size has a unit: \"512 KiB\", \"10 MiB\", \"1 GiB\"";
        self.quantity(name, example)?;
        let found = self.parsed(name, parse_size)?;
        self.in_range(name, found, &range, |value| format_size(*value))
    }

    /// Refuses a bare number where a number with a unit is wanted.
    fn quantity(&self, name: &str, example: &str) -> Option<()> {
        let value = self.value(name)?;
        if value.get_ref().is_integer() || value.get_ref().is_float() {
            self.findings.at(&value.span(), &self.key(name), "a number without a unit", example);
            return None;
        }
        Some(())
    }

    /// A whole number within a range.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let value = self.value(name)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            let what = format!("expected a whole number, found {}", kind(value.get_ref()));
            self.findings.at(&value.span(), &self.key(name), what, "");
            return None;
        };
        let parsed = u64::from_str_radix(integer.as_str(), integer.radix());
        let Ok(number) = parsed else {
            self.findings.at(&value.span(), &self.key(name), "not a whole number from 0 upwards", "");
            return None;
        };
        self.in_range(name, At { value: number, span: value.span() }, &range, u64::to_string)
    }

    /// True or false.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            let what = format!("expected true or false, found {}", kind(value.get_ref()));
            self.findings.at(&value.span(), &self.key(name), what, "");
        }
        found
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<At<&'a str>>> {
        let value = self.value(name)?;
        let DeValue::Array(items) = value.get_ref() else {
            let what = format!("expected a list of texts, found {}", kind(value.get_ref()));
            self.findings.at(&value.span(), &self.key(name), what, "");
            return None;
        };
        let text = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::String(text) => Some(At { value: text.as_ref(), span: item.span() }),
            other => {
                let what = format!("expected a text in quotation marks, found {}", kind(other));
                self.findings.at(&item.span(), &self.key(name), what, "");
                None
            }
        };
        Some(items.iter().filter_map(text).collect())
    }

    /// A list of texts that `parse` understands; what it does not is reported and left out. An error is a fragment that
    /// follows the text.
    pub(crate) fn parsed_list<T, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let parsed = |text: At<&str>| match parse(text.value) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.findings.at(&text.span, &self.key(name), format!("`{}` {fault}", text.value), "");
                None
            }
        };
        Some(self.texts(name)?.into_iter().filter_map(parsed).collect())
    }

    fn in_range<T: PartialOrd>(
        &self,
        name: &str,
        found: At<T>,
        range: &RangeInclusive<T>,
        show: impl Fn(&T) -> String,
    ) -> Option<At<T>> {
        if range.contains(&found.value) {
            return Some(found);
        }
        let what = format!(
            "{} is not between {} and {}",
            show(&found.value),
            show(range.start()),
            show(range.end())
        );
        self.findings.at(&found.span, &self.key(name), what, "");
        None
    }
}

/// What a value is, for people.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
