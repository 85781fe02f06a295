//! Which events a destination wants. Pure and bounded: it knows neither stores nor who delivers.

use std::collections::HashSet;

use hookstead_core::{SourceName, TypePattern};
use hookstead_verify::{JsonPointer, JsonScalar};

/// The most sources, and the most type patterns, that one filter may name.
pub const FILTER_NAMES_MAX: usize = 256;

/// The most JSON pointers that one filter may compare: each is a pass over the body of every event that the
/// rest of the filter lets through.
pub const FILTER_EQUALS_MAX: usize = 8;

/// The longest JSON pointer and the longest value to compare with, in bytes.
pub const FILTER_TEXT_BYTES_MAX: usize = 1024;

/// Which events a destination wants. All parts must hold; the default filter wants every event.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    sources: HashSet<SourceName>,
    types: Vec<TypePattern>,
    equals: Vec<Equals>,
}

/// A place in a JSON body and the value that must stand there.
#[derive(Clone, Debug)]
struct Equals {
    text: String,
    pointer: JsonPointer,
    value: JsonScalar,
}

/// Why something cannot be filtered by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is no JSON pointer.
    #[error("`{pointer}` is no JSON pointer: {why}")]
    Pointer {
        /// As it was given.
        pointer: String,
        /// What is wrong.
        why: String,
    },
    /// The value to compare with holds others.
    #[error("`{0}` can be compared with a text, a number, true, false or null only")]
    Value(String),
    /// More than a filter may hold.
    #[error("a filter takes at most {max} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many it takes.
        max: usize,
    },
    /// A pointer or value is longer than [`FILTER_TEXT_BYTES_MAX`].
    #[error("`{0}`... is longer than {FILTER_TEXT_BYTES_MAX} bytes")]
    TooLong(String),
}

impl Filter {
    /// Only events of these sources; of none named: of every source.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooMany`] above [`FILTER_NAMES_MAX`].
    pub fn sources(mut self, sources: impl IntoIterator<Item = SourceName>) -> Result<Self, FilterError> {
        self.sources = sources.into_iter().take(FILTER_NAMES_MAX + 1).collect();
        at_most("sources", self.sources.len(), FILTER_NAMES_MAX)?;
        Ok(self)
    }

    /// Only events whose type one of these patterns matches; of none named: of every type, and of none. An event
    /// without a type matches only `*`.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooMany`] above [`FILTER_NAMES_MAX`].
    pub fn types(mut self, types: impl IntoIterator<Item = TypePattern>) -> Result<Self, FilterError> {
        self.types = types.into_iter().take(FILTER_NAMES_MAX + 1).collect();
        at_most("type patterns", self.types.len(), FILTER_NAMES_MAX)?;
        Ok(self)
    }

    /// Only events in whose JSON body `value` stands at `pointer` (RFC 6901). A text is never equal to a number;
    /// numbers are compared by their digits, so that 1 and 1.0 differ. A body that is not one JSON document, or has
    /// no such place, does not match; of two equal keys the last counts.
    ///
    /// # Errors
    ///
    /// [`FilterError`]: no pointer, a value that holds others, too long, or more than [`FILTER_EQUALS_MAX`].
    pub fn equals(mut self, pointer: &str, value: &serde_json::Value) -> Result<Self, FilterError> {
        at_most("JSON pointers", self.equals.len() + 1, FILTER_EQUALS_MAX)?;
        let value = scalar(value).ok_or_else(|| FilterError::Value(value.to_string()))?;
        bounded(pointer)?;
        let parsed = JsonPointer::parse(pointer)
            .map_err(|why| FilterError::Pointer { pointer: pointer.to_owned(), why })?;
        if let JsonScalar::Text(text) = &value {
            bounded(&String::from_utf8_lossy(text))?;
        }
        self.equals.push(Equals { text: pointer.to_owned(), pointer: parsed, value });
        Ok(self)
    }

    /// Whether an event is wanted. The cheap parts are asked first; the body is read only if a pointer is compared.
    pub fn matches(&self, source: &SourceName, event_type: Option<&str>, body: &[u8]) -> bool {
        (self.sources.is_empty() || self.sources.contains(source))
            && (self.types.is_empty() || self.types.iter().any(|pattern| pattern.matches(event_type)))
            && self.equals.iter().all(|equals| equals.pointer.scalar(body).as_ref() == Some(&equals.value))
    }

    /// The sources that it names, sorted; none: every source.
    pub fn source_names(&self) -> Vec<&SourceName> {
        let mut names: Vec<_> = self.sources.iter().collect();
        names.sort_unstable();
        names
    }

    /// The type patterns that it names, in their order; none: every type.
    pub fn type_patterns(&self) -> &[TypePattern] {
        &self.types
    }

    /// The places that it compares and the values that must stand there.
    pub fn comparisons(&self) -> impl Iterator<Item = (&str, serde_json::Value)> {
        self.equals.iter().map(|equals| (equals.text.as_str(), shown(&equals.value)))
    }
}

fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), FilterError> {
    if count > max { Err(FilterError::TooMany { what, max }) } else { Ok(()) }
}

fn bounded(text: &str) -> Result<(), FilterError> {
    if text.len() > FILTER_TEXT_BYTES_MAX {
        return Err(FilterError::TooLong(text.chars().take(40).collect()));
    }
    Ok(())
}

fn scalar(value: &serde_json::Value) -> Option<JsonScalar> {
    match value {
        serde_json::Value::Null => Some(JsonScalar::Null),
        serde_json::Value::Bool(bool) => Some(JsonScalar::Bool(*bool)),
        serde_json::Value::Number(number) => Some(JsonScalar::Number(number.to_string())),
        serde_json::Value::String(text) => Some(JsonScalar::Text(text.clone().into_bytes())),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}

fn shown(value: &JsonScalar) -> serde_json::Value {
    match value {
        JsonScalar::Null => serde_json::Value::Null,
        JsonScalar::Bool(bool) => (*bool).into(),
        JsonScalar::Number(digits) => serde_json::from_str(digits).unwrap_or_else(|_| digits.as_str().into()),
        JsonScalar::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filter(sources: &[&str], types: &[&str]) -> Filter {
        Filter::default()
            .sources(sources.iter().map(|name| name.parse().unwrap()))
            .unwrap()
            .types(types.iter().map(|pattern| pattern.parse().unwrap()))
            .unwrap()
    }

    fn wants(filter: &Filter, source: &str, event_type: Option<&str>, body: &str) -> bool {
        filter.matches(&source.parse().unwrap(), event_type, body.as_bytes())
    }

    #[test]
    fn an_empty_filter_wants_everything() {
        let all = Filter::default();
        assert!(wants(&all, "stripe", None, "") && wants(&all, "github", Some("push"), "\u{fffd}{"));
    }

    #[test]
    fn sources_and_types_must_both_hold() {
        let invoices = filter(&["stripe"], &["invoice.*", "charge.refunded"]);
        for (source, event_type, wanted) in [
            ("stripe", Some("invoice.paid"), true),
            ("stripe", Some("charge.refunded"), true),
            ("stripe", Some("charge.refunded.late"), false),
            ("stripe", Some("Invoice.paid"), false),
            ("stripe", None, false),
            ("github", Some("invoice.paid"), false),
        ] {
            assert_eq!(wants(&invoices, source, event_type, "{}"), wanted, "{source} {event_type:?}");
        }
        assert!(wants(&filter(&[], &["*"]), "stripe", None, ""));
    }

    #[test]
    fn a_pointer_compares_values_by_kind() {
        let check = |value: serde_json::Value, body: &str| {
            let filter = Filter::default().equals("/data/0/a~1b", &value).unwrap();
            wants(&filter, "stripe", None, body)
        };
        assert!(check(json!("x"), r#"{"data":[{"a/b":"x"}]}"#));
        assert!(check(json!(5), r#"{"data":[{"a/b":5}]}"#));
        assert!(check(json!(true), r#"{"data":[{"a/b":true}]}"#));
        assert!(check(json!(null), r#"{"data":[{"a/b":null}]}"#));
        assert!(!check(json!(5), r#"{"data":[{"a/b":"5"}]}"#));
        assert!(!check(json!(1), r#"{"data":[{"a/b":1.0}]}"#));
        assert!(!check(json!(null), r#"{"data":[{}]}"#));
        assert!(!check(json!("x"), r#"{"data":[{"a/b":["x"]}]}"#));
        assert!(check(json!("x"), r#"{"data":[{"a/b":1,"a/b":"x"}]}"#), "of two equal keys the last counts");
    }

    #[test]
    fn a_body_that_is_not_one_json_document_never_matches_a_pointer() {
        let filter = Filter::default().equals("/a", &json!(1)).unwrap();
        for body in [&b""[..], b"a=1", b"{\"a\":1", b"{\"a\":1} x", b"\xff{\"a\":1}", b"[1]", b"1"] {
            assert!(!filter.matches(&"s".parse().unwrap(), None, body), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!(r#"{{"deep":{}{},"a":1}}"#, "[".repeat(200_000), "]".repeat(200_000));
        let filter = Filter::default().equals("/a", &json!(1)).unwrap();
        assert!(wants(&filter, "s", None, &deep));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let refused = |pointer: &str, value: serde_json::Value| {
            Filter::default().equals(pointer, &value).unwrap_err().to_string()
        };
        assert_eq!(
            refused("a", json!(1)),
            "`a` is no JSON pointer: a JSON pointer starts with `/`, not with `a`"
        );
        assert!(refused("/a", json!({})).contains("a text, a number, true, false or null only"));
        assert!(refused(&format!("/{}", "x".repeat(2000)), json!(1)).contains("longer than 1024 bytes"));
        let full = (0..FILTER_EQUALS_MAX)
            .fold(Filter::default(), |filter, _| filter.equals("/a", &json!(1)).unwrap());
        assert!(matches!(full.equals("/a", &json!(1)), Err(FilterError::TooMany { .. })));
    }
}
