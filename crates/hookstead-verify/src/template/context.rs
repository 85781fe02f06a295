//! What a template is resolved against: a request, and what the record and the source add to it.

use std::borrow::Cow;

use super::Variable;
use crate::request::{Lookup, Request};

/// A request together with the fields beside its signature, the public address and the place of its JSON.
#[derive(Clone, Copy)]
pub(crate) struct Context<'r> {
    /// What arrived.
    pub(crate) request: Request<'r>,
    /// The public address of the source as registered with the provider.
    pub(crate) registered_url: Option<&'r str>,
    /// Where the JSON document is if it is not the body.
    pub(crate) payload: Option<&'r Variable>,
    /// Fields of the signature's group.
    pub(crate) fields: &'r [(&'r str, &'r [u8])],
}

impl<'r> Context<'r> {
    /// The same request, seen from one group of a signature header.
    pub(crate) fn with_fields<'f>(&self, fields: &'f [(&'f str, &'f [u8])]) -> Context<'f>
    where
        'r: 'f,
    {
        Context { request: self.request, registered_url: self.registered_url, payload: self.payload, fields }
    }

    /// The one field of that name beside the signature.
    pub(crate) fn field(&self, name: &str) -> Lookup<'r> {
        let fields = self.fields;
        Lookup::only(
            fields.iter().filter(|(found, _)| *found == name).map(|(_, value)| Cow::Borrowed(*value)),
        )
    }

    /// The address that the provider called: as the caller gave it for this request, else the registered one
    /// with the raw query of the request. A fragment is never sent and never signed.
    pub(crate) fn url(&self) -> Option<Cow<'r, [u8]>> {
        if let Some(url) = self.request.url {
            return Some(Cow::Borrowed(url.as_bytes()));
        }
        let base = self.registered_url?;
        let base = base.split(['?', '#']).next().unwrap_or(base);
        Some(match self.request.query() {
            None => Cow::Borrowed(base.as_bytes()),
            Some(query) => Cow::Owned(format!("{base}?{query}").into_bytes()),
        })
    }

    /// The JSON document: the record's `payload` where it is there, else the body.
    pub(crate) fn document(&self) -> Cow<'r, [u8]> {
        match self.payload.map(|payload| payload.resolve(&Context { payload: None, ..*self })) {
            Some(Lookup::One(document)) => document,
            _ => Cow::Borrowed(self.request.body),
        }
    }
}
