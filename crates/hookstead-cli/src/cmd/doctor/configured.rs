//! What the configuration says: that it is right, and of what form the secrets are.

use hookstead_server::Config;
use hookstead_server::config::{ConfigErrors, ConfigProblem, Mode, Place, SourceConfig};
use hookstead_store::Finding;

const CONFIG: &str = "config";
const SECRETS: &str = "secrets";
const PUBLIC_URL: &str = "public-url";

/// Each problem of a configuration as a check that failed.
pub(super) fn problems(errors: &ConfigErrors) -> Vec<Finding> {
    errors.problems().iter().map(problem).collect()
}

fn problem(problem: &ConfigProblem) -> Finding {
    let is_secret = ["secret", "secrets"].iter().any(|last| problem.key.ends_with(&format!(".{last}")));
    let name = if is_secret { SECRETS } else { CONFIG };
    let place = match &problem.place {
        Place::File { line, .. } => format!(" (line {line})"),
        Place::Environment(variable) => format!(" ({variable})"),
        Place::Flag(flag) => format!(" ({flag})"),
        Place::Nowhere => String::new(),
    };
    let key = if problem.key.is_empty() { String::new() } else { format!("{}: ", problem.key) };
    let fix = match problem.fix.as_str() {
        "" => "see where it stands: hookstead config check".to_owned(),
        fix => fix.to_owned(),
    };
    Finding::failed(name, format!("{key}{}{place}", problem.what), fix)
}

/// What a right configuration says.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let mut findings = vec![file(config)];
    findings.extend(config.sources.iter().map(secrets));
    findings.extend(public_url(config));
    findings
}

fn file(config: &Config) -> Finding {
    let shown = config.file.as_deref().map(|file| file.display().to_string());
    match (config.mode, shown) {
        (Mode::Dev, _) => {
            Finding::good(CONFIG, "no file: dev mode, every built-in provider has a secret of its own")
        }
        (Mode::Configured, shown) if config.sources.is_empty() => Finding::warning(
            CONFIG,
            format!("{}: no source, so nothing is accepted", shown.unwrap_or_default()),
            "add one: hookstead sources add NAME --env VARIABLE",
        ),
        (Mode::Configured, shown) => Finding::good(
            CONFIG,
            format!(
                "{}: {} sources, {} destinations",
                shown.unwrap_or_default(),
                config.sources.len(),
                config.destinations.len()
            ),
        ),
    }
}

/// The loading has refused what is too short, in quotation marks, with white space around it or of another kind.
fn secrets(source: &SourceConfig) -> Finding {
    let (name, provider) = (&source.name, &source.provider);
    let references: Vec<String> = source.secret_entries.iter().map(ToString::to_string).collect();
    if source.secrets.is_empty() {
        return match provider.hands_over_secret() {
            true => {
                Finding::skipped(SECRETS, format!("`{name}`: {} hands its secret over", provider.title()))
            }
            false => Finding::good(SECRETS, format!("`{name}`: {} needs none", provider.title())),
        };
    }
    let prefix = provider.secret().prefix.as_bytes();
    if let Some(odd) = source.secrets.iter().position(|secret| !secret.expose().starts_with(prefix)) {
        return Finding::warning(
            SECRETS,
            format!(
                "`{name}`: {} does not begin with `{}`, as secrets of {} do",
                references.get(odd).map_or("a secret", String::as_str),
                provider.secret().prefix,
                provider.title()
            ),
            format!("copy it again: {}", provider.secret().place),
        );
    }
    Finding::good(SECRETS, format!("`{name}`: {}, of {}'s form", references.join(", "), provider.title()))
}

/// Only where somebody signs it.
fn public_url(config: &Config) -> Option<Finding> {
    let signing: Vec<String> = config
        .sources
        .iter()
        .filter(|source| source.provider.needs_url())
        .map(|source| format!("`{}`", source.name))
        .collect();
    if signing.is_empty() {
        return None;
    }
    let signing = signing.join(", ");
    Some(match config.server.public_url.as_deref() {
        Some(url) if url.starts_with("https://") => {
            Finding::good(PUBLIC_URL, format!("{url}, which is part of what {signing} signs"))
        }
        Some(url) => Finding::warning(
            PUBLIC_URL,
            format!("{url} is part of what {signing} signs, and is no https address"),
            "set public_url in [server] to the address exactly as it is written at the provider",
        ),
        None => Finding::failed(
            PUBLIC_URL,
            format!("{signing} signs the public address, and none is configured"),
            "set public_url in [server]",
        ),
    })
}
