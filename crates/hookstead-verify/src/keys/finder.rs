//! From a request to the key that it asks for, within what the record allows.

use std::sync::Arc;

use super::pin::{Pin, Query};
use super::published::{KeyDocumentError, PublishedKeys};
use super::source::{KeyAnswer, KeyFormat, KeyPlace, KeyWanted};
use crate::record::raw;
use crate::scheme::unresolved_fault;
use crate::template::{Context, Template};
use crate::verdict::{Fault, Reason};
use crate::wire::json::Pointer;

/// Longest id of a key, in bytes.
const KEY_ID_BYTES_MAX: usize = 256;

/// A record's `keysource`.
#[derive(Debug, Clone)]
pub(crate) struct KeyFinder {
    provider: String,
    format: KeyFormat,
    key_id: Option<Template>,
    url: Option<Template>,
    pin: Pin,
    pointer: Option<Pointer>,
}

/// The keys of a document, and which of them is meant.
pub(crate) struct Found {
    pub(crate) keys: Arc<PublishedKeys>,
    pub(crate) key_id: Option<String>,
}

impl KeyFinder {
    pub(crate) fn compile(provider: &str, raw: &raw::KeySource) -> Result<Self, String> {
        let template = |text: &String| text.parse::<Template>().map_err(|error| error.to_string());
        let format = match raw.from {
            raw::KeyForm::Jwks => KeyFormat::Jwks,
            raw::KeyForm::KeyId => KeyFormat::Key,
            raw::KeyForm::CertUrl => KeyFormat::Certificate,
        };
        if raw.url.is_some() == raw.hosts.is_empty() {
            return Err("`url` and `hosts` of a key source belong together".to_owned());
        }
        if format == KeyFormat::Certificate && raw.url.is_none() {
            return Err("a certificate needs its `url`".to_owned());
        }
        if format == KeyFormat::Key && raw.kid.is_none() {
            return Err("keys that are fetched one by one need `kid`".to_owned());
        }
        Ok(Self {
            provider: provider.to_owned(),
            format,
            key_id: raw.kid.as_ref().map(template).transpose()?,
            url: raw.url.as_ref().map(template).transpose()?,
            pin: Pin::compile(&raw.hosts, &raw.suffix)?,
            pointer: raw.pointer.as_deref().map(Pointer::parse).transpose()?,
        })
    }

    /// The templates that name parts of a request.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        self.key_id.iter().chain(&self.url)
    }

    /// Whether a key that was got elsewhere can be used in the place of what is published.
    pub(crate) fn check_given(&self, text: &[u8]) -> Result<(), KeyDocumentError> {
        let read = match self.format {
            KeyFormat::Jwks => PublishedKeys::parse(KeyFormat::Jwks, self.pointer.as_ref(), None, text),
            KeyFormat::Key | KeyFormat::Certificate => PublishedKeys::parse(KeyFormat::Key, None, None, text),
        };
        read.map(drop)
    }

    /// The keys for a request, from what the source of keys has at hand.
    pub(crate) fn find(&self, context: &Context<'_>) -> Result<Found, Fault> {
        let wanted = self.wanted(context)?;
        let part = || wanted.place.url.clone().or_else(|| wanted.key_id.clone()).unwrap_or_default();
        let source = context.keys.ok_or_else(|| Fault::new(Reason::KeyNotAtHand, part()))?;
        match source.keys(&wanted) {
            KeyAnswer::Keys(keys) => Ok(Found { keys, key_id: wanted.key_id }),
            KeyAnswer::NotAtHand => Err(Fault::new(Reason::KeyNotAtHand, part())),
            KeyAnswer::Unknown => Err(Fault::new(Reason::KeyUnknown, part())),
        }
    }

    fn wanted(&self, context: &Context<'_>) -> Result<KeyWanted, Fault> {
        let key_id = self.key_id.as_ref().map(|template| text(template, context)).transpose()?;
        if let Some(template) = self.key_id.as_ref().filter(|_| !key_id.as_deref().is_none_or(is_key_id)) {
            return Err(Fault::new(Reason::KeyUnknown, template.to_string()));
        }
        let url = self.url.as_ref().map(|template| text(template, context)).transpose()?;
        if let Some(url) = url.as_ref().filter(|url| !self.pin.holds(url, Query::Refused)) {
            return Err(Fault::new(Reason::KeyAddress, url.chars().take(200).collect::<String>()));
        }
        // A set of keys is one document whichever key is meant; otherwise each key is its own.
        let filed_under = key_id.clone().filter(|_| self.format != KeyFormat::Jwks);
        let place = KeyPlace {
            provider: self.provider.clone(),
            url,
            format: self.format,
            pointer: self.pointer.clone(),
            key_id: filed_under,
        };
        Ok(KeyWanted { place, key_id })
    }
}

fn text(template: &Template, context: &Context<'_>) -> Result<String, Fault> {
    let bytes = template.resolve(context).map_err(unresolved_fault)?.concat();
    String::from_utf8(bytes).map_err(|_| Fault::new(Reason::KeyUnknown, template.to_string()))
}

fn is_key_id(text: &str) -> bool {
    (1..=KEY_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
