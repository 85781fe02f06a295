//! From a refusal of the API to what a person reads: a code, what happened, how to get on, an exit code.

use hookstead_server::problem::{Case, Choice};
use reqwest::StatusCode;
use serde::Deserialize;

use crate::failure::{Exit, Failure};
use crate::output::printable;

/// The code of a failure that comes of what is stored, which does not fit its digest.
pub(crate) const DAMAGED: &str = "damaged";

/// What a refusal says of itself.
#[derive(Default, Deserialize)]
pub(crate) struct Refused {
    #[serde(default)]
    code: String,
    #[serde(default)]
    title: String,
    #[serde(flatten)]
    case: Case,
}

/// Who refused.
pub(crate) struct Refuser {
    /// Its address.
    pub(crate) base: String,
    /// Whether a token was shown.
    pub(crate) with_token: bool,
}

impl Refuser {
    /// The failure of a request about `subject`, such as an event's name.
    pub(crate) fn failure(&self, status: StatusCode, refused: &Refused, subject: &str) -> Failure {
        let base = &self.base;
        match status {
            StatusCode::UNAUTHORIZED if !self.with_token => {
                Failure::new(Exit::NotAllowed, "unauthorized", format!("{base} wants a token (401)")).fix(
                    "name the server's data folder:  --data DIR\nor set HOOKSTEAD_TOKEN         (hookstead token create)",
                )
            }
            StatusCode::UNAUTHORIZED => {
                Failure::new(Exit::NotAllowed, "unauthorized", format!("{base} does not take this token (401)"))
                    .fix("make one on the server's machine: hookstead token create")
            }
            StatusCode::FORBIDDEN => {
                Failure::new(Exit::NotAllowed, "forbidden", "the token does not allow this (403)")
                    .fix("make one with a larger role: hookstead token create --role operate")
            }
            StatusCode::GONE => erased(subject),
            _ => self.failure_by_code(status, refused, subject),
        }
    }

    fn failure_by_code(&self, status: StatusCode, refused: &Refused, subject: &str) -> Failure {
        let said = refused.case.detail.as_deref().unwrap_or(&refused.title);
        match refused.code.as_str() {
            "unknown-source" => no_source(),
            "unknown-destination" => no_destination(said),
            "unknown-delivery" => no_delivery(subject),
            "unknown-redelivery" => no_redelivery(subject),
            "not-found" => no_event(subject, refused.case.searched.as_deref()),
            DAMAGED => damaged(subject),
            "ambiguous" => ambiguous(subject, &refused.case.choices),
            "unreadable" => unreadable(subject, said),
            "receipt-damaged" => receipt_damaged(said),
            "source-not-configured" => not_configured(said),
            "query" | "malformed" => Failure::new(Exit::Usage, "usage", said),
            "delivery-state" => wrong_state(subject, said),
            "redelivery-ended" => {
                Failure::new(Exit::Refused, "redelivery-ended", format!("`{subject}`: {said}"))
                    .fix("only one that is running can be cancelled")
            }
            "config" => Failure::new(Exit::Refused, "config", said),
            "busy" | "not-durable" | "stopping" => {
                Failure::new(Exit::Unreachable, "unavailable", format!("{}: {said}", self.base))
                    .fix("nothing was changed; try again in a moment")
            }
            code => {
                let code = if code.is_empty() { "no code" } else { code };
                Failure::new(
                    Exit::Failed,
                    "server",
                    format!("{} answered {status}: {said} ({code})", self.base),
                )
                .fix("the server's log says more")
            }
        }
    }
}

/// No destination has this name.
pub(crate) fn no_destination(said: &str) -> Failure {
    Failure::new(Exit::NotFound, "no-destination", said).fix(
        "see which there are:   hookstead destinations\n\
         add one:               hookstead destinations add NAME --push URL",
    )
}

/// The event is not owed to the destination.
pub(crate) fn no_delivery(name: &str) -> Failure {
    Failure::new(Exit::NotFound, "no-delivery", format!("there is no delivery `{name}`")).fix(
        "see which there are:   hookstead deliveries\n\
         a delivery is named EVENT:DESTINATION or EVENT:DESTINATION:GENERATION, the event by its id or short id",
    )
}

/// No redelivery has this id.
pub(crate) fn no_redelivery(id: &str) -> Failure {
    Failure::new(Exit::NotFound, "no-redelivery", format!("there is no redelivery `{id}`"))
        .fix("see which there are:   hookstead redeliveries")
}

/// What was asked for cannot be done with a delivery as it is.
fn wrong_state(subject: &str, said: &str) -> Failure {
    Failure::new(Exit::Refused, "delivery-state", format!("`{subject}`: {said}; nothing was changed"))
        .fix("see how it stands:     hookstead deliveries --event EVENT")
}

/// The store has never seen the source.
pub(crate) fn no_source() -> Failure {
    Failure::new(Exit::NotFound, "unknown-source", "no event of this source was ever stored")
        .fix("see which sources there are:   hookstead events")
}

/// There is no such event; what was searched for it, if that is more than one look.
pub(crate) fn no_event(selector: &str, searched: Option<&str>) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no-event", format!("there is no event `{selector}`"));
    let failure = match searched {
        Some(searched) => failure.line("why", searched),
        None => failure,
    };
    failure.fix(
        "see which there are:   hookstead events\n\
         an event is named by its short id, its id, @ for the newest, or SOURCE:PROVIDER-ID",
    )
}

/// Several events have this name.
pub(crate) fn ambiguous(selector: &str, choices: &[Choice]) -> Failure {
    let message = format!("`{selector}` names {} events, each under a scope of its own", choices.len());
    let line = |choice: &Choice| {
        let Choice { short_id, scope, received_at } = choice;
        format!("{short_id}   scope {}, received {received_at}", printable(scope))
    };
    let lines: Vec<String> = choices.iter().map(line).collect();
    let first = choices.first().map_or("0001", |choice| &choice.short_id);
    Failure::new(Exit::Usage, "ambiguous", message)
        .line("one of", lines.join("\n"))
        .fix(format!("name it by its short id:   hookstead events show {first}"))
}

/// The processor of its source cannot read it.
pub(crate) fn unreadable(selector: &str, why: &str) -> Failure {
    Failure::new(
        Exit::Refused,
        "unreadable",
        format!("`{selector}` cannot be processed, and no run was recorded"),
    )
    .line("why", why)
    .fix(format!("look at it:   hookstead events body {selector}"))
}

/// The receipt of an earlier run is damaged.
pub(crate) fn receipt_damaged(why: &str) -> Failure {
    Failure::new(Exit::Refused, "receipt-damaged", why).fix(
        "find everything that is damaged:   hookstead store check\nor process the event under another name",
    )
}

/// Nobody knows how the source's events are processed.
pub(crate) fn not_configured(why: &str) -> Failure {
    Failure::new(Exit::Refused, "source-not-configured", why)
        .fix("add the source to the configuration, or name the configuration with --config FILE")
}

/// Its body was erased.
pub(crate) fn erased(selector: &str) -> Failure {
    Failure::new(Exit::NotFound, "erased", format!("the body of `{selector}` was erased by retention"))
        .fix(format!("what remains of it:   hookstead events show {selector}"))
}

/// The stored bytes do not fit their digest.
pub(crate) fn damaged(selector: &str) -> Failure {
    Failure::new(Exit::Failed, DAMAGED, format!("what is stored of `{selector}` does not fit its digest"))
        .fix("find everything that is damaged:   hookstead store check")
}
