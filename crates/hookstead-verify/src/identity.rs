//! Which event a verified request is: its id, its scope, its type, its account.
//!
//! An id is bytes, never blank and never guessed. Parts of a composite id are joined so that two different
//! lists of parts cannot give the same id.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;

use crate::record::raw;
use crate::template::{Context, Part, Slot, Template, TemplateError, Unresolved};
use crate::verdict::Reason;

/// Longest event id, in bytes.
pub const EVENT_ID_BYTES_MAX: usize = 8 * 1024;

/// What identifies the events of a source. Written as `provider`, `body`, `none` or a template.
#[derive(Debug, Clone, Default)]
pub enum IdentityRule {
    /// The id that the provider's record names.
    #[default]
    Provider,
    /// The id that this template gives.
    Template(Template),
    /// The SHA-256 of the body in lower-case hex digits: equal bodies are one event.
    Body,
    /// None: each request is an event of its own, and the caller makes an id for it.
    None,
}

impl FromStr for IdentityRule {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Ok(match text {
            "provider" => Self::Provider,
            "body" => Self::Body,
            "none" => Self::None,
            template => {
                let template = Template::from_selector(template)?;
                check_joined(&template).map_err(TemplateError::new)?;
                Self::Template(template)
            }
        })
    }
}

impl fmt::Display for IdentityRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider => formatter.write_str("provider"),
            Self::Template(template) => template.fmt(formatter),
            Self::Body => formatter.write_str("body"),
            Self::None => formatter.write_str("none"),
        }
    }
}

/// What a verified request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// The part of the identity beside source and id; usually empty.
    pub scope: Vec<u8>,
    /// The provider event id; `None` only with [`IdentityRule::None`].
    pub event_id: Option<Vec<u8>>,
    /// The event's type, if it is there. Metadata: not part of the identity, and not always signed.
    pub event_type: Option<String>,
    /// The account it belongs to, if it is there. Metadata as well.
    pub account: Option<String>,
}

/// Why a verified request has no usable id. To the sender this is a 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentifyError {
    /// No template gave an id, or only a blank one.
    #[error("no event id where the provider writes one")]
    Missing,
    /// A part of the id is there several times.
    #[error("`{0}` is there several times")]
    Repeated(String),
    /// More than [`EVENT_ID_BYTES_MAX`] bytes.
    #[error("the event id has {0} bytes, more than {EVENT_ID_BYTES_MAX}")]
    TooLong(usize),
    /// Outside the grammar that the provider's record gives for ids.
    #[error("the event id is not of the provider's form")]
    Malformed,
}

impl IdentifyError {
    /// The same in the words for refusals.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Missing => Reason::IdMissing,
            Self::Repeated(_) => Reason::PartRepeated,
            Self::TooLong(_) | Self::Malformed => Reason::IdMalformed,
        }
    }
}

/// A record's templates for id and scope.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdTemplates {
    ids: Vec<Template>,
    scope: Option<Template>,
}

impl IdTemplates {
    pub(crate) fn compile(ids: Vec<Template>, scope: Option<Template>) -> Result<Self, String> {
        ids.iter().chain(&scope).try_for_each(check_joined)?;
        Ok(Self { ids, scope })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Template> {
        self.ids.iter()
    }

    /// The first id that resolves.
    pub(crate) fn id<'r>(&'r self, context: &Context<'r>) -> Result<Cow<'r, [u8]>, IdentifyError> {
        for template in &self.ids {
            if let Some(id) = joined(template, context)? {
                return Ok(id);
            }
        }
        Err(IdentifyError::Missing)
    }

    pub(crate) fn scope_template(&self) -> Option<&Template> {
        self.scope.as_ref()
    }

    /// The scope; empty if its parts are absent.
    pub(crate) fn scope<'r>(&'r self, context: &Context<'r>) -> Result<Cow<'r, [u8]>, IdentifyError> {
        match &self.scope {
            None => Ok(Cow::default()),
            Some(template) => Ok(joined(template, context)?.unwrap_or_default()),
        }
    }

    /// The rule in words, for fingerprints.
    fn describe(&self) -> String {
        self.ids.iter().map(|id| format!("id {id}\n")).chain([self.describe_scope()]).collect()
    }

    fn describe_scope(&self) -> String {
        self.scope.as_ref().map(|scope| format!("scope {scope}\n")).unwrap_or_default()
    }
}

/// The id of a request by a rule.
pub(crate) fn event_id<'r>(
    rule: &'r IdentityRule,
    templates: &'r IdTemplates,
    form: Option<&IdForm>,
    context: &Context<'r>,
) -> Result<Option<Cow<'r, [u8]>>, IdentifyError> {
    let id = match rule {
        IdentityRule::None => return Ok(None),
        IdentityRule::Body => {
            let digest = digest::digest(&digest::SHA256, context.request.body);
            Cow::Owned(hex::encode(digest).into_bytes())
        }
        IdentityRule::Template(template) => joined(template, context)?.ok_or(IdentifyError::Missing)?,
        IdentityRule::Provider => {
            let id = templates.id(context)?;
            if form.is_some_and(|form| !form.fits(&id)) {
                return Err(IdentifyError::Malformed);
            }
            id
        }
    };
    if id.len() > EVENT_ID_BYTES_MAX {
        return Err(IdentifyError::TooLong(id.len()));
    }
    Ok(Some(id))
}

