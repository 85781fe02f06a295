//! Where the signature is and how it is written: one construct for `sha256=<hex>`, `t=1,v1=<hex>`,
//! `v1,<base64> v1,<base64>`, positional lists and repeated headers; and the way back, for signing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::record::raw;
use crate::request::Lookup;
use crate::template::{Context, Variable};
use crate::verdict::{Fault, Reason};

/// Most candidate signatures that one request may carry. A rotation needs two or three; more is an attempt to
/// make the receiver work.
pub const CANDIDATES_MAX: usize = 32;

/// Most groups of signatures: each may have a content of its own, so each costs one hash over the body.
const GROUPS_MAX: usize = 4;

/// Longest text in which signatures are looked for, in bytes.
const SIGNATURE_BYTES_MAX: usize = 8 * 1024;

/// Between the pairs of an unwrapped list, and between name and value. No member may have control characters.
const UNWRAPPED_ITEMS: &str = "\u{1e}";
const UNWRAPPED_PAIRS: &str = "\u{1f}";

/// For base64url, senders disagree on padding; the alphabet and the last bits are still checked.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// As [`URL_SAFE`], in the standard alphabet.
const STANDARD_LOOSE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How the bytes of a signature are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    Hex,
    Base64,
    Base64Url,
    #[default]
    Text,
}

impl Encoding {
    fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64Url => URL_SAFE.decode(text).ok(),
            Self::Text => Some(text.to_vec()),
        }
    }

    /// As [`decode`](Self::decode), from any spelling of the same bytes.
    fn decode_any(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Base64 | Self::Base64Url => {
                STANDARD_LOOSE.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
            }
            Self::Hex | Self::Text => self.decode(text),
        }
    }

    /// The text of these bytes behind a prefix.
    fn encode(self, prefix: &[u8], bytes: &[u8]) -> Vec<u8> {
        // No coding takes more than two characters for a byte.
        let mut text = Vec::with_capacity(prefix.len() + 2 * bytes.len());
        text.extend_from_slice(prefix);
        match self {
            Self::Hex => {
                text.resize(prefix.len() + 2 * bytes.len(), 0);
                // Cannot fail with two digits for each byte. Where it did, nothing would match.
                if hex::encode_to_slice(bytes, &mut text[prefix.len()..]).is_err() {
                    text.clear();
                }
            }
            Self::Base64 => text.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
            Self::Base64Url => text.extend_from_slice(URL_SAFE_NO_PAD.encode(bytes).as_bytes()),
            Self::Text => text.extend_from_slice(bytes),
        }
        text
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compare {
    /// The decoded bytes: upper-case hex digits are as good.
    #[default]
    Bytes,
    /// The whole text: one spelling and no other.
    Text,
}

/// A record's way to its signatures.
#[derive(Debug, Clone)]
pub(crate) struct Locator {
    /// Never empty.
    places: Vec<Place>,
    pub(crate) encoding: Encoding,
    pub(crate) compare: Compare,
    prefix: String,
    prefix_any_case: bool,
    groups: Option<String>,
    items: Option<String>,
    separator: Option<String>,
    names: Vec<Name>,
    positional: Vec<(String, usize)>,
    first: usize,
    multi: bool,
    any_spelling: bool,
    wrapped: bool,
    beside: Vec<(String, String)>,
}

/// The name of the fields that hold signatures.
#[derive(Debug, Clone)]
enum Name {
    Fixed(String),
    /// What the source's configuration gives under this key.
    Conf(String),
}

/// A place in the request, by its name and compiled.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) variable: Variable,
    /// Whether `variable` is a header's name that any suffix may follow.
    any_suffix: bool,
}

/// Signatures that stand together, and the named fields beside them.
#[derive(Debug, Default)]
pub(crate) struct Group<'r> {
    pub(crate) fields: Vec<(&'r str, &'r [u8])>,
    pub(crate) candidates: Vec<Cow<'r, [u8]>>,
}

