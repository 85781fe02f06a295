//! The command line as a whole: the verbs and how their help is laid out.

use clap::{Command, Parser, Subcommand};

use crate::cmd;

/// What one sees first in every help: what it does, how to call it, examples to copy; the options after that.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

const EXAMPLES: &str = "\
Examples:
  hookstead demo                 the whole story in a second, in a temporary folder
  hookstead serve                start an inbox; no configuration is needed
  hookstead send stripe          send it a signed sample
  hookstead events               look at what came in";

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 refused by a rule (conflict, signature, \
configuration), 6 server not reachable, 7 partly done, 70 fail-stop, 130 interrupted.

Data goes to stdout, talk to stderr. Colours follow NO_COLOR and are off in a pipe.";

/// A durable inbox for webhooks: the signature is checked, the event is on disk, then it is answered.
#[derive(Debug, Parser)]
#[command(name = "hookstead", version, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// The verb; without one, an overview is printed.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// The verbs, in the order in which a newcomer needs them.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Demo(cmd::Demo),
    Serve(cmd::Serve),
    Send(cmd::Send),
    Events(cmd::Events),
    Tail(cmd::Tail),
    Sources(cmd::Sources),
    Destinations(cmd::Destinations),
    Deliveries(cmd::Deliveries),
    Redeliveries(cmd::Redeliveries),
    Replay(cmd::Replay),
    Sign(cmd::Sign),
    Providers(cmd::ProvidersArgs),
    Doctor(cmd::Doctor),
    Store(cmd::StoreArgs),
    Config(cmd::ConfigArgs),
    Token(cmd::TokenArgs),
    Completions(cmd::Completions),
}

/// Gives every verb's help the same layout; clap does not hand a template down by itself.
pub(crate) fn with_template(command: Command) -> Command {
    command.help_template(TEMPLATE).mut_subcommands(with_template)
}