/// One id out of the ids of a batch's items; the digest of them all if that would be too long.
pub(crate) fn batch(ids: &[Vec<u8>]) -> Vec<u8> {
    let (Some((last, before)), false) = (ids.split_last(), ids.windows(2).all(|pair| pair[0] == pair[1]))
    else {
        return ids.first().cloned().unwrap_or_default();
    };
    let mut joined = Vec::new();
    for id in before {
        escape(id, b",", &mut joined);
        joined.push(b',');
    }
    joined.extend_from_slice(last);
    if joined.len() <= EVENT_ID_BYTES_MAX {
        return joined;
    }
    format!("sha256:{}", hex::encode(digest::digest(&digest::SHA256, &joined))).into_bytes()
}

/// Metadata: the first template that resolves to something; what is repeated is not there.
pub(crate) fn metadata(templates: &[Template], context: &Context<'_>) -> Option<String> {
    let values = templates.iter().filter_map(|template| template.value(context).ok());
    let texts = values.map(|value| String::from_utf8_lossy(&value).into_owned());
    texts.into_iter().find(|text| !text.trim().is_empty())
}

/// A template's value with each part escaped so that the parts can be told apart again. Nothing if a part is
/// absent or blank.
fn joined<'r>(template: &'r Template, context: &Context<'r>) -> Result<Option<Cow<'r, [u8]>>, IdentifyError> {
    // Nearly every id is one value.
    if let [Part::Slot(slot)] = &template.parts[..] {
        return seen(slot, context);
    }
    let mut id = Vec::new();
    for (index, part) in template.parts.iter().enumerate() {
        let slot = match part {
            Part::Literal(bytes) => {
                id.extend_from_slice(bytes);
                continue;
            }
            Part::Slot(slot) => slot,
            Part::Optional(_) => return Ok(None),
        };
        let Some(value) = seen(slot, context)? else { return Ok(None) };
        match separator(&template.parts[index + 1..]) {
            Some(separator) => escape(&value, separator, &mut id),
            None => id.extend_from_slice(&value),
        }
    }
    Ok(Some(Cow::Owned(id)))
}

/// The value of a variable; nothing if it is absent or blank.
fn seen<'r>(slot: &Slot, context: &Context<'r>) -> Result<Option<Cow<'r, [u8]>>, IdentifyError> {
    match slot.resolve(context) {
        Ok(value) => Ok(Some(value).filter(|value| !is_blank(value))),
        Err(Unresolved::Absent(_)) => Ok(None),
        Err(Unresolved::Repeated(part)) => Err(IdentifyError::Repeated(part)),
    }
}

/// Whether nothing can be seen: nothing at all, white space, control characters.
fn is_blank(value: &[u8]) -> bool {
    // What nearly every id has, and what none of these can be part of.
    if value.iter().any(u8::is_ascii_graphic) {
        return false;
    }
    let unseen = |character: char| character.is_whitespace() || character.is_control();
    String::from_utf8_lossy(value).chars().all(unseen)
}

