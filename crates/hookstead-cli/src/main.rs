//! The binary `hookstead`. This file decides one thing: with which code the process ends.
//!
//! What a verb does stands in `cmd/<verb>.rs`; only this crate prints.

mod cli;
mod client;
mod cmd;
mod config_file;
mod config_text;

mod failure;
mod last_sent;
mod output;
mod page;
mod place;
mod post;
mod reader;
mod refusal;
mod reload;
mod replace;
mod running;
mod sample;
mod secrets;
mod variation;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use hookstead_server::config::ConfigErrors;
use mimalloc::MiMalloc;

use crate::cli::Cli;
use crate::failure::{Exit, Failure};

/// What an event takes up is asked for by the thread that reads it and given back by the one that commits it: glibc's
/// allocator locks and moves the ends of its heaps for that, at each batch.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let command = cli::with_template(Cli::command());
    let matches = match command.try_get_matches() {
        Ok(matches) => matches,
        Err(usage) => usage.exit(),
    };
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => finish(cmd::run(&cli)),
        Err(usage) => usage.exit(),
    }
}

/// The one place where an error becomes an exit code.
fn finish(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return Exit::Ok.into() };
    if output::is_closed_pipe(&error) {
        return Exit::Ok.into();
    }
    output::print_error(&error);
    exit_of(&error).into()
}

fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<ConfigErrors>() {
        return Exit::Refused;
    }
    error.downcast_ref::<Failure>().map_or(Exit::Failed, Failure::exit)
}
