//! `hookstead events import`: events that another inbox exported.

mod batches;
mod tally;

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hookstead_server::api::view::{ImportLimits, ImportView};

use crate::client::{Call, Client};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::WhereArgs;
use crate::work;
use batches::{Batch, Batches};
use tally::Tally;

const EXAMPLES: &str = "\
Examples:
  hookstead events import events.jsonl
  hookstead events import --data /var/lib/new < events.jsonl
  hookstead events import events.jsonl --deliver        push them to the destinations, too";

const HELP: &str = "\
Takes what `events export` wrote. Every source must be configured here under the same name. An event that is there already \
is a duplicate; other bytes under its id are a conflict, kept beside it, and change nothing. So a file can be imported \
again, also after a crash. Received times stay; ids and short ids are new. No signature is checked: the events are marked \
`imported`. A line whose body does not have its digest is refused. Lines with an erased body are passed over: these events \
are unknown here, and new should they come again. `store backup` keeps them.

Nobody is sent anything, since the inbox they come from did that, unless --deliver is given; later: `events redeliver`.

JSON: {\"ok\", \"lines\", \"stored\", \"duplicates\", \"conflicts\", \"erased\", \"refused\", \"problems\": [{\"line\", \"outcome\", \
\"event\", \"code\", \"reason\", \"fix\"}]}; at most 1000 problems are named. Exit codes: 7 some lines were refused or in \
conflict, 5 all.";

/// Take over events that another inbox exported; an event that is there already is found, and left as it is
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = HELP)]
pub(super) struct Import {
    /// The file [default: stdin].
    file: Option<PathBuf>,
    /// Owe the events to the destinations that are configured, as if they came now.
    #[arg(long)]
    deliver: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Import) -> Result<()> {
    let input = open(args)?;
    let mut tally = Tally::default();
    let counted = &mut tally;
    let done =
        work::making(&args.place, async move |client| import(client, input, args.deliver, counted).await);
    if let Err(error) = done {
        output::talk(format_args!(
            "ended early, at line {}: what is counted here is durable; import the file again for the rest\n{tally}",
            tally.at
        ))?;
        return Err(error);
    }
    tally.tell(args.json)
}

fn open(args: &Import) -> Result<Box<dyn BufRead + Send>> {
    let Some(file) = &args.file else {
        if std::io::stdin().is_terminal() {
            output::talk("reads lines from the terminal; Ctrl-D ends them")?;
        }
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    };
    let opened = File::open(file).map_err(|error| {
        Failure::new(Exit::NotFound, "no-file", format!("cannot read {}: {error}", file.display()))
            .fix("name a file that `hookstead events export --output FILE` wrote")
    })?;
    Ok(Box::new(BufReader::new(opened)))
}

/// Sends the lines batch by batch, each when the one before is durable.
async fn import(
    client: &Client,
    input: Box<dyn BufRead + Send>,
    deliver: bool,
    tally: &mut Tally,
) -> Result<()> {
    let limits: ImportLimits = client.ask(Call::get(&["v1", "import"])).await?;
    let mut batches = Batches::new(input, limits);
    loop {
        // Reading may wait for whoever writes into a pipe.
        let read = tokio::task::spawn_blocking(move || {
            let batch = batches.next_batch();
            (batches, batch)
        });
        let (again, batch) = read.await.context("read lines")?;
        batches = again;
        let Some(batch) = batch.context("read lines")? else { return Ok(()) };
        send(client, batch, deliver, limits, tally).await?;
    }
}

async fn send(
    client: &Client,
    batch: Batch,
    deliver: bool,
    limits: ImportLimits,
    tally: &mut Tally,
) -> Result<()> {
    let Batch { bytes, numbers, too_long, last } = batch;
    tally.too_long(&too_long, limits.line_bytes_max);
    if !numbers.is_empty() {
        let call = Call::post_bytes(&["v1", "import"], "application/x-ndjson", bytes.into())
            .about("these lines")
            .with("deliver", deliver.then_some(true));
        let answer: ImportView = client.ask(call).await?;
        tally.add(answer, &numbers)?;
    }
    tally.at = last;
    Ok(())
}
