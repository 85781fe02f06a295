//! `hookstead destinations secret`: what a push is signed with, once more.

use anyhow::Result;
use clap::Args;
use hookstead::DestinationKind;
use hookstead_server::Config;
use hookstead_server::config::DestinationConfig;
use hookstead_server::destination_secrets::{DESTINATION_SECRETS_FILE, DestinationSecrets};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;
use crate::refusal::no_destination;

const EXAMPLES: &str = "\
Examples:
  hookstead destinations secret app
  hookstead destinations secret app --json | jq -r .secret";

const JSON: &str = "\
JSON: {\"destination\", \"secret\", \"from\"}. Your application verifies each push with it, by any library for Standard \
Webhooks. It is read on this machine, from where it is kept; no server tells it.";

/// Print the secret that a destination's pushes are signed with
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Secret {
    /// The destination.
    name: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    destination: &'a str,
    secret: &'a str,
    from: String,
}

pub(super) fn run(args: &Secret) -> Result<()> {
    let config = args.place.load()?;
    let destination = configured(&config, &args.name)?;
    let Some(secret) = secret(&config, destination)? else {
        let message = format!("`{}` is no push destination: nothing is signed for it", args.name);
        return Err(Failure::new(Exit::Refused, "no-secret", message)
            .fix("a pull destination's consumer has a token: hookstead token create --scope consume:NAME")
            .into());
    };
    if args.json {
        let from = match destination.secret_references.first() {
            Some(reference) => reference.to_string(),
            None => config.data.join(DESTINATION_SECRETS_FILE).display().to_string(),
        };
        return output::json(&Document { destination: &args.name, secret: &secret, from });
    }
    output::line(secret.as_str())
}

/// A destination of the configuration.
pub(super) fn configured<'a>(config: &'a Config, name: &str) -> Result<&'a DestinationConfig> {
    let found = config.destinations.iter().find(|destination| destination.name.as_str() == name);
    found.ok_or_else(|| {
        let file = config.tables_file();
        no_destination(&format!("there is no destination `{name}` in {}", file.display())).into()
    })
}

/// What its pushes are signed with; made and kept if it has none yet. `None` of a destination that is not pushed to.
pub(super) fn secret(config: &Config, destination: &DestinationConfig) -> Result<Option<String>> {
    let DestinationKind::Push(push) = &destination.kind else { return Ok(None) };
    if let Some(secret) = push.secrets.first() {
        return Ok(Some(secret.expose().to_string()));
    }
    let secrets = DestinationSecrets::open(&config.data, std::slice::from_ref(destination))?;
    Ok(secrets.get(destination.name.as_str()).map(|secret| secret.expose().to_string()))
}
