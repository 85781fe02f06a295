//! What a template is resolved against: a request, and what the record, the source and the proof add to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aws_lc_rs::hmac;

use super::Variable;
use crate::keys::KeySource;
use crate::request::{Lookup, Request};
use crate::wire::multipart;

/// A request together with everything else that has a name in templates.
#[derive(Clone, Copy)]
pub(crate) struct Context<'r> {
    /// What arrived.
    pub(crate) request: Request<'r>,
    /// The public address of the source as registered with the provider.
    pub(crate) registered_url: Option<&'r str>,
    /// Where the JSON document is if it is not the body.
    pub(crate) payload: Option<&'r Variable>,
    /// Whether the fields of a multipart form count as those of a form.
    pub(crate) multipart: bool,
    /// What the source's configuration gives.
    pub(crate) conf: Option<&'r BTreeMap<String, String>>,
    /// Fields of the signature's group.
    pub(crate) fields: &'r [(&'r str, &'r [u8])],
    /// The item of a batch that is looked at, as it is written.
    pub(crate) item: Option<&'r [u8]>,
    /// The claims of the token that proved the request, as JSON.
    pub(crate) claims: Option<&'r [u8]>,
    /// The secret that is tried.
    pub(crate) secret: Option<&'r [u8]>,
    /// The key that answers to handshakes are made with.
    pub(crate) hmac: Option<&'r hmac::Key>,
    /// Whether a header that is there several times counts if all its values are equal.
    pub(crate) equal_repeats: bool,
    /// Who has the provider's published keys.
    pub(crate) keys: Option<&'r dyn KeySource>,
}

impl<'r> Context<'r> {
    /// A request and nothing else.
    pub(crate) fn of(request: Request<'r>) -> Self {
        Self {
            request,
            registered_url: None,
            payload: None,
            multipart: false,
            conf: None,
            fields: &[],
            item: None,
            claims: None,
            secret: None,
            hmac: None,
            equal_repeats: false,
            keys: None,
        }
    }

    /// The same request, seen from one group of a signature header.
    pub(crate) fn with_fields<'f>(&self, fields: &'f [(&'f str, &'f [u8])]) -> Context<'f>
    where
        'r: 'f,
    {
        let this: Context<'f> = *self;
        Context { fields, ..this }
    }

    /// The one field of that name beside the signature.
    pub(crate) fn field(&self, name: &str) -> Lookup<'r> {
        let fields = self.fields;
        Lookup::only(
            fields.iter().filter(|(found, _)| *found == name).map(|(_, value)| Cow::Borrowed(*value)),
        )
    }

    /// The one value of a header.
    pub(crate) fn header(&self, name: &str) -> Lookup<'r> {
        match self.request.header(name) {
            Lookup::Repeated if self.equal_repeats => {
                let mut values = self.request.header_values(name);
                let first = values.next().unwrap_or_default();
                let same = values.all(|value| value == first);
                if same { Lookup::One(Cow::Borrowed(first)) } else { Lookup::Repeated }
            }
            found => found,
        }
    }

    /// The one value of a form field.
    pub(crate) fn form_field(&self, name: &str) -> Lookup<'r> {
        let mut content_types = self.request.header_values("content-type");
        let boundary = content_types.next().filter(|_| self.multipart).and_then(multipart::boundary);
        match boundary {
            Some(boundary) => {
                Lookup::only(multipart::values(self.request.body, boundary, name).map(Cow::Borrowed))
            }
            None => self.request.form_field(name),
        }
    }

    /// A value of the source's configuration.
    pub(crate) fn conf(&self, name: &str) -> Option<&'r str> {
        self.conf?.get(name).map(String::as_str)
    }

    /// The address that the provider called: as the caller gave it for this request, else the registered one
    /// with the raw query of the request. A fragment is never sent and never signed.
    pub(crate) fn url(&self) -> Option<Cow<'r, [u8]>> {
        if let Some(url) = self.request.url {
            return Some(Cow::Borrowed(url.as_bytes()));
        }
        let base = without_query(self.registered_url?);
        Some(match self.request.query() {
            None => Cow::Borrowed(base.as_bytes()),
            Some(query) => Cow::Owned(format!("{base}?{query}").into_bytes()),
        })
    }

    /// That address without its query.
    pub(crate) fn url_base(&self) -> Option<Cow<'r, [u8]>> {
        let url = self.request.url.or(self.registered_url)?;
        Some(Cow::Borrowed(without_query(url).as_bytes()))
    }

    /// The JSON document: the record's `payload` where it is there, else the body.
    pub(crate) fn document(&self) -> Cow<'r, [u8]> {
        match self.payload.map(|payload| payload.resolve(&Context { payload: None, ..*self })) {
            Some(Lookup::One(document)) => document,
            _ => Cow::Borrowed(self.request.body),
        }
    }
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}