impl Locator {
    /// Compiles the record's `sig` table.
    pub(crate) fn compile(raw: &raw::Signature) -> Result<Self, String> {
        let places = raw.at.0.iter().map(|name| place(name)).collect::<Result<Vec<_>, _>>()?;
        if places.is_empty() {
            return Err("`sig` needs `at`, the place of the signature".to_owned());
        }
        if (raw.kv.is_some() || raw.wrap.is_some()) == raw.field.0.is_empty() {
            return Err(
                "`kv` and `field` belong together: the separator, and the name to look for".to_owned()
            );
        }
        if [&raw.groups, &raw.items, &raw.kv].into_iter().flatten().any(String::is_empty) {
            return Err("a separator cannot be empty".to_owned());
        }
        if raw.wrap.is_some() && (raw.kv.is_some() || raw.items.is_some() || raw.groups.is_some()) {
            return Err("a wrapped signature has no separators of its own".to_owned());
        }
        let wrapped = |separator: &str| raw.wrap.map(|_| separator.to_owned());
        Ok(Self {
            places,
            encoding: raw.encoding,
            compare: raw.compare,
            prefix: raw.prefix.clone(),
            prefix_any_case: raw.prefix_ci,
            groups: raw.groups.clone(),
            items: raw.items.clone().or_else(|| wrapped(UNWRAPPED_ITEMS)),
            separator: raw.kv.clone().or_else(|| wrapped(UNWRAPPED_PAIRS)),
            names: raw.field.0.iter().map(|text| name(text)).collect(),
            positional: raw.positional.iter().map(|(name, index)| (name.clone(), *index)).collect(),
            first: raw.from,
            multi: raw.multi,
            any_spelling: raw.any_spelling,
            wrapped: raw.wrap.is_some(),
            beside: raw.beside.clone().into_iter().collect(),
        })
    }

