//! `hookstead sources rotate`: another secret, with or without the old one beside it for a while.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::SecretReference;
use serde::Serialize;
use toml::{Table, Value};

use super::reference::{ReferenceArgs, Wanted};
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
  hookstead sources rotate stripe --add                             asks for it, unseen
  hookstead sources rotate gitea --add --generate                   makes one";

const JSON: &str = "\
JSON: {\"source\", \"secrets\", \"file\", \"reloaded\", \"written\", \"generated\", \"warning\"}; secrets says where they are kept, written \
which new file holds the new one. Exit code 5 if the \
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
    written: Option<String>,
    generated: Option<String>,
    warning: Option<String>,
}

pub(super) fn run(args: &Rotate) -> Result<()> {
    let config = configured(args.place.load()?)?;
    let source = named(&config, &args.name)?;
    let file = ConfigFile::of(config.clone())?;
    let wanted = Wanted { source: &args.name, provider: &source.provider, folder: file.folder()? };
    let reference = args.reference.make(&wanted)?;
    let Some(new) = reference.value.clone() else {
        return Err(Failure::new(Exit::Usage, "no-secret", "no new secret is named")
            .fix("name one: --env VARIABLE, --file FILE, --stdin or --generate")
            .into());
    };
    let old = source.secret_references.iter().map(value).filter(|old| args.add && *old != new);
    let references: Vec<Value> = std::iter::once(new.clone()).chain(old).collect();
    let path = file.path().display().to_string();
    let text =
        with_secrets(&file.text, &args.name, &references).map_err(|fault| not_replaced(fault, &path))?;
    let changed = file.change(&text)?;
    let (made_up, warning) = (reference.made_up, reference.warning.clone());
    let written = reference.keep().map(|file| file.display().to_string());
    let generated = written.clone().filter(|_| made_up);
    if changed.reloaded.as_ref().is_some_and(|reloaded| !reloaded.sources.contains(&args.name)) {
        return Err(other_file(&path).into());
    }
    let secrets = references.iter().map(ToString::to_string).collect();
    let reloaded = changed.reloaded.is_some();
    let document =
        Document { source: &args.name, secrets, file: path, reloaded, written, generated, warning };
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
    match (&rotated.generated, &rotated.written) {
        (Some(file), _) => output::labelled("new", format_args!("in {file}: enter it at the provider"))?,
        (None, Some(file)) => output::labelled("new", format_args!("in {file}, for its owner alone"))?,
        (None, None) => {}
    }
    if let Some(warning) = &rotated.warning {
        output::labelled("warning", warning)?;
    }
    if !rotated.reloaded {
        output::labelled("next", "no server runs on this store: it is taken over when one starts")?;
    }
    if rotated.secrets.len() > 1 {
        output::labelled("later", "once the provider signs with the new one, rotate again without --add")?;
    }
    Ok(())
}
