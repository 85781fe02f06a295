//! What `send` says of one request and its answer.

use anyhow::Result;
use serde::Serialize;

use super::target::Target;
use crate::failure::{Exit, Failure};
use crate::output::{self, BOLD, printable};
use crate::post::Answer;
use crate::sample::Sample;
use crate::variation::Variation;

/// A request and its answer for programs.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    provider: &'a str,
    source: &'a str,
    url: &'a str,
    event_type: &'a str,
    id: &'a str,
    bytes: usize,
    sent: &'static str,
    status: u16,
    outcome: Option<&'a str>,
    event: Option<&'a str>,
    code: Option<&'a str>,
    ms: f64,
    as_asked: bool,
}

/// A request that was answered.
pub(super) struct Sent {
    pub(super) variation: Variation,
    pub(super) sample: Sample,
    pub(super) answer: Answer,
    /// Whether a repetition came too late for its own time.
    pub(super) expired: bool,
}

impl Sent {
    /// Whether the answer is the one that was asked for.
    pub(super) fn as_asked(&self) -> bool {
        self.variation.accepts(self.answer.status, self.answer.said.outcome.as_deref())
    }

    /// Tells it to a person.
    pub(super) fn print(&self, target: &Target) -> Result<()> {
        let Sample { event_type, id, body, .. } = &self.sample;
        let bytes = output::grouped(body.len() as u64);
        let how = match self.variation {
            Variation::Fresh => format!("signed with {}", target.secret_from),
            Variation::Duplicate => format!("the same again, signed with {}", target.secret_from),
            Variation::Conflict => format!("one byte changed, signed with {}", target.secret_from),
            Variation::Tamper => "changed after it was signed".to_owned(),
            Variation::Stale => "signed an hour ago".to_owned(),
        };
        output::labelled("sent", format_args!("{event_type}  ({id}, {bytes} bytes, {how})"))?;
        let Answer { status, took, .. } = &self.answer;
        let took = output::took(*took);
        output::labelled("answer", format_args!("{BOLD}{status}{BOLD:#} in {took}   {}", self.meaning()))?;
        match self.event_name(target) {
            Some(event) => {
                output::labelled("see", format_args!("hookstead events show {}", printable(&event)))
            }
            None => Ok(()),
        }
    }

    /// How the event is named that the answer speaks of: by what it says, else by the id that was sent.
    fn event_name(&self, target: &Target) -> Option<String> {
        let told = self.answer.said.event.clone();
        told.or_else(|| {
            let known = self.as_asked() && self.answer.status != 401;
            known.then(|| format!("{}:{}", target.source, self.sample.id))
        })
    }

    fn meaning(&self) -> String {
        let said = &self.answer.said;
        let event = said.event.as_deref().map(printable);
        match (said.outcome.as_deref(), event, self.answer.status) {
            (Some("stored"), Some(event), _) => format!("stored as {event}"),
            (Some("duplicate"), Some(event), _) => format!("duplicate of {event}, not stored again"),
            (Some("conflict"), Some(event), _) => format!("CONFLICT with {event}, which is untouched"),
            (_, _, 409) => "CONFLICT: this id is taken by other bytes, which are untouched".to_owned(),
            (_, _, 401) => "refused: not verified (the sender is told nothing more)".to_owned(),
            (_, _, 200..=299) => "accepted".to_owned(),
            (_, _, status) => {
                said.code.as_deref().map_or_else(|| format!("refused with {status}"), printable)
            }
        }
    }

    /// The same for programs.
    pub(super) fn document<'a>(&'a self, target: &'a Target) -> Document<'a> {
        Document {
            provider: target.signer.provider().name(),
            source: &target.source,
            url: &target.url,
            event_type: &self.sample.event_type,
            id: &self.sample.id,
            bytes: self.sample.body.len(),
            sent: self.variation.name(),
            status: self.answer.status,
            outcome: self.answer.said.outcome.as_deref(),
            event: self.answer.said.event.as_deref(),
            code: self.answer.said.code.as_deref(),
            ms: output::millis(self.answer.took),
            as_asked: self.as_asked(),
        }
    }

    /// An answer that was not asked for is a failure.
    pub(super) fn check(&self, target: &Target) -> Result<()> {
        if self.as_asked() { Ok(()) } else { Err(self.surprise(target).into()) }
    }

    fn surprise(&self, target: &Target) -> Failure {
        let status = self.answer.status;
        let url = &target.url;
        let wanted = self.variation.wanted();
        match status {
            401 if self.expired => {
                let message = "the last event holds its time in its body, and is too old to be repeated";
                Failure::new(Exit::Refused, "expired", message)
                    .fix(format!("send a new one first: hookstead send {}", target.signer.provider().name()))
            }
            401 => Failure::new(Exit::Refused, "not-verified", format!("the signature was refused by {url}"))
                .line("signed", format!("with {}", target.secret_from))
                .fix("give the server and this command the same secret: --secret-env NAME"),
            404 => Failure::new(Exit::NotFound, "unknown-source", format!("there is no source at {url}"))
                .fix(format!(
                    "add [sources.{}] to the server's configuration, or name another: --source NAME",
                    target.source
                )),
            503 => {
                Failure::new(Exit::Failed, "not-durable", format!("{url} cannot store anything now (503)"))
                    .fix("the server's log says why; its /readyz does too")
            }
            200..=299 => Failure::new(
                Exit::Failed,
                "accepted",
                format!("{url} answered {status}, but {wanted} was asked for"),
            )
            .fix("for --duplicate and --conflict, send an event first; otherwise please report this"),
            _ => Failure::new(
                Exit::Refused,
                "refused",
                format!("{url} answered {status}, but {wanted} was asked for"),
            )
            .fix("the server's log says why"),
        }
    }
}