    /// The raw texts that may hold signatures.
    pub(crate) fn texts<'r>(&self, context: &Context<'r>) -> Result<Vec<Cow<'r, [u8]>>, Fault> {
        let mut texts = Vec::new();
        for place in &self.places {
            let before = texts.len();
            match &place.variable {
                Variable::Header(start) if place.any_suffix => {
                    texts.extend(context.request.header_values_from(start).map(Cow::Borrowed));
                }
                Variable::Header(name) => {
                    texts.extend(context.request.header_values(name).map(Cow::Borrowed));
                }
                other => match other.resolve(context) {
                    Lookup::Absent => {}
                    Lookup::One(text) => texts.push(text),
                    Lookup::Repeated => return Err(Fault::new(Reason::PartRepeated, &place.name)),
                },
            }
            if texts.len() - before > 1 && !self.multi && !place.any_suffix {
                return Err(Fault::new(Reason::PartRepeated, &place.name));
            }
        }
        if texts.is_empty() {
            return Err(self.fault(Reason::SignatureMissing));
        }
        // A body that is a token as a whole was bounded when it was received.
        let in_body = matches!(self.place().variable, Variable::Body);
        if !in_body && texts.iter().map(|text| text.len()).sum::<usize>() > SIGNATURE_BYTES_MAX {
            return Err(self.fault(Reason::SignatureMalformed));
        }
        if self.wrapped {
            let unwrapped = texts.iter().map(|text| unwrap(text).map(Cow::Owned)).collect::<Option<_>>();
            return unwrapped.ok_or_else(|| self.fault(Reason::SignatureMalformed));
        }
        Ok(texts)
    }

    /// The candidates in these texts, at least one and at most [`CANDIDATES_MAX`].
    pub(crate) fn groups<'t>(
        &'t self,
        texts: &'t [Cow<'_, [u8]>],
        context: &Context<'_>,
    ) -> Result<Vec<Group<'t>>, Fault> {
        let mut groups = Vec::new();
        let mut seen = 0;
        for text in texts.iter().flat_map(|text| split(text, self.groups.as_deref())) {
            let group = self.group(text, &mut seen, context);
            if !group.candidates.is_empty() {
                groups.push(group);
            }
            if seen > CANDIDATES_MAX || groups.len() > GROUPS_MAX {
                return Err(self.fault(Reason::TooManySignatures));
            }
        }
        if groups.is_empty() { Err(self.fault(Reason::SignatureMalformed)) } else { Ok(groups) }
    }

    /// Reads one group; `seen` counts candidates whether they can be decoded or not.
    fn group<'t>(&'t self, text: &'t [u8], seen: &mut usize, context: &Context<'_>) -> Group<'t> {
        let mut group = Group::default();
        // A blank after a comma belongs to neither item.
        let trims = self.items.as_deref().is_some_and(|items| !items.contains(char::is_whitespace));
        for (index, item) in split(text, self.items.as_deref()).enumerate() {
            let item = if trims { item.trim_ascii() } else { item };
            match self.read(index, item, context) {
                Item::Ignored => {}
                Item::Field(name, value) => group.fields.push((name, value)),
                Item::Signature(signature) => {
                    *seen += 1;
                    if *seen > CANDIDATES_MAX {
                        break;
                    }
                    group.candidates.extend(self.decode(signature));
                }
            }
        }
        group
    }

    fn read<'t>(&'t self, index: usize, item: &'t [u8], context: &Context<'_>) -> Item<'t> {
        if let Some((name, _)) = self.positional.iter().find(|(_, position)| *position == index) {
            return Item::Field(name, item);
        }
        let Some(separator) = &self.separator else {
            return if index < self.first { Item::Ignored } else { Item::Signature(item) };
        };
        let Some((name, value)) = split_once(item, separator.as_bytes()) else { return Item::Ignored };
        match std::str::from_utf8(name) {
            Ok(name) if self.names.iter().any(|wanted| wanted.is(name, context)) => Item::Signature(value),
            Ok(name) => Item::Field(name, value),
            Err(_) => Item::Ignored,
        }
    }

    fn decode<'t>(&self, text: &'t [u8]) -> Option<Cow<'t, [u8]>> {
        if self.compare == Compare::Text {
            return Some(Cow::Borrowed(text));
        }
        let (start, rest) = text.split_at_checked(self.prefix.len())?;
        let prefix = self.prefix.as_bytes();
        let fits = if self.prefix_any_case { start.eq_ignore_ascii_case(prefix) } else { start == prefix };
        if !fits || rest.is_empty() {
            return None;
        }
        let decoded = if self.any_spelling {
            self.encoding.decode_any(if prefix.is_empty() { rest } else { rest.trim_ascii_start() })
        } else {
            self.encoding.decode(rest)
        };
        decoded.map(Cow::Owned)
    }

    /// The bytes with which a candidate is compared: the signature, or its whole text.
    pub(crate) fn expected<'s>(&self, signature: &'s [u8]) -> Cow<'s, [u8]> {
        match self.compare {
            Compare::Bytes => Cow::Borrowed(signature),
            Compare::Text => Cow::Owned(self.write_one(signature)),
        }
    }

    /// The first place, where a signature is put when we sign.
    pub(crate) fn place(&self) -> &Place {
        &self.places[0]
    }

    /// All places.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Fields that we write beside a signature, apart from the time.
    pub(crate) fn beside(&self) -> impl Iterator<Item = (&str, &str)> {
        self.beside.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Keys of the configuration that names of fields are taken from.
    pub(crate) fn conf_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| match name {
            Name::Conf(key) => Some(key.as_str()),
            Name::Fixed(_) => None,
        })
    }

    /// Whether this field can stand beside the signature.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.separator.is_some() || self.positional.iter().any(|(found, _)| found == name)
    }

    /// The text of a header with these fields and this signature: the inverse of [`groups`](Self::groups).
    pub(crate) fn write(&self, fields: &[(&str, &[u8])], signature: &[u8], context: &Context<'_>) -> Vec<u8> {
        let signature = self.write_one(signature);
        let items: Vec<Vec<u8>> = match &self.separator {
            Some(separator) => {
                let pair = |name: &str, value: &[u8]| [name.as_bytes(), separator.as_bytes(), value].concat();
                let name = self.names.first().map_or("", |name| name.text(context));
                let fields = fields.iter().map(|(name, value)| pair(name, value));
                fields.chain([pair(name, &signature)]).collect()
            }
            None => fields.iter().map(|(_, value)| value.to_vec()).chain([signature]).collect(),
        };
        items.join(self.items.as_deref().unwrap_or_default().as_bytes())
    }

    fn write_one(&self, signature: &[u8]) -> Vec<u8> {
        self.encoding.encode(self.prefix.as_bytes(), signature)
    }

    pub(crate) fn fault(&self, reason: Reason) -> Fault {
        Fault::new(reason, &self.place().name)
    }
}

