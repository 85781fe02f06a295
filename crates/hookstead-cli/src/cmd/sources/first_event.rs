//! Waiting for the first event of a source that was just added, and telling what is refused until then. Knows the running
//! server's tail and refusals, and nothing of files.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use hookstead_server::api::view::EventView;
use hookstead_server::config::{format_duration, parse_duration};
use hookstead_server::{Config, termination};
use tokio::time::{Instant, timeout_at};

use super::refusals;
use crate::client::Client;
use crate::cmd::runtime;
use crate::cmd::tail::{WAIT, batch};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::running::{Running, none_running};

/// The longest that somebody waits: longer than it takes to fill in a provider's form.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// How often is looked for refusals: as soon as a person expects to see what they just caused.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long to wait, from the command line.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text)?;
    let range = Duration::from_secs(1)..=WAIT_MAX;
    if range.contains(&wait) { Ok(wait) } else { Err("expected between 1s and 1h".to_owned()) }
}

/// A place in the running server's events, known before the source is there: nothing that comes later is missed.
pub(super) struct FirstEvent {
    admin: String,
    data: PathBuf,
    cursor: String,
}

impl FirstEvent {
    /// Looks where the events end now. Refused if no server runs.
    pub(super) fn from_now_on(config: &Config) -> Result<Self> {
        let running = Running::find(config)?.ok_or_else(|| none_running(config))?;
        let client = Client::at(&running.admin, &config.data)?;
        let end = runtime()?.block_on(batch(&client, None, None, None, Duration::ZERO))?;
        Ok(Self { admin: running.admin, data: config.data.clone(), cursor: end.cursor })
    }

    /// The first event of this source, however long it takes up to `within`.
    pub(super) fn of(self, source: &str, within: Duration) -> Result<EventView> {
        let deadline = Instant::now() + within;
        runtime()?.block_on(async {
            // Before anybody is told that this can be interrupted.
            let interruption = termination()?;
            let most = format_duration(within);
            output::labelled("waiting", format_args!("for the first event, {most} at most"))?;
            let (admin, data) = (self.admin.clone(), self.data.clone());
            tokio::select! {
                Err(failed) = tell_refusals(&admin, &data, source) => Err(failed),
                found = timeout_at(deadline, self.look_for(source)) => {
                    found.unwrap_or_else(|_| Err(none_came(source, within).into()))
                }
                () = interruption => Err(interrupted(source).into()),
            }
        })
    }

    async fn look_for(self, source: &str) -> Result<EventView> {
        // The connections of a client live no longer than the runtime that it was first used in.
        let client = Client::at(&self.admin, &self.data)?;
        let mut cursor = self.cursor;
        loop {
            // The server knows no source by name before it has an event of it, so the choice is made here.
            let found = batch(&client, Some(&cursor), None, None, WAIT).await?;
            if let Some(event) = found.events.into_iter().find(|event| event.source == source) {
                return Ok(event);
            }
            cursor = found.cursor;
        }
    }
}

/// Tells each refusal as it comes, until it cannot go on.
async fn tell_refusals(admin: &str, data: &Path, source: &str) -> Result<Infallible> {
    let client = Client::at(admin, data)?;
    let mut seen = 0;
    loop {
        seen = refusals::tell_new(&client, source, seen).await?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn none_came(source: &str, within: Duration) -> Failure {
    let message = format!("`{source}` is added, and no event of it came within {}", format_duration(within));
    Failure::new(Exit::Partly, "no-event", message).fix(format!(
        "see what was refused:   hookstead sources refusals {source}\nwait on:                hookstead tail"
    ))
}

fn interrupted(source: &str) -> Failure {
    Failure::new(
        Exit::Interrupted,
        "interrupted",
        format!("`{source}` is added and stays; its first event was not waited for any longer"),
    )
    .line("go on", "hookstead tail")
}
