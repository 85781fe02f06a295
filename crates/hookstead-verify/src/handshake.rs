//! Requests that are no events: a provider asks whether this address is ours, and wants a certain answer.

use crate::provider::Check;
use crate::record::raw::Auth;
use crate::template::{Context, Template};
use crate::when::When;

/// Longest answer to a handshake, in bytes: challenges are short, and an open one echoes what a stranger sent.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// A record's handshake.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    pub(crate) name: String,
    pub(crate) when: When,
    pub(crate) auth: Auth,
    pub(crate) checks: Vec<Check>,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Template,
}

/// What to answer to a handshake. The request is no event: nothing is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeAnswer {
    /// Which handshake of the record this is.
    pub name: String,
    /// The status.
    pub status: u16,
    /// The content type of the body.
    pub content_type: Option<String>,
    /// Further headers.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer of the first handshake that applies; with `auth`, only those that ask for just that.
pub(crate) fn answer(handshakes: &[Handshake], auth: Auth, context: &Context<'_>) -> Option<HandshakeAnswer> {
    let handshake =
        handshakes.iter().find(|handshake| handshake.auth == auth && handshake.when.holds(context))?;
    handshake.answer(context)
}

impl Handshake {
    /// Nothing if a check fails or a part of the answer is not in the request: then it is an ordinary request.
    fn answer(&self, context: &Context<'_>) -> Option<HandshakeAnswer> {
        if !self.checks.iter().all(|check| check.holds(context).is_ok_and(|holds| holds)) {
            return None;
        }
        let body = self.body.resolve(context).ok()?.concat();
        let header = |(name, value): &(String, Template)| {
            let value = value.resolve(context).ok()?.concat();
            let plain = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
            plain.then(|| (name.clone(), value))
        };
        let headers = self.headers.iter().map(header).collect::<Option<Vec<_>>>()?;
        (body.len() <= ANSWER_BYTES_MAX).then(|| HandshakeAnswer {
            name: self.name.clone(),
            status: self.status,
            content_type: self.content_type.clone(),
            headers,
            body,
        })
    }
}
