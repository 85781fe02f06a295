//! `hookstead tail`: events as they come, one line each. Nothing on the terminal is drawn again, and whoever comes back
//! with the cursor misses nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use hookstead_server::api::view::{EventView, TailLine};
use hookstead_server::{Config, termination};

use super::events::{provider_id, state};
use crate::client::{Call, Client};
use crate::cmd::runtime;
use crate::failure::{Exit, Failure};
use crate::output::{self, BOLD, printable};
use crate::reader::{WhereArgs, server};
use crate::running::none_running;

const EXAMPLES: &str = "\
Examples:
  hookstead tail                             what comes from now on, until you interrupt it
  hookstead tail --source stripe --type 'invoice.*'
  hookstead tail --cursor start --json       everything that is stored, and then what comes
  hookstead tail --cursor CURSOR             from where an earlier one was interrupted";

const JSON: &str = "\
JSON: lines; {\"event\": EVENT} for each event, as in `hookstead events list --json`, and after each batch of them \
{\"cursor\", \"more\"}: --cursor CURSOR goes on behind it. An event before the first cursor that you kept may come again.

Exit code 130 when it is interrupted. A server that does not answer is waited for, for one minute; then 6.";

/// How long the server waits for an event before it answers that there is none.
pub(super) const WAIT: Duration = Duration::from_secs(20);

/// For how long a server that was there is waited for.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// How long after a failed call the next one is made.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The most events of one answer.
const PAGE: u16 = 100;

/// Follow events as they are stored, one line each
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Tail {
    /// Go on behind this place; `start` is before the first event [default: what comes from now on].
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Only of this source.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only of this type; `*` stands for anything.
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(crate) fn run(args: &Tail) -> Result<()> {
    let config = args.place.place.load()?;
    let mut follower = Follower { args, config, client: None, cursor: args.cursor.clone() };
    runtime()?.block_on(async {
        let interruption = termination()?;
        tokio::select! {
            ended = follower.follow() => ended,
            () = interruption => Ok(()),
        }
    })?;
    Err(interrupted(follower.cursor.as_deref()).into())
}

struct Follower<'a> {
    args: &'a Tail,
    config: Config,
    client: Option<Client>,
    cursor: Option<String>,
}

/// What one call brought.
pub(super) struct Batch {
    pub(super) events: Vec<EventView>,
    pub(super) cursor: String,
    more: bool,
}

/// The events behind a cursor, or none and where the events end; the server waits this long for the first.
pub(super) async fn batch(
    client: &Client,
    cursor: Option<&str>,
    source: Option<&str>,
    event_type: Option<&str>,
    wait: Duration,
) -> Result<Batch> {
    let call = Call::get(&["v1", "tail"])
        .with("cursor", cursor)
        .with("source", source)
        .with("type", event_type)
        .with("limit", Some(PAGE))
        .with("wait", Some(format!("{}s", wait.as_secs())))
        .waiting(wait)
        .about("the events");
    let answer = client.bytes(call).await?;
    read(&answer).context("read the server's answer")
}

impl Follower<'_> {
    /// Goes on until something fails for good.
    async fn follow(&mut self) -> Result<()> {
        // The place is known before anything is waited for.
        let first = self.batch(Duration::ZERO).await?;
        self.tell(first)?;
        let mut away_since = None;
        loop {
            match self.batch(WAIT).await {
                Ok(batch) => {
                    away_since = None;
                    self.tell(batch)?;
                }
                Err(error) if is_away(&error) => self.wait_for_it(&mut away_since, error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn batch(&mut self, wait: Duration) -> Result<Batch> {
        let (args, cursor) = (self.args, self.cursor.clone());
        let client = self.client()?;
        batch(client, cursor.as_deref(), args.source.as_deref(), args.event_type.as_deref(), wait).await
    }

    fn client(&mut self) -> Result<&Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let address = server(&self.args.place, &self.config)?;
                Client::at(&address.ok_or_else(|| none_running(&self.config))?, &self.config.data)?
            }
        };
        Ok(self.client.insert(client))
    }

    fn tell(&mut self, batch: Batch) -> Result<()> {
        let Batch { events, cursor, more } = batch;
        let some = !events.is_empty();
        for event in events {
            if self.args.json {
                output::json(&TailLine::Event { event: Box::new(event) })?;
            } else {
                output::line(text(&event))?;
            }
        }
        if some && self.args.json {
            output::json(&TailLine::End { cursor: cursor.clone(), more })?;
        }
        self.cursor = Some(cursor);
        Ok(())
    }

    /// A server that is started anew may listen elsewhere, so it is looked for again.
    async fn wait_for_it(&mut self, away_since: &mut Option<Instant>, error: anyhow::Error) -> Result<()> {
        self.client = None;
        match away_since {
            None => {
                output::talk_labelled("away", "the server does not answer; waiting for it")?;
                *away_since = Some(Instant::now());
            }
            Some(since) if since.elapsed() >= AWAY_MAX => return Err(error),
            Some(_) => {}
        }
        tokio::time::sleep(AGAIN_AFTER).await;
        Ok(())
    }
}

fn read(answer: &[u8]) -> Result<Batch> {
    let mut events = Vec::new();
    for line in answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line)? {
            TailLine::Event { event } => events.push(*event),
            TailLine::End { cursor, more } => return Ok(Batch { events, cursor, more }),
        }
    }
    anyhow::bail!("it broke off before its last line")
}

fn is_away(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Failure>().is_some_and(|failure| failure.exit() == Exit::Unreachable)
}

fn text(event: &EventView) -> String {
    let event_type = printable(event.event_type.as_deref().unwrap_or("no type"));
    let id = provider_id(event);
    let EventView { committed_at, short_id, source, .. } = event;
    format!("{committed_at}  {BOLD}{short_id}{BOLD:#}  {source}  {event_type}  {id}  {}", state(event))
}

fn interrupted(cursor: Option<&str>) -> Failure {
    let failure = Failure::new(Exit::Interrupted, "interrupted", "the tail was interrupted");
    match cursor {
        Some(cursor) => failure.line("go on", format!("hookstead tail --cursor {cursor}")),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_its_last_line_is_none() {
        assert!(read(b"").is_err() && read(b"{\"event\":{}}\n").is_err());
        let batch = read(b"{\"cursor\":\"c\",\"more\":true}\n").unwrap();
        assert_eq!((batch.events.len(), batch.cursor.as_str(), batch.more), (0, "c", true));
    }
}
