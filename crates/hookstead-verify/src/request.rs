//! What arrived, as the checks see it: borrowed bytes and nothing parsed.
//!
//! Knows how to find a header, a query part or a form field. Knows nothing of providers, and copies nothing
//! that it does not have to decode.

use std::borrow::Cow;
use std::fmt;

use crate::wire::form;

/// A list of header fields in the order of arrival.
///
/// Implemented for slices, arrays and vectors of `(name, value)`; implement it for another list type by
/// giving its length and its fields. Names may be in any case.
///
/// ```
/// use hookstead_verify::{Headers, Request};
///
/// let list: &[(&str, &[u8])] = &[("X-Sig", b"abc")];
/// let request = Request { method: "POST", target: "/in/x", url: None, headers: &list, body: b"" };
/// assert_eq!(request.headers.count(), 1);
/// ```
pub trait Headers: Sync {
    /// How many fields there are; a repeated name counts each time.
    fn count(&self) -> usize;

    /// Name and value of the field at `index`, which is below [`count`](Headers::count).
    fn at(&self, index: usize) -> (&[u8], &[u8]);

    /// Where the first field of this name is, in any case, from the index `from` on.
    ///
    /// Every list looks in the same way; it is a method of the list so that one call looks through all of it.
    fn find(&self, name: &[u8], from: usize) -> Option<usize> {
        // Nearly every list has lower-case names, as the checks do: whole words are compared first.
        let is_it = |field: &[u8]| field == name || field.eq_ignore_ascii_case(name);
        (from..self.count()).find(|index| is_it(self.at(*index).0))
    }
}

impl<N: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync> Headers for &[(N, V)] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> (&[u8], &[u8]) {
        (self[index].0.as_ref(), self[index].1.as_ref())
    }
}

impl<N: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync> Headers for Vec<(N, V)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> (&[u8], &[u8]) {
        (self[index].0.as_ref(), self[index].1.as_ref())
    }
}

impl<N: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync, const LENGTH: usize> Headers for [(N, V); LENGTH] {
    fn count(&self) -> usize {
        LENGTH
    }

    fn at(&self, index: usize) -> (&[u8], &[u8]) {
        (self[index].0.as_ref(), self[index].1.as_ref())
    }
}

/// One HTTP request as it came off the wire: the bytes that a provider signed, unchanged.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, in the case in which it was sent.
    pub method: &'a str,
    /// Path and query exactly as sent: no decoding, no normalising.
    pub target: &'a str,
    /// The full public address that the provider called, with its query, for schemes that sign it.
    /// Wins over [`VerifyOptions::url`](crate::VerifyOptions::url). Never build it from `Host` or
    /// `X-Forwarded-*`: those are the sender's words.
    pub url: Option<&'a str>,
    /// The header fields.
    pub headers: &'a dyn Headers,
    /// The raw body, with no content coding undone.
    pub body: &'a [u8],
}

impl fmt::Debug for Request<'_> {
    /// Headers, query and body are left out: they may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path())
            .field("headers", &self.headers.count())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl<'a> Request<'a> {
    /// Everything of the target before the first `?`.
    pub(crate) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The raw query after the first `?`, if there is a `?`.
    pub(crate) fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// All values of a header that are not empty, blanks around them removed.
    pub(crate) fn header_values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let headers = self.headers;
        let mut from = 0;
        let fields = std::iter::from_fn(move || {
            let index = headers.find(name.as_bytes(), from)?;
            from = index + 1;
            Some(headers.at(index).1)
        });
        fields.map(trim_blanks).filter(|value| !value.is_empty())
    }

    /// All values of the headers whose name starts like this.
    pub(crate) fn header_values_from<'n>(
        &self,
        start: &'n str,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let headers = self.headers;
        (0..headers.count())
            .map(move |index| headers.at(index))
            .filter(move |(field, _)| {
                field.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
            })
            .map(|(_, value)| trim_blanks(value))
            .filter(|value| !value.is_empty())
    }

    /// The one value of a header; an empty value is no value.
    pub(crate) fn header(&self, name: &str) -> Lookup<'a> {
        Lookup::only(self.header_values(name).map(Cow::Borrowed))
    }

    /// The one decoded value of a query part.
    pub(crate) fn query_part(&self, name: &str) -> Lookup<'a> {
        Lookup::only(form::values(self.query().unwrap_or_default().as_bytes(), name))
    }

    /// The body if its `Content-Type` says that it is an URL-encoded form.
    pub(crate) fn form(&self) -> Option<&'a [u8]> {
        const FORM: &[u8] = b"application/x-www-form-urlencoded";
        let content_type = self.header_values("content-type").next()?;
        let essence = content_type.split(|byte| *byte == b';').next().map(trim_blanks)?;
        essence.eq_ignore_ascii_case(FORM).then_some(self.body)
    }

    /// The one decoded value of a form field.
    pub(crate) fn form_field(&self, name: &str) -> Lookup<'a> {
        Lookup::only(form::values(self.form().unwrap_or_default(), name))
    }
}

/// The answer to "what is the value of this name?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    /// Nothing of that name.
    Absent,
    /// Exactly one value.
    One(Cow<'a, [u8]>),
    /// Several values: which of them counts would be a guess, so none does.
    Repeated,
}

impl<'a> Lookup<'a> {
    /// The value if there is exactly one.
    pub(crate) fn only(mut values: impl Iterator<Item = Cow<'a, [u8]>>) -> Self {
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }
}

impl<'a> From<Option<Cow<'a, [u8]>>> for Lookup<'a> {
    fn from(value: Option<Cow<'a, [u8]>>) -> Self {
        value.map_or(Self::Absent, Self::One)
    }
}

fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(target: &'a str, headers: &'a dyn Headers, body: &'a [u8]) -> Request<'a> {
        Request { method: "POST", target, url: None, headers, body }
    }

    #[test]
    fn header_names_have_no_case_and_empty_values_do_not_count() {
        let headers = [("X-One", "a"), ("x-two", " b\t"), ("X-Empty", ""), ("x-ONE", "c")];
        let request = request("/", &headers, b"");
        assert_eq!(request.header("X-Two"), Lookup::One(Cow::Borrowed(b"b")));
        assert_eq!(request.header("x-one"), Lookup::Repeated);
        assert_eq!(request.header("x-empty"), Lookup::Absent);
        assert_eq!(request.header("x-none"), Lookup::Absent);
    }

    #[test]
    fn query_parts_are_decoded_and_forms_need_their_content_type() {
        let headers = [("content-type", "Application/X-WWW-Form-Urlencoded; charset=UTF-8")];
        let form = request("/a?b=%2B+c", &headers, b"x=1&y=");
        assert_eq!(form.query_part("b"), Lookup::One(Cow::Borrowed(b"+ c")));
        assert_eq!(form.form_field("x"), Lookup::One(Cow::Borrowed(b"1")));
        let json = [("content-type", "application/json")];
        assert_eq!(request("/", &json, b"x=1").form_field("x"), Lookup::Absent);
    }
}
