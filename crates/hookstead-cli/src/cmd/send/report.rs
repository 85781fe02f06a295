//! What `send` says of one request and its answer.

use anyhow::Result;
use serde_json::{Value, json};

use super::target::Target;
use crate::failure::{Exit, Failure};
use crate::output::{self, BOLD, printable};
use crate::post::Answer;
use crate::sample::Sample;
use crate::variation::Variation;

/// A request that was answered.
pub(super) struct Sent {
    pub(super) variation: Variation,
    pub(super) sample: Sample,
    pub(super) answer: Answer,
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
            Variation::Fresh | Variation::Duplicate => format!("signed with {}", target.secret_from),
            Variation::Conflict => format!("one byte changed, signed with {}", target.secret_from),
            Variation::Tamper => "changed after it was signed".to_owned(),
            Variation::Stale => "signed an hour ago".to_owned(),
        };
        output::labelled("sent", format_args!("{event_type}  ({id}, {bytes} bytes, {how})"))?;
        let Answer { status, took, .. } = &self.answer;
        let took = output::took(*took);
        output::labelled("answer", format_args!("{BOLD}{status}{BOLD:#} in {took}   {}", self.meaning()))?;
        match &self.answer.said.event {
            Some(event) => {
                output::labelled("see", format_args!("hookstead events show {}", printable(event)))
            }
            None => Ok(()),
        }
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
    pub(super) fn json(&self, target: &Target) -> Value {
        json!({
            "provider": target.signer.provider().name(),
            "source": target.source,
            "url": target.url,
            "event_type": self.sample.event_type,
            "id": self.sample.id,
            "bytes": self.sample.body.len(),
            "sent": self.variation.name(),
            "status": self.answer.status,
            "outcome": self.answer.said.outcome,
            "event": self.answer.said.event,
            "code": self.answer.said.code,
            "ms": output::millis(self.answer.took),
            "as_asked": self.as_asked(),
        })
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
