//! `hookstead destinations add`: into the configuration file, into the running server, and a first look at the target.

use anyhow::Result;
use clap::Args;
use hookstead_server::Config;
use hookstead_server::config::Mode;
use hookstead_store::OpenOptions;
use serde::Serialize;
use toml::Value;

use super::check::{Check, check};
use super::secret::{configured, secret};
use crate::config_file::{Changed, ConfigFile};
use crate::config_text::with_table;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;
use crate::reader::open_store;

const EXAMPLES: &str = "\
Examples:
  hookstead destinations add app --push http://localhost:3000/webhooks
  hookstead destinations add app --push https://app.example.com/hooks --types 'invoice.*'
  hookstead destinations add worker --pull --sources stripe,github
  hookstead destinations add ledger --exec /usr/local/bin/book --quiet";

const JSON: &str = "\
JSON: {\"destination\", \"file\", \"reloaded\", \"secret\", \"check\": {\"ok\", \"looked_at\", \"found\", \"fix\"}, \
\"older_events\"}. The configuration file gets a table [destinations.NAME], and a running server takes it over at once; \
further keys are written there: hookstead config init - shows them all. Exit code 5 if it would be wrong: nothing is \
changed then.";

/// Add a destination: who gets events, by push, pull or a program
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Add {
    /// What you call it.
    name: String,
    #[command(flatten)]
    kind: Kind,
    /// Only events of these sources [default: every source].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    sources: Vec<String>,
    /// Only events whose type one of these matches; `*` stands for anything [default: every type].
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    types: Vec<String>,
    /// Push to private and loopback addresses too (in dev mode to loopback anyhow).
    #[arg(long, requires = "push")]
    allow_private: bool,
    /// How long one attempt may take, such as 10s.
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// The wait before each attempt, such as 0s,5s,5m [default: standard, 10 in 3 days].
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    retry: Vec<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Kind {
    /// Send each event to this URL.
    #[arg(long, value_name = "URL")]
    push: Option<String>,
    /// Its consumer comes for the events, by the API.
    #[arg(long)]
    pull: bool,
    /// Run this program for each event; everything after it belongs to it.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    destination: &'a str,
    file: String,
    reloaded: bool,
    secret: Option<String>,
    check: Option<Check>,
    older_events: u64,
}

pub(super) fn run(args: &Add) -> Result<()> {
    let config = args.place.load()?;
    if config.destinations.iter().any(|known| known.name.as_str() == args.name) {
        let message = format!("there is a destination `{}` already; nothing was changed", args.name);
        return Err(Failure::new(Exit::Refused, "exists", message)
            .fix(format!("change it in {}, or choose another name", config.tables_file().display()))
            .into());
    }
    let file = ConfigFile::of(config)?;
    let path = file.path().display().to_string();
    let text = with_table(&file.text, &args.name, &keys(args));
    let Changed { config, reloaded } = file.change(&text)?;
    if let Some(reloaded) = &reloaded
        && !reloaded.destinations.contains(&args.name)
    {
        return Err(other_file(&path).into());
    }
    let destination = configured(&config, &args.name)?;
    let secret = secret(&config, destination)?;
    let document = Document {
        destination: &args.name,
        file: path,
        reloaded: reloaded.is_some(),
        check: check(destination, secret.as_deref())?,
        older_events: stored_events(&config)?,
        secret,
    };
    if args.json { output::json(&document) } else { print(args, &document, &config) }
}

fn keys(args: &Add) -> Vec<(&'static str, Value)> {
    let Kind { push, pull, exec } = &args.kind;
    let list = |key, items: &[String]| (!items.is_empty()).then(|| (key, Value::from(items.to_vec())));
    let retry = match args.retry.as_slice() {
        [one] if one == "standard" => None,
        waits => list("retry", waits),
    };
    let keys = [
        push.as_ref().map(|url| ("push", Value::from(url.as_str()))),
        pull.then_some(("pull", Value::from(true))),
        list("exec", exec),
        list("sources", &args.sources),
        list("types", &args.types),
        args.allow_private.then_some(("allow_private", Value::from(true))),
        args.timeout.as_ref().map(|time| ("timeout", Value::from(time.as_str()))),
        retry,
    ];
    keys.into_iter().flatten().collect()
}

fn other_file(path: &str) -> Failure {
    let message = format!("the running server does not read {path}, so it knows nothing of the destination");
    Failure::new(Exit::Partly, "other-configuration", message)
        .fix("name the server's configuration with --config FILE, and take this one out again")
}

/// How many events a destination that is new has missed.
fn stored_events(config: &Config) -> Result<u64> {
    // A store that only its server can read is asked about by nobody here.
    match open_store(config, &OpenOptions::default()) {
        Ok(Some(store)) => Ok(store.stats()?.events),
        Ok(None) | Err(_) => Ok(0),
    }
}

fn print(args: &Add, added: &Document<'_>, config: &Config) -> Result<()> {
    let wants = match (args.sources.is_empty(), args.types.is_empty()) {
        (true, true) => "every source".to_owned(),
        (false, true) => args.sources.join(", "),
        (true, false) => args.types.join(", "),
        (false, false) => format!("{} of {}", args.types.join(", "), args.sources.join(", ")),
    };
    output::labelled("added", format_args!("{} ← {wants}   ({})", args.name, added.file))?;
    if !added.reloaded {
        output::labelled("next", "no server runs on this store: it is taken over when one starts")?;
    }
    if let Some(secret) = &added.secret {
        let again = format!("hookstead destinations secret {}", args.name);
        output::labelled(
            "secret",
            format_args!("{secret}   your application verifies with it; again: {again}"),
        )?;
    }
    if let Some(check) = &added.check {
        output::labelled("check", format_args!("{}  →  {}", check.looked_at, check.found))?;
        if let Some(fix) = &check.fix {
            output::labelled("fix", fix)?;
        }
    }
    if args.kind.pull {
        let token = format!("TOKEN=$(hookstead token create --scope consume:{})", args.name);
        output::labelled("next", format_args!("export {token}"))?;
    }
    if added.older_events > 0 {
        let noun = if added.older_events == 1 { "stored event is" } else { "stored events are" };
        output::labelled(
            "note",
            format_args!(
                "{} {noun} older than this destination. Deliver them too?  hookstead events redeliver --all --to {}",
                added.older_events, args.name
            ),
        )?;
    }
    match config.mode {
        Mode::Dev => {
            output::labelled("note", "in dev mode; with a hookstead.toml of your own, add it there as well")
        }
        Mode::Configured => Ok(()),
    }
}
