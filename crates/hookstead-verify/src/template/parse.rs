//! The template language: `{variable|filter|filter}`, `[...]` for a part that is left out when something in it
//! is absent, and `[[`, `]]`, `{{`, `}}` for the brackets themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::str::{Chars, FromStr};

use super::Variable;
use super::filter::{self, Filter};

/// A compiled template.
///
/// ```
/// use hookstead_verify::Template;
///
/// let template: Template = "{header.X-Topic}:{json:/id}".parse()?;
/// assert_eq!(template.to_string(), "{header.X-Topic}:{json:/id}");
/// assert!("{jsn:/id}".parse::<Template>().is_err());
/// # Ok::<(), hookstead_verify::TemplateError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    pub(crate) parts: Vec<Part>,
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl TemplateError {
    pub(crate) fn new(problem: String) -> Self {
        Self(problem)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Literal(Vec<u8>),
    Slot(Slot),
    Optional(Vec<Part>),
}

/// A variable and what is done to its value.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) variable: Variable,
    pub(crate) filters: Vec<Filter>,
}

impl Slot {
    /// Whether this filter is among those of the slot.
    pub(crate) fn has_filter(&self, name: &str) -> bool {
        self.filters.iter().any(|(found, _)| *found == name)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut parser = Parser { rest: text.chars().peekable() };
        let parts =
            parser.parts(Nesting::Top).map_err(|problem| TemplateError(format!("`{text}`: {problem}")))?;
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl Template {
    /// A template from the short forms that a source may use as well: `/a/b` is a JSON pointer,
    /// `header:NAME` a header; everything else is a template.
    ///
    /// # Errors
    ///
    /// As [`Template::from_str`].
    pub fn from_selector(text: &str) -> Result<Self, TemplateError> {
        if text.starts_with('/') {
            format!("{{json:{text}}}").parse()
        } else if let Some(name) = text.strip_prefix("header:") {
            format!("{{header.{}}}", name.trim()).parse()
        } else {
            text.parse()
        }
    }

    /// The same with the record's named templates in the places of their names.
    pub(crate) fn bind(self, lets: &BTreeMap<String, Self>) -> Result<Self, String> {
        fn bind(part: Part, lets: &BTreeMap<String, Template>) -> Result<Part, String> {
            Ok(match part {
                Part::Slot(Slot { name, variable: Variable::Let(let_name), filters }) => {
                    let found = lets.get(&let_name).cloned();
                    let template = found.ok_or_else(|| format!("the record has no `let.{let_name}`"))?;
                    Part::Slot(Slot { name, variable: Variable::Named(Box::new(template)), filters })
                }
                Part::Optional(parts) => {
                    Part::Optional(parts.into_iter().map(|part| bind(part, lets)).collect::<Result<_, _>>()?)
                }
                other => other,
            })
        }
        let parts = self.parts.into_iter().map(|part| bind(part, lets)).collect::<Result<_, _>>()?;
        Ok(Self { text: self.text, parts })
    }

    /// All variables, also those of optional parts and of named templates.
    pub(crate) fn slots(&self) -> Vec<&Slot> {
        fn collect<'t>(parts: &'t [Part], slots: &mut Vec<&'t Slot>) {
            for part in parts {
                match part {
                    Part::Literal(_) => {}
                    Part::Slot(Slot { variable: Variable::Named(template), .. }) => {
                        collect(&template.parts, slots);
                    }
                    Part::Slot(slot) => slots.push(slot),
                    Part::Optional(parts) => collect(parts, slots),
                }
            }
        }
        let mut slots = Vec::new();
        collect(&self.parts, &mut slots);
        slots
    }

    /// Whether the template has this text by itself, outside of its variables' values.
    pub(crate) fn has_literal(&self, text: &[u8]) -> bool {
        fn has(parts: &[Part], text: &[u8]) -> bool {
            parts.iter().any(|part| match part {
                Part::Literal(found) => found.windows(text.len()).any(|window| window == text),
                Part::Slot(Slot { variable: Variable::LineFeed, .. }) => text == b"\n",
                Part::Slot(Slot { variable: Variable::Named(template), .. }) => has(&template.parts, text),
                Part::Slot(_) => false,
                Part::Optional(parts) => has(parts, text),
            })
        }
        !text.is_empty() && has(&self.parts, text)
    }

    /// The variable, if the template is nothing but one variable as it is.
    pub(crate) fn only_variable(&self) -> Option<&Variable> {
        match &self.parts[..] {
            [Part::Slot(slot)] if slot.filters.is_empty() => Some(&slot.variable),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Top,
    Optional,
}

struct Parser<'t> {
    rest: Peekable<Chars<'t>>,
}

impl Parser<'_> {
    fn parts(&mut self, nesting: Nesting) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        while let Some(next) = self.rest.next() {
            match next {
                '{' | '[' | '}' | ']' if self.rest.next_if_eq(&next).is_some() => literal(&mut parts, next),
                '{' => parts.push(Part::Slot(self.slot()?)),
                '[' if nesting == Nesting::Top => parts.push(Part::Optional(self.parts(Nesting::Optional)?)),
                '[' => return Err("an optional part cannot hold another one".to_owned()),
                ']' if nesting == Nesting::Optional => return Ok(parts),
                '}' | ']' => {
                    return Err(format!("`{next}` closes nothing; write `{next}{next}` for the character"));
                }
                other => literal(&mut parts, other),
            }
        }
        match nesting {
            Nesting::Top => Ok(parts),
            Nesting::Optional => Err("`[` is never closed".to_owned()),
        }
    }

    /// What stands between the braces; the opening one is already taken.
    fn slot(&mut self) -> Result<Slot, String> {
        let mut inside = String::new();
        loop {
            match self.rest.next() {
                None => return Err("`{` is never closed".to_owned()),
                Some('}') => break,
                Some(other) => inside.push(other),
            }
        }
        let mut words = inside.split('|');
        let name = words.next().unwrap_or_default().to_owned();
        let variable = Variable::parse(&name)?;
        let filters = words.map(find_filter).collect::<Result<_, _>>()?;
        Ok(Slot { name, variable, filters })
    }
}

fn find_filter(name: &str) -> Result<Filter, String> {
    filter::find(name).ok_or_else(|| {
        let known: Vec<_> = filter::FILTERS.iter().map(|(name, _)| *name).collect();
        format!("unknown filter `{name}`; there are {}", known.join(", "))
    })
}

fn literal(parts: &mut Vec<Part>, character: char) {
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).as_bytes();
    match parts.last_mut() {
        Some(Part::Literal(literal)) => literal.extend_from_slice(bytes),
        _ => parts.push(Part::Literal(bytes.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_templates_say_what_is_wrong() {
        let problem = |text: &str| text.parse::<Template>().unwrap_err().to_string();
        assert!(problem("{body").contains("never closed"));
        assert!(problem("[{body}").contains("never closed"));
        assert!(problem("[[x]").contains("closes nothing"));
        assert!(problem("[a[b]]").contains("cannot hold another"));
        assert!(problem("{bdy}").contains("unknown variable `bdy`"));
        assert!(problem("{body|sha3}").contains("unknown filter `sha3`"));
        assert!(problem("{json:id}").contains("starts with `/`"));
        assert!(problem("{header.a b}").contains("unknown variable"));
    }

    #[test]
    fn selectors_are_short_templates() {
        let selector = |text: &str| Template::from_selector(text).unwrap().to_string();
        assert_eq!(selector("/event/name"), "{json:/event/name}");
        assert_eq!(selector("header:X-Event"), "{header.X-Event}");
        assert_eq!(selector("{form.type}"), "{form.type}");
    }
}
