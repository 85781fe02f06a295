//! `hookstead sources rotate`: another secret, with or without the old one beside it for a while.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::SecretEntry;
use hookstead_verify::SecretCoding;
use serde::Serialize;

use super::reference::{ReferenceArgs, Wanted, written};
use super::{configured, named, other_file, reference};
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
  hookstead sources rotate gitea --add --generate                   makes one
  hookstead sources rotate polar --add --env POLAR_NEW --decode base64";

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
    /// How the key is read from the secret: utf8 (the text as it is), base64 or hex [default: like the source's first secret].
    #[arg(long, value_name = "WORD", value_parser = reference::coding)]
    decode: Option<SecretCoding>,
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
    let decode = args.decode.or_else(|| source.secret_entries.first().and_then(|first| first.decode));
    let wanted = Wanted { source: &args.name, provider: &source.provider, folder: &file.folder()?, decode };
    let reference = args.reference.make(&wanted)?;
    let Some(new) = reference.entry.clone() else {
        return Err(Failure::new(Exit::Usage, "no-secret", "no new secret is named")
            .fix("name one: --env VARIABLE, --file FILE, --stdin or --generate")
            .into());
    };
    let old = source.secret_entries.iter().filter(|old| args.add && **old != new).cloned();
    let entries: Vec<SecretEntry> = std::iter::once(new.clone()).chain(old).collect();
    let references: Vec<_> = entries.iter().map(written).collect();
    let path = file.path().display().to_string();
    let text =
        with_secrets(&file.text, &args.name, &references).map_err(|fault| not_replaced(fault, &path))?;
    let (made_up, warning) = (reference.made_up, reference.warning.clone());
    let (changed, new_file) = reference.put_in(file, &text)?;
    let new_file = new_file.map(|file| file.display().to_string());
    let generated = new_file.clone().filter(|_| made_up);
    if changed.reloaded.as_ref().is_some_and(|reloaded| !reloaded.sources.contains(&args.name)) {
        return Err(other_file(&path).into());
    }
    let secrets = entries.iter().map(ToString::to_string).collect();
    let reloaded = changed.reloaded.is_some();
    let document =
        Document { source: &args.name, secrets, file: path, reloaded, written: new_file, generated, warning };
    if args.json { output::json(&document) } else { print(&document) }
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