/// The text that ends a part, if another part follows it.
fn separator(rest: &[Part]) -> Option<&[u8]> {
    match rest {
        [Part::Literal(bytes), more @ ..] if more.iter().any(|part| matches!(part, Part::Slot(_))) => {
            Some(bytes)
        }
        _ => None,
    }
}

/// Percent-encodes what the separator is made of. The last part needs none of this, since it ends with the id.
fn escape(value: &[u8], separator: &[u8], id: &mut Vec<u8>) {
    for byte in value {
        if *byte == b'%' || separator.contains(byte) {
            id.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            id.push(*byte);
        }
    }
}

/// Whether a template can tell events apart, and its parts from each other.
fn check_joined(template: &Template) -> Result<(), String> {
    if template.slots().is_empty() {
        return Err(format!("`{template}`: no variable is in it, so that every event would be the same one"));
    }
    if template.parts.iter().any(|part| matches!(part, Part::Optional(_))) {
        return Err(format!("`{template}`: an id cannot have optional parts; give several templates"));
    }
    let touching = |pair: &[Part]| matches!(pair, [Part::Slot(_), Part::Slot(_)]);
    if template.parts.windows(2).any(touching) {
        return Err(format!("`{template}`: put a separator between the parts of an id"));
    }
    Ok(())
}

/// A grammar for ids: one character of a set, then up to so many of another.
#[derive(Debug, Clone)]
pub(crate) struct IdForm {
    first: Set,
    rest: Set,
    bytes_max: usize,
}

impl IdForm {
    pub(crate) fn compile(raw: &raw::IdForm) -> Result<Self, String> {
        Ok(Self { first: set(&raw.first)?, rest: set(&raw.rest)?, bytes_max: raw.bytes_max })
    }

    pub(crate) fn fits(&self, id: &[u8]) -> bool {
        let Some((first, rest)) = id.split_first() else { return false };
        id.len() <= self.bytes_max
            && self.first[usize::from(*first)]
            && rest.iter().all(|byte| self.rest[usize::from(*byte)])
    }
}

/// For each byte, whether it is in the set.
type Set = [bool; 256];

/// The ASCII characters of a set such as `A-Za-z0-9._-`; a `-` at the end is itself.
fn set(text: &str) -> Result<Set, String> {
    if text.is_empty() || !text.is_ascii() {
        return Err("a set of characters is not empty and all ASCII".to_owned());
    }
    let mut set = [false; 256];
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let last = match tail {
            [b'-', last, after @ ..] => {
                rest = after;
                *last
            }
            _ => {
                rest = tail;
                *first
            }
        };
        if last < *first {
            return Err(format!("`{}-{}` is the wrong way round", char::from(*first), char::from(last)));
        }
        (*first..=last).for_each(|byte| set[usize::from(byte)] = true);
    }
    Ok(set)
}

