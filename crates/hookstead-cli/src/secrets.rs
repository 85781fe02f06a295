//! Secrets that hookstead itself makes: those of dev mode, and one for the demo.

use anyhow::{Context, Result};
use hookstead_server::config::{Config, Environment, SecretReference};
use hookstead_server::dev::{self, DevSecrets};
use hookstead_verify::{Provider, Secret};

/// The secret that a dev server on this data folder uses for a provider, and where it is from, for people.
/// `None` where no server has made any yet.
pub(crate) fn dev_secret(config: &Config, provider: &Provider) -> Result<Option<(Secret, String)>> {
    if !dev::has_secrets(&config.data) {
        return Ok(None);
    }
    let secrets = DevSecrets::open(&config.data)?;
    let found = dev::secret_for(provider, &secrets, &Environment::of_process());
    Ok(found.map(|(secret, reference)| {
        let from = match reference {
            SecretReference::Environment(variable) => format!("the secret in ${variable}"),
            _ => format!("the dev secret of `{}`", provider.name()),
        };
        (secret, from)
    }))
}

/// A random secret of the form that Stripe gives out.
pub(crate) fn made_up() -> Result<String> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).ok().context("the system gives no random numbers")?;
    Ok(format!("whsec_{}", hex::encode(bytes)))
}
