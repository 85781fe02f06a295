//! Requests that are no events: a provider asks whether this address is ours, and wants a certain answer.

use crate::keys::{Pin, Query};
use crate::provider::Check;
use crate::record::raw::Auth;
use crate::secret::Secret;
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
    pub(crate) fail: u16,
    pub(crate) store: Option<Template>,
    pub(crate) fetch: Option<Fetch>,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Template,
}

/// An address to call, and where it may be.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) url: Template,
    pub(crate) pin: Pin,
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
    /// Whether this is a refusal: whoever asked does not know what the source's configuration says.
    pub refused: bool,
    /// The secret that the provider hands over. It has to be kept before the answer is given, and only
    /// [`Verifier::awaiting_secret`](crate::Verifier::awaiting_secret) ever gives one.
    pub secret: Option<Secret>,
    /// An address at one of the provider's own hosts that has to be called (GET) to confirm, outside the
    /// request.
    pub fetch: Option<String>,
}

/// Which handshakes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the signature: those that need none.
    Open,
    /// The same, for a source that has no secret yet.
    AwaitingSecret,
    /// After the signature held.
    Verified,
}

/// The answer of the first handshake that applies.
pub(crate) fn answer(
    handshakes: &[Handshake],
    stage: Stage,
    context: &Context<'_>,
) -> Option<HandshakeAnswer> {
    let asks = |handshake: &&Handshake| match stage {
        Stage::Open => handshake.auth == Auth::None && handshake.store.is_none(),
        Stage::AwaitingSecret => handshake.auth == Auth::None,
        Stage::Verified => handshake.auth == Auth::Signature,
    };
    let handshake = handshakes.iter().filter(asks).find(|handshake| handshake.when.holds(context))?;
    handshake.answer(context)
}

impl Handshake {
    /// Nothing if a part of the answer is not in the request: then it is an ordinary request.
    fn answer(&self, context: &Context<'_>) -> Option<HandshakeAnswer> {
        if !self.checks.iter().all(|check| check.holds(context).is_ok_and(|holds| holds)) {
            return Some(self.refusal());
        }
        let text = |template: &Template| template.resolve(context).ok().map(|pieces| pieces.concat());
        let body = text(&self.body)?;
        let header = |(name, value): &(String, Template)| {
            let value = text(value)?;
            let plain = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
            plain.then(|| (name.clone(), value))
        };
        let headers = self.headers.iter().map(header).collect::<Option<Vec<_>>>()?;
        let secret = match &self.store {
            Some(template) => Some(Secret::new(text(template)?).ok()?),
            None => None,
        };
        let fetch = match &self.fetch {
            Some(fetch) => {
                let url = String::from_utf8(text(&fetch.url)?).ok()?;
                Some(Some(url).filter(|url| fetch.pin.holds(url, Query::Allowed))?)
            }
            None => None,
        };
        (body.len() <= ANSWER_BYTES_MAX).then(|| HandshakeAnswer {
            name: self.name.clone(),
            status: self.status,
            content_type: self.content_type.clone(),
            headers,
            body,
            refused: false,
            secret,
            fetch,
        })
    }

    fn refusal(&self) -> HandshakeAnswer {
        HandshakeAnswer {
            name: self.name.clone(),
            status: self.fail,
            content_type: None,
            headers: Vec::new(),
            body: Vec::new(),
            refused: true,
            secret: None,
            fetch: None,
        }
    }
}
