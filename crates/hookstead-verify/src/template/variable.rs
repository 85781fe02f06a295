//! What a template can name, and how its value is found in a request.

use std::borrow::Cow;

use super::Context;
use crate::request::Lookup;
use crate::wire::json::Pointer;

/// One named thing of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    /// The raw body; an empty one is absent only for `when`.
    Body,
    /// The method as sent.
    Method,
    /// The path without the query.
    Path,
    /// Path and query as sent.
    Target,
    /// The public address with the query.
    Url,
    /// A line feed.
    LineFeed,
    /// The raw query without its `?`.
    Query,
    /// The body, if it is an URL-encoded form.
    Form,
    /// A header, by its name in lower case.
    Header(String),
    /// A decoded query part.
    QueryPart(String),
    /// A decoded form field.
    FormField(String),
    /// A value of the JSON document.
    Json(Pointer),
    /// A field that stands beside the signature in the same group.
    Signature(String),
}

impl Variable {
    /// Parses a name such as `header.X-Sig` or `json:/id`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let plain = match name {
            "body" => Some(Self::Body),
            "method" => Some(Self::Method),
            "path" => Some(Self::Path),
            "target" => Some(Self::Target),
            "url" => Some(Self::Url),
            "lf" => Some(Self::LineFeed),
            "query" => Some(Self::Query),
            "form" => Some(Self::Form),
            _ => None,
        };
        match plain {
            Some(variable) => Ok(variable),
            None => Self::parse_compound(name),
        }
    }

    fn parse_compound(name: &str) -> Result<Self, String> {
        if let Some(pointer) = name.strip_prefix("json:") {
            return Pointer::parse(pointer).map(Self::Json);
        }
        match name.split_once('.') {
            Some(("header", name)) if is_header_name(name) => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("query", name)) if !name.is_empty() => Ok(Self::QueryPart(name.to_owned())),
            Some(("form", name)) if !name.is_empty() => Ok(Self::FormField(name.to_owned())),
            Some(("sig", name)) if !name.is_empty() => Ok(Self::Signature(name.to_owned())),
            _ => Err(format!(
                "unknown variable `{name}`; there are body, method, path, target, url, query, form, lf, \
                 header.NAME, query.NAME, form.NAME, json:/POINTER and sig.FIELD"
            )),
        }
    }

    /// The value in this request.
    pub(crate) fn resolve<'r>(&self, context: &Context<'r>) -> Lookup<'r> {
        let request = &context.request;
        let borrowed = |text: &'r str| Lookup::One(Cow::Borrowed(text.as_bytes()));
        match self {
            Self::Body => Lookup::One(Cow::Borrowed(request.body)),
            Self::Method => borrowed(request.method),
            Self::Path => borrowed(request.path()),
            Self::Target => borrowed(request.target),
            Self::Url => context.url().into(),
            Self::LineFeed => borrowed("\n"),
            Self::Query => request.query().map(|query| Cow::Borrowed(query.as_bytes())).into(),
            Self::Form => request.form().map(Cow::Borrowed).into(),
            Self::Header(name) => request.header(name),
            Self::QueryPart(name) => request.query_part(name),
            Self::FormField(name) => request.form_field(name),
            Self::Json(pointer) => pointer.read(&context.document()).map(Cow::Owned).into(),
            Self::Signature(name) => context.field(name),
        }
    }

    /// Whether the value is part of the body.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self, Self::Body | Self::Form | Self::FormField(_) | Self::Json(_))
    }
}

/// A token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
