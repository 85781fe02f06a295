//! `hookstead sources rotate`: another secret, with or without the old one beside it for a while.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::SecretReference;
use serde::Serialize;
use toml::{Table, Value};

use super::reference::ReferenceArgs;
use super::{configured, named, other_file};
use crate::config_file::ConfigFile;
use crate::config_text::{NotCut, with_secrets};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead sources rotate stripe --add --env STRIPE_NEW_SECRET     either may have signed
  hookstead sources rotate stripe --env STRIPE_NEW_SECRET           only the new one
  hookstead sources rotate gitea --add --generate gitea-secret-2";

const JSON: &str = "\
JSON: {\"source\", \"secrets\", \"file\", \"reloaded\", \"generated\"}; secrets says where they are kept. Exit code 5 if the \
secret cannot be one: nothing is changed then.";

/// Give a source another secret, with the old one beside it (--add) or instead of it
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Rotate {
    /// The source.
    name: String,
    /// Keep the secrets that are there: any of them may have signed, until you rotate without this.
    #[arg(long)]
    add: bool,
    #[command(flatten)]
    reference: ReferenceArgs,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    source: &'a str,
    secrets: Vec<String>,
    file: String,
    reloaded: bool,
    generated: Option<String>,
}

pub(super) fn run(args: &Rotate) -> Result<()> {
    let config = configured(args.place.load()?)?;
    let source = named(&config, &args.name)?;
    let reference = args.reference.make(&source.provider)?;
    let Some(new) = reference.value.clone() else {
        return Err(Failure::new(Exit::Usage, "no-secret", "no new secret is named")
            .fix("name one: --env VARIABLE, --file FILE or --generate FILE")
            .into());
    };
    let old = source.secret_references.iter().map(value).filter(|old| args.add && *old != new);
    let references: Vec<Value> = std::iter::once(new.clone()).chain(old).collect();
    let file = ConfigFile::of(config)?;
    let path = file.path().display().to_string();
    let text =
        with_secrets(&file.text, &args.name, &references).map_err(|fault| not_replaced(fault, &path))?;
    let changed = file.change(&text)?;
    let generated = reference.keep().map(|file| file.display().to_string());
    if changed.reloaded.as_ref().is_some_and(|reloaded| !reloaded.sources.contains(&args.name)) {
        return Err(other_file(&path).into());
    }
    let secrets = references.iter().map(ToString::to_string).collect();
    let reloaded = changed.reloaded.is_some();
    let document = Document { source: &args.name, secrets, file: path, reloaded, generated };
    if args.json { output::json(&document) } else { print(&document) }
}

fn value(reference: &SecretReference) -> Value {
    let (key, text) = match reference {
        SecretReference::Environment(name) => ("env", name.clone()),
        SecretReference::File(path) => ("file", path.display().to_string()),
        SecretReference::Credential(name) => ("credential", name.clone()),
    };
    Value::Table(Table::from_iter([(key.to_owned(), Value::from(text))]))
}

fn not_replaced(fault: NotCut, path: &str) -> Failure {
    let message = match fault {
        NotCut::Absent => format!("the source does not stand in {path}; nothing was changed"),
        NotCut::Inline => {
            format!("its secret in {path} is no line of its own in a table of its own; nothing was changed")
        }
    };
    Failure::new(Exit::Refused, "not-replaced", message)
        .fix("change it by hand: secrets = [{ env = \"NEW\" }, { env = \"OLD\" }]")
}

fn print(rotated: &Document<'_>) -> Result<()> {
    output::labelled("secrets", format_args!("{}   ({})", rotated.secrets.join(", "), rotated.file))?;
    if let Some(file) = &rotated.generated {
        output::labelled("new", format_args!("in {file}: enter it at the provider"))?;
    }
    if !rotated.reloaded {
        output::labelled("next", "no server runs on this store: it is taken over when one starts")?;
    }
    if rotated.secrets.len() > 1 {
        output::labelled("later", "once the provider signs with the new one, rotate again without --add")?;
    }
    Ok(())
}
