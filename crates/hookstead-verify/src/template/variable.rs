//! What a template can name, and how its value is found in a request.

use std::borrow::Cow;

use super::{Context, Template, Unresolved};
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
    /// The public address without the query.
    UrlBase,
    /// The secret itself, for hashes that have it in their text.
    Secret,
    /// The JSON document: the record's payload, or the body.
    Document,
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
    /// A value of the item that is looked at, in a batch whose items carry a proof each.
    Item(Pointer),
    /// A claim of the token that proved the request.
    Claim(Pointer),
    /// A value that the source's configuration gives.
    Conf(String),
    /// A named template of the record; its text takes the name's place when the record is compiled.
    Let(String),
    /// That template.
    Named(Box<Template>),
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
            "url_base" => Some(Self::UrlBase),
            "secret" => Some(Self::Secret),
            "json" => Some(Self::Document),
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
        if let Some(pointer) = name.strip_prefix("item:") {
            return Pointer::parse(pointer).map(Self::Item);
        }
        match name.split_once('.') {
            Some(("header", name)) if is_header_name(name) => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("query", name)) if !name.is_empty() => Ok(Self::QueryPart(name.to_owned())),
            Some(("form", name)) if !name.is_empty() => Ok(Self::FormField(name.to_owned())),
            Some(("sig", name)) if !name.is_empty() => Ok(Self::Signature(name.to_owned())),
            Some(("jwt", name)) if !name.is_empty() => Ok(Self::Claim(Pointer::of_key(name))),
            Some(("conf", name)) if is_word(name) => Ok(Self::Conf(name.to_owned())),
            Some(("let", name)) if is_word(name) => Ok(Self::Let(name.to_owned())),
            _ => Err(format!(
                "unknown variable `{name}`; there are body, json, method, path, target, url, url_base, query, \
                 form, lf, secret, header.NAME, query.NAME, form.NAME, json:/POINTER, item:/POINTER, \
                 sig.FIELD, jwt.CLAIM, conf.NAME and let.NAME"
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
            Self::UrlBase => context.url_base().into(),
            Self::Secret => context.secret.map(Cow::Borrowed).into(),
            Self::Document => Lookup::One(context.document()),
            Self::LineFeed => borrowed("\n"),
            Self::Query => request.query().map(|query| Cow::Borrowed(query.as_bytes())).into(),
            Self::Form => request.form().map(Cow::Borrowed).into(),
            Self::Header(name) => context.header(name),
            Self::QueryPart(name) => request.query_part(name),
            Self::FormField(name) => context.form_field(name),
            Self::Json(pointer) => pointer.read(&context.document()).map(Cow::Owned).into(),
            Self::Item(pointer) => context.item.and_then(|item| pointer.read(item)).map(Cow::Owned).into(),
            Self::Claim(pointer) => {
                context.claims.and_then(|claims| pointer.read(claims)).map(Cow::Owned).into()
            }
            Self::Conf(name) => context.conf(name).map(|value| Cow::Borrowed(value.as_bytes())).into(),
            Self::Let(_) => Lookup::Absent,
            Self::Named(template) => named(template, context),
            Self::Signature(name) => context.field(name),
        }
    }

    /// Whether the value is part of the body.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(
            self,
            Self::Body | Self::Document | Self::Form | Self::FormField(_) | Self::Json(_) | Self::Item(_)
        )
    }
}

fn named<'r>(template: &Template, context: &Context<'r>) -> Lookup<'r> {
    match template.resolve(context).map(|pieces| pieces.concat()) {
        Ok(value) => Lookup::One(Cow::Owned(value)),
        Err(Unresolved::Absent(_)) => Lookup::Absent,
        Err(Unresolved::Repeated(_)) => Lookup::Repeated,
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
