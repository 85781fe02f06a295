//! What a sender reads in a success: a text with placeholders, taken apart once, when its source is made.
//!
//! Here is known what the placeholders are called. What stands for them is known to whoever answers.

use hookstead_verify::Ack;

use crate::source::SuccessBody;

/// The body of a success where neither the source nor its provider wants one of their own.
const OURS: &str = "{\"outcome\":\"@outcome@\",\"event\":\"@event@\"}\n";
const JSON: &str = "application/json";

/// Room for what is filled in, which is mostly an id and a digest.
const FILLED_BYTES_USUAL: usize = 128;

/// The body of a success, ready to be filled: see [`SuccessBody`] for its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessTemplate {
    text: String,
    pieces: Vec<Piece>,
    content_type: String,
}

/// What a placeholder asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// `@outcome@`: the outcome in a word.
    Outcome,
    /// `@event@`: the short id of the event.
    Event,
    /// `@new@`: whether the event is new, as `true` or `false`.
    New,
    /// `@sha256@`: the digest of the event's body.
    Sha256,
    /// `@header.NAME@`: the request's header of this name, which may be no name of a header at all.
    Header(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// Behind its first `@`, the text goes on at this byte.
    Placeholder(Placeholder, usize),
}

impl SuccessTemplate {
    /// What a provider wants, else ours.
    pub(crate) fn of_provider(ack: Option<&Ack>) -> Self {
        let of_ack =
            ack.and_then(|ack| Some((ack.body.as_deref()?, ack.content_type.as_deref().unwrap_or(JSON))));
        let (text, content_type) = of_ack.unwrap_or((OURS, JSON));
        Self::new(text.to_owned(), content_type.to_owned())
    }

    fn new(text: String, content_type: String) -> Self {
        Self { pieces: pieces(&text), text, content_type }
    }

    /// The `Content-Type` of the text.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// The text with everything in it that `append` appends for its placeholders. Where `append` says `false`,
    /// nothing stands for one, and nothing may have been appended: then its first `@` is one, and what follows is
    /// read as if the text began there.
    pub fn fill(&self, mut append: impl FnMut(&Placeholder, &mut Vec<u8>) -> bool) -> Vec<u8> {
        let mut filled = Vec::with_capacity(self.text.len() + FILLED_BYTES_USUAL);
        let mut text = self.text.as_str();
        let mut goes_on = fill(&self.pieces, &mut append, &mut filled);
        while let Some(behind) = goes_on {
            filled.push(b'@');
            text = &text[behind..];
            goes_on = fill(&pieces(text), &mut append, &mut filled);
        }
        filled
    }
}

impl From<&SuccessBody> for SuccessTemplate {
    fn from(body: &SuccessBody) -> Self {
        Self::new(body.text.clone(), body.content_type.clone())
    }
}

/// Fills pieces up to the first for which nothing stands: behind its `@`, the text goes on at the byte that it gives.
fn fill(
    pieces: &[Piece],
    append: &mut impl FnMut(&Placeholder, &mut Vec<u8>) -> bool,
    filled: &mut Vec<u8>,
) -> Option<usize> {
    for piece in pieces {
        match piece {
            Piece::Text(text) => filled.extend_from_slice(text.as_bytes()),
            Piece::Placeholder(placeholder, behind) => {
                if !append(placeholder, filled) {
                    return Some(*behind);
                }
            }
        }
    }
    None
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(found) = text[at..].find('@') {
        let behind = at + found + 1;
        at = behind;
        if let Some((name, _)) = text[behind..].split_once('@')
            && let Some(placeholder) = placeholder(name)
        {
            pieces.push(Piece::Text(text[begin..behind - 1].to_owned()));
            pieces.push(Piece::Placeholder(placeholder, behind));
            at = behind + name.len() + 1;
            begin = at;
        }
    }
    pieces.push(Piece::Text(text[begin..].to_owned()));
    pieces
}

fn placeholder(name: &str) -> Option<Placeholder> {
    Some(match name {
        "outcome" => Placeholder::Outcome,
        "event" => Placeholder::Event,
        "new" => Placeholder::New,
        "sha256" => Placeholder::Sha256,
        _ => Placeholder::Header(name.strip_prefix("header.")?.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every placeholder stands for its name in brackets, but for the headers that are not there.
    fn check(text: &str, expected: &str) {
        let body = SuccessBody { text: text.to_owned(), content_type: "text/plain".to_owned() };
        let template = SuccessTemplate::from(&body);
        let filled = template.fill(|placeholder, filled| {
            let shown = match placeholder {
                Placeholder::Header(name) if name == "none" => return false,
                Placeholder::Header(name) => format!("[{name}]"),
                other => format!("[{other:?}]"),
            };
            filled.extend_from_slice(shown.as_bytes());
            true
        });
        assert_eq!(String::from_utf8(filled).unwrap(), expected, "{text}");
    }

    #[test]
    fn placeholders_are_filled_and_everything_else_is_text() {
        check("", "");
        check("no placeholder @ all", "no placeholder @ all");
        check("@outcome@ @event@ @new@ @sha256@ @header.x@", "[Outcome] [Event] [New] [Sha256] [x]");
        check("@outcome@@event@", "[Outcome][Event]");
        check("a@b @event@ @ @other@event@ é@", "a@b [Event] @ @other[Event] é@");
    }

    #[test]
    fn what_nothing_stands_for_is_text_and_its_end_may_begin_another() {
        check("@header.none@ @event@", "@header.none@ [Event]");
        check("@header.none@event@ @header.none@", "@header.none[Event] @header.none@");
        check("@header.none@header.none@new@", "@header.none@header.none[New]");
    }
}