impl Name {
    fn text<'n>(&'n self, context: &Context<'n>) -> &'n str {
        match self {
            Self::Fixed(text) => text,
            Self::Conf(key) => context.conf(key).unwrap_or_default(),
        }
    }

    fn is(&self, found: &str, context: &Context<'_>) -> bool {
        match self {
            Self::Fixed(text) => text == found,
            Self::Conf(key) => context.conf(key) == Some(found),
        }
    }
}

fn name(text: &str) -> Name {
    match text.strip_prefix("conf.") {
        Some(key) => Name::Conf(key.to_owned()),
        None => Name::Fixed(text.to_owned()),
    }
}

/// The members of a wrapped JSON object as a list of pairs.
fn unwrap(text: &[u8]) -> Option<Vec<u8>> {
    let json = STANDARD_LOOSE.decode(text).ok()?;
    let members: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&json).ok()?;
    let pair = |(name, value): (&String, &serde_json::Value)| {
        let pair = format!("{name}{UNWRAPPED_PAIRS}{}", value.as_str()?);
        Some(pair).filter(|_| !format!("{name}{value}").contains(char::is_control))
    };
    let pairs: Vec<String> = members.iter().filter_map(pair).collect();
    Some(pairs.join(UNWRAPPED_ITEMS).into_bytes())
}

/// What an item of a signature header is.
enum Item<'t> {
    Ignored,
    Field(&'t str, &'t [u8]),
    Signature(&'t [u8]),
}

fn place(name: &str) -> Result<Place, String> {
    let (start, any_suffix) = match name.strip_suffix('*') {
        Some(start) if start.starts_with("header.") => (start, true),
        _ => (name, false),
    };
    match Variable::parse(start)? {
        Variable::Signature(_) => Err("a signature cannot stand beside itself".to_owned()),
        variable => Ok(Place { name: name.to_owned(), variable, any_suffix }),
    }
}

/// The parts between separators; the whole text without one. Empty parts are skipped.
fn split<'t>(text: &'t [u8], separator: Option<&'t str>) -> impl Iterator<Item = &'t [u8]> + use<'t> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        match separator.and_then(|separator| split_once(text, separator.as_bytes())) {
            None => Some(text),
            Some((part, tail)) => {
                rest = Some(tail);
                Some(part)
            }
        }
    })
    .filter(|part| !part.is_empty())
}

