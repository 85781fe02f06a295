//! `hookstead token`: tokens for the admin API.

use anyhow::Result;
use clap::{Args, Subcommand};
use hookstead_server::tokens::Scope;
use hookstead_server::{folder, tokens};
use serde::Serialize;

use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead token create --name ci                    a token that may only look
  hookstead token create --name ops --scope operate
  hookstead token create --scope consume:app          for the consumer of destination `app`";

const CREATE_EXAMPLES: &str = "\
Examples:
  hookstead token create --name ci
  export HOOKSTEAD_TOKEN=$(hookstead token create --name me --scope admin)
  export TOKEN=$(hookstead token create --scope consume:app)
  hookstead token create --json | jq -r .token";

const JSON: &str = "\
JSON: {\"name\", \"role\", \"token\"}. The token goes to stdout and is never shown again: only its hash is kept. A \
running server takes it at once. Use it with `authorization: Bearer TOKEN` or in HOOKSTEAD_TOKEN.";

/// Make tokens for the admin API
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
enum TokenVerb {
    Create(Create),
}

/// Make a token and print it, this once
#[derive(Debug, Args)]
#[command(before_help = CREATE_EXAMPLES, after_help = JSON)]
struct Create {
    /// What you call it, to know it again.
    #[arg(long, default_value = "unnamed")]
    name: String,
    /// What it allows: read (look at everything but secrets), operate (redeliver, resolve, pause), admin
    /// (everything), or consume:DESTINATION (claim and settle its deliveries, nothing else).
    #[arg(long, visible_alias = "role", default_value = "read")]
    scope: Scope,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The new token, for programs.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    role: &'a Scope,
    token: &'a str,
}

pub(crate) fn run(args: &TokenArgs) -> Result<()> {
    let TokenVerb::Create(args) = &args.verb;
    let config = args.place.load()?;
    folder::prepare(&config.data)?;
    let token = tokens::create(&config.data, &args.name, args.scope.clone())?;
    if args.json {
        return output::json(&Document { name: &args.name, role: &args.scope, token: &token });
    }
    output::line(&token)?;
    let file = config.data.join(tokens::TOKENS_FILE);
    output::talk_labelled(
        "kept",
        format_args!("its hash, in {}; the token itself is shown only now", file.display()),
    )
}
