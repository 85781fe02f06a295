//! A change that a running server is to take over: asked for, and taken back where the server does not take it over. Where
//! its answer is lost, it is asked to read what is there again, and else it is said that nobody knows. It knows nothing of
//! what is in the files.

use std::path::Path;

use anyhow::{Error, Result};
use hookstead_server::Config;
use hookstead_server::api::view::ReloadView;
use serde_json::Value;

use crate::client::{Call, Client};
use crate::cmd::runtime;
use crate::failure::{Exit, Failure};
use crate::post::NO_ANSWER;
use crate::replace::NotChanged;
use crate::running::Running;

/// Why a running server has not taken a change over, as far as that is known.
pub(crate) enum NotTakenOver {
    /// It said no, or was not reached: what it had is in force.
    Refused(Error),
    /// No answer came, or none that can be read: the change may be in force.
    Unanswered(Error),
}

impl NotTakenOver {
    /// Of an error that came after the request was on its way.
    fn of(error: Error) -> Self {
        let is_answer = error.downcast_ref::<Failure>().is_some_and(|failure| failure.code() != NO_ANSWER);
        if is_answer { Self::Refused(error) } else { Self::Unanswered(error) }
    }

    fn error(&self) -> &Error {
        match self {
            Self::Refused(error) | Self::Unanswered(error) => error,
        }
    }
}

/// Has the running server read its configuration, and the secrets that it points at, again.
pub(crate) fn reload(config: &Config, running: &Running) -> Result<ReloadView, NotTakenOver> {
    let prepared = || -> Result<_> {
        let client = Client::at(&running.admin, &config.data)?;
        let call = Call::post(&["v1", "reload"], &Value::Null)?.about("the configuration");
        Ok((runtime()?, client, call))
    };
    let (runtime, client, call) = prepared().map_err(NotTakenOver::Refused)?;
    runtime.block_on(client.ask(call)).map_err(NotTakenOver::of)
}

/// Takes a change back that the running server did not take over. `put_back` gives `file` the text that it had before;
/// the server is asked to read that, once: it waits for an answer no longer than for the first.
pub(crate) fn take_back(
    config: &Config,
    running: &Running,
    failed: NotTakenOver,
    file: &Path,
    put_back: impl FnOnce() -> Result<(), NotChanged>,
) -> NotChanged {
    let put_back = put_back();
    // Also after a refusal: whatever the server has, it is to have what is in the file.
    let again = reload(config, running);
    if let Err(left) = put_back {
        return not_put_back(file, &left, failed.error());
    }
    NotChanged::as_it_was(match (failed, again) {
        (NotTakenOver::Refused(error), _) => {
            error.context("the change was taken back: the running server did not take it over")
        }
        (NotTakenOver::Unanswered(error), Ok(_)) => taken_back_there_too(&error).into(),
        (NotTakenOver::Unanswered(error), Err(_)) => unknown(running, &error).into(),
    })
}

/// The change could not be undone, or nobody can say whether it stays so. `refused`: why it was to be undone.
pub(crate) fn not_put_back(file: &Path, left: &NotChanged, refused: &Error) -> NotChanged {
    let message = format!("{} is to be as it was, and may not be: {left}", file.display());
    NotChanged::unknown(
        Failure::new(Exit::Failed, "not-taken-back", message)
            .line("why", format!("the change was not taken over: {refused:#}"))
            .fix("put right by hand what is in the file, then: hookstead config check, and send the server SIGHUP"),
    )
}

/// The answer is lost; what the server has is known all the same.
fn taken_back_there_too(error: &Error) -> Failure {
    let message = "the change was taken back, also in the running server, whose answer to it was lost";
    Failure::new(Exit::Unreachable, NO_ANSWER, message)
        .line("why", format!("{error:#}"))
        .fix("call this again")
}

/// The answer is lost, and so is what was asked after it.
fn unknown(running: &Running, error: &Error) -> Failure {
    let message = "the change was taken back; whether the running server has taken it over is unknown";
    Failure::new(Exit::Unreachable, NO_ANSWER, message).line("why", format!("{error:#}")).fix(format!(
        "have it read what is there now: kill -HUP {}\nits log says whether it did; else start it again",
        running.pid
    ))
}
