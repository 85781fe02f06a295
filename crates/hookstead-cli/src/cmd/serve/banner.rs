//! The first words of a server to the person who started it.

use std::path::Path;

use anyhow::Result;
use hookstead_server::ServerFacts;
use hookstead_server::config::{Mode, store_path};
use hookstead_server::tokens::ADMIN_TOKEN_FILE;

use crate::output::{self, BOLD, DIM};

/// Where the second column ends.
const WIDTH: usize = 44;

/// Prints it.
pub(super) fn print(facts: &ServerFacts) -> Result<()> {
    let how = match (&facts.config, facts.mode) {
        (Some(file), _) => short(file),
        (None, Mode::Dev) => "dev mode: no config file, loopback only".to_owned(),
        (None, Mode::Configured) => String::new(),
    };
    output::line(format_args!("{BOLD}hookstead {}{BOLD:#}   {how}\n", facts.version))?;
    row("intake", &format!("http://{}/in/<source>", facts.intake), &sources(facts))?;
    let token = format!("token in {}", short(&facts.data.join(ADMIN_TOKEN_FILE)));
    row("admin", &format!("http://{}", facts.admin), &token)?;
    let promise = match facts.store.as_str() {
        "memory:" => "in memory: nothing outlives this process",
        _ => "on disk before every success answer",
    };
    row("store", &store(&facts.store), promise)?;
    output::line("")?;
    match (facts.mode, facts.sources.is_empty()) {
        (Mode::Dev, _) => {
            row("try", "hookstead send stripe", "in a second terminal")?;
            row("next", "hookstead destinations add", "say who gets the events")?;
            row("", "hookstead config init", "for the secrets of your own providers")
        }
        (Mode::Configured, true) => {
            row("next", "name a source in the configuration", "nothing is accepted without one")
        }
        (Mode::Configured, false) => row("look", "hookstead events", "what came in"),
    }
}

fn row(label: &str, text: &str, note: &str) -> Result<()> {
    output::line(format_args!("  {DIM}{label:<9}{DIM:#}{text:<WIDTH$}  {DIM}{note}{DIM:#}"))
}

/// Three names are enough to see the pattern.
fn sources(facts: &ServerFacts) -> String {
    match (facts.mode, facts.sources.as_slice()) {
        (Mode::Dev, _) => "e.g. /in/stripe, /in/github".to_owned(),
        (Mode::Configured, []) => "no source".to_owned(),
        (Mode::Configured, names) => {
            let shown: Vec<String> = names.iter().take(3).map(|name| format!("/in/{name}")).collect();
            let more = names.len().saturating_sub(3);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", shown.join(", "))
        }
    }
}

fn store(url: &str) -> String {
    store_path(url).map_or_else(|| url.to_owned(), short)
}

/// A path as a person writes it.
fn short(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let below_home = home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    below_home.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display()))
}