/// Cuts at the first occurrence; the separator is not empty.
fn split_once<'t>(text: &'t [u8], separator: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = match separator {
        [byte] => text.iter().position(|found| found == byte)?,
        _ => text.windows(separator.len()).position(|window| window == separator)?,
    };
    Some((&text[..at], &text[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context<'static> {
        const NONE: &[(&str, &str)] = &[];
        let request =
            crate::request::Request { method: "POST", target: "/", url: None, headers: &NONE, body: b"" };
        Context::of(request)
    }

    /// Groups are shown as `field=value field=value: candidate candidate`, joined by ` / `.
    fn check(table: &str, text: &str, expected: Result<&str, Reason>) {
        let locator = Locator::compile(&toml::from_str(table).unwrap()).unwrap();
        let texts = [Cow::Borrowed(text.as_bytes())];
        let shown = |group: Group<'_>| {
            let value = String::from_utf8_lossy;
            let fields: Vec<_> =
                group.fields.iter().map(|(name, text)| format!("{name}={}", value(text))).collect();
            let candidates: Vec<_> = group.candidates.iter().map(|text| value(text)).collect();
            format!("{}: {}", fields.join(" "), candidates.join(" "))
        };
        let found = locator.groups(&texts, &context()).map_err(|fault| fault.reason);
        let found = found.map(|groups| groups.into_iter().map(shown).collect::<Vec<_>>().join(" / "));
        assert_eq!(found, expected.map(str::to_owned), "{text} by {table}");
    }

    const STRIPE: &str =
        "at = 'header.s'\nencoding = 'hex'\nitems = ','\nkv = '='\nfield = 'v1'\nmulti = true";
    const STANDARD_WEBHOOKS: &str =
        "at = 'header.s'\nencoding = 'base64'\nitems = ' '\nkv = ','\nfield = 'v1'\nmulti = true";

    #[test]
    fn lists_of_pairs() {
        check(STRIPE, "t=5,v1=6161,v0=62", Ok("t=5 v0=62: aa"));
        check(STRIPE, "v1=6161,v1=6A6a,t=5=6", Ok("t=5=6: aa jj"));
        check(STRIPE, "t=5,v1=,v1=+1,v1=6", Err(Reason::SignatureMalformed));
        check(STRIPE, "t=5,v0=6161", Err(Reason::SignatureMalformed));
        check(STANDARD_WEBHOOKS, "v1a,eA== v1,YWE=  v1,YmI=", Ok("v1a=eA==: aa bb"));
        check(STANDARD_WEBHOOKS, "v1,YWE=,v1,YmI=", Err(Reason::SignatureMalformed));
        check(STANDARD_WEBHOOKS, "v1,YWE", Err(Reason::SignatureMalformed));
        check(STANDARD_WEBHOOKS, "v1,YWF=", Err(Reason::SignatureMalformed));
    }

    #[test]
    fn prefixes_groups_and_positions() {
        let prefixed = "at = 'header.s'\nencoding = 'hex'\nprefix = 'sha256='";
        check(prefixed, "sha256=6161", Ok(": aa"));
        check(prefixed, "SHA256=6161", Err(Reason::SignatureMalformed));
        check(prefixed, "é", Err(Reason::SignatureMalformed));
        let bearer = "at = 'header.s'\nprefix = 'Bearer '\nprefix_ci = true";
        check(bearer, "bearer xyz", Ok(": xyz"));
        let grouped = "at = 'header.s'\nencoding = 'hex'\ngroups = ' '\nitems = ','\nkv = '='\nfield = 'v1'";
        check(grouped, "t=1,v1=6161 t=2,v1=6262", Ok("t=1: aa / t=2: bb"));
        let positional = "at = 'header.s'\nencoding = 'hex'\nitems = ','\npositional = { ts = 0 }\nfrom = 1";
        check(positional, "7,6161,6262", Ok("ts=7: aa bb"));
    }

    #[test]
    fn too_many_candidates_are_refused_before_they_are_all_read() {
        let list = |count| vec!["v1=61"; count].join(",");
        check(STRIPE, &list(CANDIDATES_MAX + 1), Err(Reason::TooManySignatures));
        check(STRIPE, &vec!["v1=zz"; 1_000].join(","), Err(Reason::TooManySignatures));
        check(STRIPE, &list(CANDIDATES_MAX), Ok(&format!(": {}", ["a"; CANDIDATES_MAX].join(" "))));
        let grouped = "at = 'header.s'\nencoding = 'hex'\ngroups = ' '";
        let groups = |count| vec!["61"; count].join(" ");
        check(grouped, &groups(GROUPS_MAX), Ok(&[": a"; GROUPS_MAX].join(" / ")));
        check(grouped, &groups(GROUPS_MAX + 1), Err(Reason::TooManySignatures));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = |table: &str, fields: &[(&str, &[u8])]| {
            let locator = Locator::compile(&toml::from_str(table).unwrap()).unwrap();
            String::from_utf8(locator.write(fields, b"aa", &context())).unwrap()
        };
        assert_eq!(written(STRIPE, &[("t", b"5")]), "t=5,v1=6161");
        assert_eq!(written(STANDARD_WEBHOOKS, &[]), "v1,YWE=");
    }
}
