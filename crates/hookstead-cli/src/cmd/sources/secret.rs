//! `hookstead sources secret`: another secret in the file where a source's secret is kept, entered by a person or made
//! now. It is never an argument, and is never printed.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::SourceConfig;
use hookstead_verify::Provider;
use serde::Serialize;

use super::new_secret::{self, NewSecret};
use super::secret_file::SecretFile;
use super::{configured, named, other_file};
use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead sources secret stripe                asks for it, and shows nothing of it
  hookstead sources secret stripe --stdin < new
  hookstead sources secret gitea --generate      makes one, for you to enter at the provider";

const JSON: &str = "\
JSON: {\"source\", \"file\", \"reloaded\", \"generated\", \"warning\"}; the secret is in the file and is never printed. Exit \
code 5 if it cannot be one, such as an API key, or if it is kept in no file: nothing is changed then. Requests that were \
signed with the old secret are refused from now on; `sources rotate --add` takes both.";

/// Replace the secret of a source, in the file where it is kept
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Secret {
    /// The source.
    name: String,
    /// Read the secret from stdin instead of asking for it.
    #[arg(long, conflicts_with = "generate")]
    stdin: bool,
    /// Make a random secret, for providers that take one of yours.
    #[arg(long)]
    generate: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    source: &'a str,
    file: String,
    reloaded: bool,
    generated: bool,
    warning: Option<String>,
}

pub(super) fn run(args: &Secret) -> Result<()> {
    let config = configured(args.place.load()?)?;
    let source = named(&config, &args.name)?;
    // Nobody is asked for a secret that cannot be put anywhere.
    let file = SecretFile::of(&config, source)?;
    let NewSecret { secret, made_up } = args.secret(source)?;
    let sources = file.replace(&config, &secret)?;
    if sources.as_ref().is_some_and(|sources| !sources.contains(&args.name)) {
        return Err(other_file(&file.path().display().to_string()).into());
    }
    let document = Document {
        source: &args.name,
        file: file.path().display().to_string(),
        reloaded: sources.is_some(),
        generated: made_up,
        warning: new_secret::warning(&source.provider, &secret),
    };
    if args.json { output::json(&document) } else { print(&document, &source.provider) }
}

impl Secret {
    /// The new secret, of which it is known that it is one.
    fn secret(&self, source: &SourceConfig) -> Result<NewSecret> {
        let provider = &source.provider;
        // The file's one secret is read as the one before it.
        let decode = source.secret_entries.first().and_then(|entry| entry.decode);
        match (self.generate, self.stdin) {
            (true, _) => new_secret::make_up(provider, decode),
            (_, true) => new_secret::from_stdin(provider, decode),
            _ => new_secret::ask(source.name.as_str(), provider, decode),
        }
    }
}

fn print(changed: &Document<'_>, provider: &Provider) -> Result<()> {
    output::labelled("changed", format_args!("the secret of {}   ({})", changed.source, changed.file))?;
    if let Some(warning) = &changed.warning {
        output::labelled("warning", format_args!("{warning}: {}", provider.secret().place))?;
    }
    if changed.generated {
        output::labelled("next", format_args!("enter what is in the file at {}", provider.title()))?;
    }
    if changed.reloaded {
        return output::labelled("server", "it has taken the secret over");
    }
    output::labelled("server", "none runs on this store: it is taken over when one starts")
}
