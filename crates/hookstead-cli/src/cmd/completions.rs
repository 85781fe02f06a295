//! `hookstead completions`: what a shell needs to complete the verbs and their options.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{cli, output};

const EXAMPLES: &str = "\
Examples:
  hookstead completions bash > ~/.local/share/bash-completion/completions/hookstead
  hookstead completions zsh > ~/.zfunc/_hookstead
  hookstead completions fish > ~/.config/fish/completions/hookstead.fish";

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::Cli::command(), "hookstead", &mut script);
    output::bytes(&script)
}
