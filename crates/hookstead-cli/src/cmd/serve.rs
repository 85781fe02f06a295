//! `hookstead serve`: the server in the foreground, from its first word to its last.

mod banner;

use std::future::Future;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use hookstead_server::config::Overrides;
use hookstead_server::{RunOutcome, Server, ServerFacts, StartError, telemetry, termination};
use hookstead_store::OwnerRecord;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::{self, PlaceArgs};

const EXAMPLES: &str = "\
Examples:
  hookstead serve                          no configuration is needed
  hookstead serve --config prod.toml
  hookstead serve --json --intake 127.0.0.1:0 --admin 127.0.0.1:0     on any free ports";

const JSON: &str = "\
JSON: one line on stdout when the server accepts: {\"ready\": true, \"intake\", \"admin\", \"store\", \"data\", \"pid\"}; \
nothing else ever goes to stdout. Logs go to stderr.

SIGTERM and SIGINT end it in order: what is in flight is answered, then exit code 0. If the disk can no longer be \
trusted, it refuses for a while (503) and ends with exit code 70.";

/// Start the inbox: take in webhooks until told to stop
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Serve {
    /// Print one JSON line when the server accepts, and nothing else.
    #[arg(long)]
    json: bool,
    /// Where providers' requests arrive [default: 127.0.0.1:4665].
    #[arg(long, value_name = "IP:PORT")]
    intake: Option<String>,
    /// Where the API and health listen [default: 127.0.0.1:4666].
    #[arg(long, value_name = "IP:PORT")]
    admin: Option<String>,
    /// The store [default: sqlite:hookstead.db in the data folder].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// What is logged: error, warn, info, debug, or by target [default: info].
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// End when stdin closes, so that a server that a program started never outlives it.
    #[arg(long, hide = true)]
    while_stdin: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Serve) -> Result<()> {
    let config = place::load(Overrides {
        intake: args.intake.clone(),
        admin: args.admin.clone(),
        store: args.store.clone(),
        log: args.log.clone(),
        ..args.place.overrides()
    })?;
    telemetry::init(config.observability.log_format, &config.observability.log_level)?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let outcome = runtime.block_on(async {
        // Before anything is started: a signal that comes early must not be lost.
        let stop = stop(args.while_stdin)?;
        let server = Server::start(config).await.map_err(|error| not_started(&error))?;
        if let Err(error) = say_ready(args, server.facts()) {
            // Whoever started it will never know that it is there, so it goes in order.
            server.shutdown().await;
            return Err(error);
        }
        Ok(server.run(stop).await)
    })?;
    finish(outcome)
}

/// Ready when the server shall end.
fn stop(while_stdin: bool) -> Result<impl Future<Output = ()>> {
    let asked = termination().context("listen for signals")?;
    let (closed, closing) = oneshot::channel::<()>();
    let mut open = Some(closed);
    if while_stdin && let Some(closed) = open.take() {
        std::thread::spawn(move || {
            // An error means that stdin is gone as well.
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
            drop(closed);
        });
    }
    Ok(async move {
        let _open_while_this_waits = open;
        tokio::select! {
            () = asked => {}
            _ = closing => {}
        }
    })
}

fn say_ready(args: &Serve, facts: &ServerFacts) -> Result<()> {
    if !args.json {
        return banner::print(facts);
    }
    output::json(&Ready {
        ready: true,
        intake: format!("http://{}", facts.intake),
        admin: format!("http://{}", facts.admin),
        store: &facts.store,
        data: &facts.data,
        pid: std::process::id(),
    })
}

/// The line of `--json`.
#[derive(Serialize)]
struct Ready<'a> {
    ready: bool,
    intake: String,
    admin: String,
    store: &'a str,
    data: &'a Path,
    pid: u32,
}

fn not_started(error: &StartError) -> anyhow::Error {
    let failure = Failure::new(exit_of(error), error.code(), error.reason()).line("step", error.step());
    let failure = match owner(error) {
        Some(owner) => failure.line("by", format!("hookstead, {owner}")),
        None => failure,
    };
    let failure = failure.because(error);
    let fix = fix_of(error);
    if fix.is_empty() { failure.into() } else { failure.fix(fix).into() }
}

/// The server that is in the way of a port.
fn owner(error: &StartError) -> Option<&OwnerRecord> {
    match error {
        StartError::PortInUse { owner, .. } => owner.as_ref(),
        _ => None,
    }
}

fn exit_of(error: &StartError) -> Exit {
    match error {
        StartError::Source { .. } => Exit::Refused,
        _ => Exit::Failed,
    }
}

fn fix_of(error: &StartError) -> String {
    match (error.code(), owner(error)) {
        ("port-in-use", Some(owner)) => format!(
            "use the one that runs:      hookstead events\n\
             or stop it:                 kill {}\n\
             or take other ports here:   {OTHER_PORTS}",
            owner.pid
        ),
        ("port-in-use", None) => format!("take other ports:   {OTHER_PORTS}"),
        ("store-in-use", _) => "use the one that runs:      hookstead events\n\
             or stop it:                 kill PID\n\
             or take another folder:     hookstead serve --data DIR"
            .to_owned(),
        _ => error.fix(),
    }
}

const OTHER_PORTS: &str = "hookstead serve --intake 127.0.0.1:4675 --admin 127.0.0.1:4676";

fn finish(outcome: RunOutcome) -> Result<()> {
    match outcome {
        RunOutcome::Stopped => Ok(()),
        RunOutcome::Unclean(reason) => Err(Failure::new(
            Exit::Failed,
            "unclean-stop",
            format!("the store was not closed in order: {reason}"),
        )
        .line("note", "nothing that was acknowledged is lost; the next start looks after the rest")
        .into()),
        RunOutcome::FailStop(reason) => Err(Failure::new(
            Exit::FailStop,
            "fail-stop",
            format!("the disk can no longer be trusted: {reason}"),
        )
        .fix("look at the disk (dmesg, free space), then start again and run: hookstead store check")
        .into()),
    }
}