/// A digest of everything that decides which id an event gets. When it changes, the same requests may get other
/// identities.
pub(crate) fn fingerprint(provider: &str, rule: &IdentityRule, templates: &IdTemplates) -> [u8; 32] {
    let rule = match rule {
        IdentityRule::Provider => templates.describe(),
        other => format!("id {other}\n{}", templates.describe_scope()),
    };
    let text = format!("hookstead identity 1\nprovider {provider}\n{rule}");
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn id(template: &str, body: &str) -> Result<Option<Vec<u8>>, IdentifyError> {
        let headers: [(&str, &str); 2] = [("x-id", "a"), ("x-id", "b")];
        let request =
            Request { method: "POST", target: "/", url: None, headers: &headers, body: body.as_bytes() };
        let context = Context::of(request);
        let rule: IdentityRule = template.parse().unwrap();
        event_id(&rule, &IdTemplates::default(), None, &context).map(|id| id.map(Cow::into_owned))
    }

    #[test]
    fn parts_are_joined_so_that_they_can_be_told_apart() {
        let joined = |a: &str, b: &str| {
            let body = format!(r#"{{"a":"{a}","b":"{b}"}}"#);
            String::from_utf8(id("{json:/a}:{json:/b}", &body).unwrap().unwrap()).unwrap()
        };
        assert_eq!(joined("SM1", "sent"), "SM1:sent");
        assert_eq!(joined("x:y", "z"), "x%3Ay:z");
        assert_eq!(joined("x", "y:z"), "x:y:z");
        assert_eq!(joined("x%3Ay", "z"), "x%253Ay:z");
    }

    #[test]
    fn blank_repeated_and_huge_ids_are_refused() {
        assert_eq!(id("/id", "{}"), Err(IdentifyError::Missing));
        assert_eq!(id("/id", r#"{"id":null}"#), Err(IdentifyError::Missing));
        assert_eq!(id("/id", r#"{"id":""}"#), Err(IdentifyError::Missing));
        assert_eq!(id("/id", r#"{"id":" \t\n"}"#), Err(IdentifyError::Missing));
        assert_eq!(id("/id", r#"{"id":"\u00a0\u3000\u0000\u000b"}"#), Err(IdentifyError::Missing));
        assert_eq!(id("{json:/a}:{json:/id}", r#"{"a":"x","id":""}"#), Err(IdentifyError::Missing));
        assert_eq!(id("header:X-Id", ""), Err(IdentifyError::Repeated("header.X-Id".into())));
        let long = format!(r#"{{"id":"{}"}}"#, "a".repeat(EVENT_ID_BYTES_MAX + 1));
        assert_eq!(id("/id", &long), Err(IdentifyError::TooLong(EVENT_ID_BYTES_MAX + 1)));
        assert_eq!(id("/id", r#"{"id":"a\u0000\ud800"}"#), Ok(Some(b"a\0\xed\xa0\x80".to_vec())));
        assert_eq!(id("none", ""), Ok(None));
        assert_eq!(
            id("body", "").unwrap().unwrap(),
            b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn a_batch_is_named_by_all_of_its_items() {
        let of = |ids: &[&str]| {
            let ids: Vec<_> = ids.iter().map(|id| id.as_bytes().to_vec()).collect();
            String::from_utf8(batch(&ids)).unwrap()
        };
        assert_eq!(of(&["a", "b"]), "a,b");
        assert_eq!(of(&["a,b", "c"]), "a%2Cb,c");
        assert_eq!(of(&["a", "a"]), "a");
        assert!(of(&[&"a".repeat(5000), &"b".repeat(5000)]).starts_with("sha256:"));
    }

    #[test]
    fn rules_that_cannot_identify_are_refused() {
        let problem = |text: &str| text.parse::<IdentityRule>().unwrap_err().to_string();
        assert!(problem("constant").contains("no variable"));
        assert!(problem("{json:/a}{json:/b}").contains("separator"));
        assert!(problem("{json:/a}[:{json:/b}]").contains("optional"));
        assert!(problem("{jsn}").contains("unknown variable"));
    }

    #[test]
    fn id_grammars() {
        let raw = raw::IdForm { first: "A-Za-z0-9".into(), rest: "A-Za-z0-9._-".into(), bytes_max: 128 };
        let form = IdForm::compile(&raw).unwrap();
        for id in ["a", "A1", "a..b", "a.", "0-_", &"x".repeat(128)] {
            assert!(form.fits(id.as_bytes()), "{id}");
        }
        for id in ["", ".a", "-a", "_a", "a b", "a/b", "a\n", "é", "aé", "a%20", &"x".repeat(129)] {
            assert!(!form.fits(id.as_bytes()), "{id}");
        }
        assert!(set("z-a").is_err() && set("").is_err() && set("é").is_err());
    }

    #[test]
    fn fingerprints_follow_the_rule() {
        let templates = |id: &str| IdTemplates::compile(vec![id.parse().unwrap()], None).unwrap();
        let of = |rule: &IdentityRule, id: &str| fingerprint("p", rule, &templates(id));
        let provider = IdentityRule::Provider;
        assert_eq!(of(&provider, "{json:/id}"), of(&provider, "{json:/id}"));
        assert_ne!(of(&provider, "{json:/id}"), of(&provider, "{json:/uid}"));
        assert_ne!(of(&provider, "{json:/id}"), of(&IdentityRule::Body, "{json:/id}"));
        assert_eq!(of(&IdentityRule::Body, "{json:/id}"), of(&IdentityRule::Body, "{json:/uid}"));
    }
}
