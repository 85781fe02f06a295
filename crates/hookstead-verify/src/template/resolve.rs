//! Fills a template from a request. The result is a list of pieces that borrow where they can, so that a body
//! goes into a hash without being copied.

use std::borrow::Cow;

use super::parse::{Part, Slot};
use super::{Context, Template};
use crate::request::Lookup;

/// The bytes of a resolved template, piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pieces<'r>(Vec<Cow<'r, [u8]>>);

impl Pieces<'_> {
    /// The pieces in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// All pieces in one.
    pub(crate) fn concat(&self) -> Vec<u8> {
        self.0.concat()
    }
}

/// A variable that has no single value in this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// It is not there.
    Absent(String),
    /// It is there several times.
    Repeated(String),
}

impl Unresolved {
    /// The variable's name.
    pub(crate) fn into_part(self) -> String {
        match self {
            Self::Absent(part) | Self::Repeated(part) => part,
        }
    }
}

impl Template {
    /// The template's value for a request.
    pub(crate) fn resolve<'r>(&'r self, context: &Context<'r>) -> Result<Pieces<'r>, Unresolved> {
        let mut pieces = Vec::with_capacity(self.parts.len());
        fill(&self.parts, context, &mut pieces)?;
        Ok(Pieces(pieces))
    }

    /// That value in one piece. Where the template is nothing but a variable, it is borrowed if the request has it.
    pub(crate) fn value<'r>(&'r self, context: &Context<'r>) -> Result<Cow<'r, [u8]>, Unresolved> {
        match &self.parts[..] {
            [Part::Slot(slot)] => slot.resolve(context),
            _ => self.resolve(context).map(|pieces| Cow::Owned(pieces.concat())),
        }
    }
}

fn fill<'r>(
    parts: &'r [Part],
    context: &Context<'r>,
    pieces: &mut Vec<Cow<'r, [u8]>>,
) -> Result<(), Unresolved> {
    for part in parts {
        match part {
            Part::Literal(bytes) => pieces.push(Cow::Borrowed(bytes)),
            Part::Slot(slot) => pieces.push(slot.resolve(context)?),
            Part::Optional(parts) => {
                let before = pieces.len();
                match fill(parts, context, pieces) {
                    Ok(()) => {}
                    Err(Unresolved::Absent(_)) => pieces.truncate(before),
                    Err(repeated) => return Err(repeated),
                }
            }
        }
    }
    Ok(())
}

impl Slot {
    /// The filtered value.
    pub(crate) fn resolve<'r>(&self, context: &Context<'r>) -> Result<Cow<'r, [u8]>, Unresolved> {
        match self.variable.resolve(context) {
            Lookup::Absent => Err(Unresolved::Absent(self.name.clone())),
            Lookup::Repeated => Err(Unresolved::Repeated(self.name.clone())),
            Lookup::One(value) => self.filters.iter().try_fold(value, |value, (_, filter)| {
                filter(&value, context).map(Cow::Owned).ok_or_else(|| Unresolved::Absent(self.name.clone()))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn check(template: &str, expected: Result<&str, Unresolved>) {
        let headers = [("X-Id", "7"), ("X-Twice", "a"), ("X-Twice", "b")];
        let request = Request {
            method: "POST",
            target: "/p?q=1",
            url: None,
            headers: &headers,
            body: br#"{"a":{"b":10}}"#,
        };
        let registered_url = Some("https://h.example/p#frag");
        let conf = [("key".to_owned(), "k".to_owned())].into();
        let context = Context {
            registered_url,
            fields: &[("t", b"5")],
            conf: Some(&conf),
            item: Some(br#"{"n":1}"#),
            claims: Some(br#"{"iss":"x"}"#),
            ..Context::of(request)
        };
        let lets = [("twice".to_owned(), "{sig.t}{sig.t}".parse().unwrap())].into();
        let template = template.parse::<Template>().unwrap().bind(&lets).unwrap();
        let found = template.resolve(&context).map(|pieces| String::from_utf8(pieces.concat()).unwrap());
        let value = template.value(&context).map(|value| String::from_utf8(value.into_owned()).unwrap());
        assert_eq!(found, expected.map(str::to_owned), "{template}");
        assert_eq!(value, found, "{template}");
    }

    #[test]
    fn templates_resolve() {
        check("{sig.t}.{body}", Ok(r#"5.{"a":{"b":10}}"#));
        check("[[{json:/a/b}]]{{}}", Ok("[10]{}"));
        check("{url}|{target}|{path}|{query}", Ok("https://h.example/p?q=1|/p?q=1|/p|q=1"));
        check("{method}{lf}", Ok("POST\n"));
        check("a[-{header.x-id}][-{header.none}]", Ok("a-7"));
        check(
            "{let.twice|hex} {conf.key} {item:/n} {jwt.iss} {url_base}",
            Ok("3535 k 1 x https://h.example/p"),
        );
        check("[{secret}][{conf.none}]{json|base64}", Ok("eyJhIjp7ImIiOjEwfX0="));
        check("{header.none}", Err(Unresolved::Absent("header.none".into())));
        check("[{header.X-Twice}]", Err(Unresolved::Repeated("header.X-Twice".into())));
    }
}
