//! The built-in providers, for `send --list`, and how one is found by its name.

use std::sync::Arc;

use anyhow::Result;
use hookstead_verify::{Provider, Registry};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output;

/// A provider, for programs.
#[derive(Serialize)]
struct Entry {
    provider: &'static str,
    title: &'static str,
    events: Vec<&'static str>,
    timestamp: bool,
}

/// Prints every provider that has sample events, and whose secret anybody can make up.
pub(crate) fn list(json: bool) -> Result<()> {
    let providers = || Registry::builtin().iter().filter(|provider| can_be_sent(provider));
    if json {
        let entry = |provider: &'static Arc<Provider>| Entry {
            provider: provider.name(),
            title: provider.title(),
            events: events(provider),
            timestamp: provider.has_timestamp(),
        };
        let list: Vec<_> = providers().map(entry).collect();
        return output::json(&list);
    }
    let rows = providers().map(|provider| {
        let time = if provider.has_timestamp() { "yes" } else { "no" };
        [provider.name().to_owned(), time.to_owned(), events(provider).join(", ")]
    });
    output::table(["PROVIDER", "SIGNS TIME", "SAMPLE EVENTS"], rows.collect())
}

/// Whether dev mode has a source for it: a public key, or an id of the account, is nothing that can be made up.
fn can_be_sent(provider: &Provider) -> bool {
    let asks = provider.conf().any(|(_, _, is_needed)| is_needed);
    provider.shares_secret() && !asks && !provider.samples().is_empty()
}

/// The provider of this name.
pub(crate) fn named(name: &str) -> Result<&'static Arc<Provider>> {
    Registry::builtin().get(name).ok_or_else(|| {
        let message = match Registry::builtin().nearest(name) {
            Some(close) => format!("there is no provider `{name}`; did you mean `{close}`?"),
            None => format!("there is no provider `{name}`"),
        };
        Failure::new(Exit::NotFound, "unknown-provider", message)
            .fix("see them all: hookstead send --list")
            .into()
    })
}

fn events(provider: &Provider) -> Vec<&str> {
    provider.samples().iter().map(|sample| sample.event.as_str()).collect()
}
