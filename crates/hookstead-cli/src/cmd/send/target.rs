//! Where a sample goes and with which secret it is signed: the address, the source and the signer, found from
//! the command line, the configuration and the running server.

use std::os::unix::ffi::OsStrExt;

use anyhow::Result;
use clap::Args;
use hookstead_server::config::{Config, Mode, SourceConfig};
use hookstead_verify::{Provider, Secret};

use crate::cmd::providers;
use crate::failure::{Exit, Failure};
use crate::running::Running;
use crate::sample::Signer;
use crate::secrets;

/// With which secret, and for which source.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// The source [default: the one named like the provider, else its first].
    #[arg(long, value_name = "NAME", help_heading = "Where")]
    pub(crate) source: Option<String>,
    /// Sign with the secret in this variable [default: the source's first, or the dev secret].
    #[arg(long, value_name = "VARIABLE", help_heading = "Where")]
    pub(crate) secret_env: Option<String>,
}

/// Everything that is known about where a sample goes.
pub(crate) struct Target {
    /// The source's name.
    pub(crate) source: String,
    /// Where requests are posted to.
    pub(crate) url: String,
    /// The address that is signed, for providers that sign it: the public one.
    pub(crate) signed_url: String,
    /// Who signs.
    pub(crate) signer: Signer,
    /// Where the secret is from, for people.
    pub(crate) secret_from: String,
}

impl Target {
    /// Finds it. `to` is an address of the command line, which is posted to and signed as it is.
    pub(crate) fn find(provider: &str, args: &SecretArgs, to: Option<&str>, config: &Config) -> Result<Self> {
        let configured = configured(provider, args, config)?;
        let source = match (&args.source, configured) {
            (Some(name), _) => name.clone(),
            (None, Some(source)) => source.name.to_string(),
            (None, None) => provider.to_owned(),
        };
        let provider = match configured {
            Some(source) => source.provider.clone(),
            None => providers::named(provider)?.clone(),
        };
        let (secret, secret_from) = secret(&provider, args, configured, to, config)?;
        let path = format!("/in/{source}");
        let url = match to {
            Some(to) => to.to_owned(),
            None => format!("{}{path}", Running::intake(config)?),
        };
        let public = config.server.public_url.as_ref().filter(|_| to.is_none());
        let signed_url = public.map_or_else(|| url.clone(), |public| format!("{public}{path}"));
        Ok(Self { source, url, signed_url, signer: Signer::new(provider, secret), secret_from })
    }

    /// Where a request is posted to whose signing gave it this address: a provider may add to the query.
    pub(crate) fn posted_url(&self, signed: &str) -> String {
        match signed.strip_prefix(&self.signed_url) {
            Some(added) => format!("{}{added}", self.url),
            None => self.url.clone(),
        }
    }
}

/// The configured source that is meant, if the configuration names sources.
fn configured<'c>(provider: &str, args: &SecretArgs, config: &'c Config) -> Result<Option<&'c SourceConfig>> {
    if config.mode == Mode::Dev {
        return Ok(None);
    }
    let by_name = |name: &str| config.sources.iter().find(|source| source.name.as_str() == name);
    if let Some(name) = &args.source {
        let found = by_name(name);
        return if found.is_some() || args.secret_env.is_some() {
            Ok(found)
        } else {
            Err(unknown_source(name, config).into())
        };
    }
    let of_provider = || config.sources.iter().find(|source| source.provider.name() == provider);
    let found = by_name(provider).filter(|source| source.provider.name() == provider).or_else(of_provider);
    if found.is_none() && args.secret_env.is_none() {
        providers::named(provider)?;
        return Err(unknown_source(provider, config).into());
    }
    Ok(found)
}

fn unknown_source(name: &str, config: &Config) -> Failure {
    let known: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
    let file = config.file.as_deref().map_or_else(String::new, |file| format!(" in {}", file.display()));
    let failure =
        Failure::new(Exit::NotFound, "unknown-source", format!("there is no source for `{name}`{file}"));
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    failure.line("known", known).fix(format!(
        "add it to the configuration:    [sources.{name}]\n\
         or sign with a secret of yours:  --secret-env VARIABLE"
    ))
}

fn secret(
    provider: &Provider,
    args: &SecretArgs,
    configured: Option<&SourceConfig>,
    to: Option<&str>,
    config: &Config,
) -> Result<(Option<Secret>, String)> {
    if !provider.needs_secret() {
        return Ok((None, "nothing: this provider does not sign".to_owned()));
    }
    if let Some(variable) = &args.secret_env {
        return Ok((Some(from_variable(variable)?), format!("the secret in ${variable}")));
    }
    if let Some(source) = configured {
        let secret = source.secrets.first().cloned();
        return Ok((secret, format!("the secret of source `{}`", source.name)));
    }
    match secrets::dev_secret(config, provider)? {
        Some((secret, from)) => Ok((Some(secret), from)),
        None => Err(no_dev_secret(to, config).into()),
    }
}

fn from_variable(variable: &str) -> Result<Secret> {
    let value = std::env::var_os(variable).ok_or_else(|| {
        Failure::new(Exit::Usage, "no-secret", format!("the environment variable `{variable}` is not set"))
            .fix(format!("export {variable}=..."))
    })?;
    Secret::new(value.as_bytes()).map_err(|error| {
        let message = format!("the environment variable `{variable}` holds no secret: {error}");
        Failure::new(Exit::Refused, "bad-secret", message).fix(error.fix()).into()
    })
}

/// Dev secrets are made when a server starts for the first time.
fn no_dev_secret(to: Option<&str>, config: &Config) -> Failure {
    let data = config.data.display();
    match to {
        Some(to) => Failure::new(Exit::Usage, "no-secret", format!("no secret is known for {to}"))
            .fix("name the variable that holds it: --secret-env VARIABLE"),
        None => Failure::new(Exit::Unreachable, "not-reachable", format!("no server has run yet on {data}"))
            .fix(
                "start one in another terminal:  hookstead serve\nor name its data folder:        --data DIR",
            ),
    }
}
