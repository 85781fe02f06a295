//! `hookstead token`: tokens for the admin API.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use hookstead_server::{folder, tokens};
use serde::Serialize;

use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead token create --name ci                  a token that may only look
  hookstead token create --name ops --role operate";

const CREATE_EXAMPLES: &str = "\
Examples:
  hookstead token create --name ci
  export HOOKSTEAD_TOKEN=$(hookstead token create --name me --role admin)
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
    /// What it allows; each includes the one before.
    #[arg(long, value_enum, default_value_t = Role::Read)]
    role: Role,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// Look at everything but secrets.
    Read,
    /// Redeliver, resolve, pause.
    Operate,
    /// Everything.
    Admin,
}

impl From<Role> for tokens::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Read => Self::Read,
            Role::Operate => Self::Operate,
            Role::Admin => Self::Admin,
        }
    }
}

/// The new token, for programs.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    role: tokens::Role,
    token: &'a str,
}

pub(crate) fn run(args: &TokenArgs) -> Result<()> {
    let TokenVerb::Create(args) = &args.verb;
    let config = args.place.load()?;
    let role = tokens::Role::from(args.role);
    folder::prepare(&config.data)?;
    let token = tokens::create(&config.data, &args.name, role)?;
    if args.json {
        return output::json(&Document { name: &args.name, role, token: &token });
    }
    output::line(&token)?;
    let file = config.data.join(tokens::TOKENS_FILE);
    output::talk_labelled(
        "kept",
        format_args!("its hash, in {}; the token itself is shown only now", file.display()),
    )
}
