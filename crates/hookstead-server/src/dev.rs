//! Dev mode: a source for each built-in provider, with a secret of its own, so that the first request of a
//! newcomer is really verified.
//!
//! The secrets are random, made at first start, and kept in the data folder for its owner alone. They hold
//! for loopback only; a server that is open to the network takes its sources from a configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead::verify::{ChosenBy, IdentityRule, Provider, Registry, Secret, SecretCoding};
use hookstead::{OnConflict, SourceName};

use crate::config::{Environment, SecretReference, SourceConfig};
use crate::folder::{self, FolderError, random, read_private, write_private};

/// The file with the secrets, in the data folder: provider to secret, in TOML.
pub const DEV_SECRETS_FILE: &str = "dev-secrets.toml";

/// Bytes of randomness in a secret: what Standard Webhooks asks for.
const SECRET_BYTES: usize = 32;

/// The dev secrets of a data folder, by provider.
#[derive(Clone, Debug)]
pub struct DevSecrets(BTreeMap<String, Secret>);

impl DevSecrets {
    /// Reads the secrets, and makes and keeps those of providers that have none yet.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, is damaged, or is open to others.
    pub fn open(data: &Path) -> Result<Self, FolderError> {
        folder::prepare(data)?;
        let path = data.join(DEV_SECRETS_FILE);
        let damaged = |what: String| FolderError::Damaged { path: path.clone(), what };
        let text = read_private(&path)?.unwrap_or_default();
        let mut texts: BTreeMap<String, String> =
            toml::from_str(&text).map_err(|error| damaged(error.message().to_owned()))?;
        let known = texts.len();
        for provider in providers() {
            if !texts.contains_key(provider.name()) {
                let doing = "cannot make a secret for";
                let made =
                    make(provider).map_err(|source| FolderError::Io { doing, path: path.clone(), source })?;
                texts.insert(provider.name().to_owned(), made);
            }
        }
        if texts.len() > known {
            let head =
                "# Secrets of dev mode. Random, for this machine only; remove the file to have new ones.\n";
            let body = toml::to_string(&texts).map_err(|error| damaged(error.to_string()))?;
            write_private(&path, &format!("{head}{body}"))?;
        }
        let secret = |(name, text): (String, String)| match Secret::new(text) {
            Ok(secret) => Ok((name, secret)),
            Err(error) => Err(damaged(format!("`{name}`: {error}"))),
        };
        texts.into_iter().map(secret).collect::<Result<_, _>>().map(Self)
    }

    /// The secret of a provider.
    pub fn get(&self, provider: &str) -> Option<&Secret> {
        self.0.get(provider)
    }
}

/// The secret that a dev server uses for a provider: `<PROVIDER>_WEBHOOK_SECRET` if that is set (also the
/// variable that the provider's record names), else the dev secret.
pub fn secret_for(
    provider: &Provider,
    secrets: &DevSecrets,
    environment: &Environment,
) -> Option<(Secret, SecretReference)> {
    let own = format!("{}_WEBHOOK_SECRET", provider.name().to_ascii_uppercase().replace('-', "_"));
    let names = [own, provider.secret().env.clone()];
    let from_environment = names.into_iter().find_map(|name| {
        let text = environment.raw(&name).filter(|text| !text.is_empty())?;
        let secret = Secret::new(text.as_encoded_bytes()).and_then(|secret| {
            provider.check_secret(&secret)?;
            Ok(secret)
        });
        match secret {
            Ok(secret) => Some((secret, SecretReference::Environment(name))),
            Err(error) => {
                tracing::warn!(variable = name, error = %error, "not used as a secret; the dev secret is");
                None
            }
        }
    });
    from_environment.or_else(|| {
        let secret = secrets.get(provider.name())?.clone();
        Some((secret, SecretReference::File(DEV_SECRETS_FILE.into())))
    })
}

/// The sources of dev mode, by name.
pub(crate) fn sources(
    secrets: &DevSecrets,
    environment: &Environment,
    body_bytes_max: u64,
) -> Vec<SourceConfig> {
    let source = |provider: &Arc<Provider>| {
        let (secret, reference) = secret_for(provider, secrets, environment)?;
        let name: SourceName = provider.name().parse().ok()?;
        Some(SourceConfig {
            name,
            provider: provider.clone(),
            secrets: vec![secret],
            secret_entries: vec![reference.into()],
            conf: BTreeMap::new(),
            keys: BTreeMap::new(),
            tolerance_s: None,
            identity: if provider.has_id() { IdentityRule::Provider } else { IdentityRule::Body },
            event_type: None,
            on_conflict: OnConflict::Refuse,
            body_reuse: None,
            body_bytes_max: provider.body_bytes_max().unwrap_or(body_bytes_max),
            rate: None,
            success_status: None,
            success_body: None,
        })
    };
    providers().filter_map(source).collect()
}

/// The names of the sources of dev mode.
pub(crate) fn source_names() -> impl Iterator<Item = &'static str> {
    providers().map(|provider| provider.name())
}

/// Those that check something with nothing but a secret that anybody can make up: a source that does not is never
/// made by itself, and what only its owner knows (a public key, an id of the account) cannot be made up.
fn providers() -> impl Iterator<Item = &'static Arc<Provider>> {
    let asks = |provider: &Provider| provider.conf().any(|(_, _, is_needed)| is_needed);
    Registry::builtin().iter().filter(move |provider| provider.shares_secret() && !asks(provider))
}

/// A random secret in the form that the provider gives out.
///
/// # Errors
///
/// The system gives no random numbers, or no form of secret that can be made up fits the provider.
pub fn make(provider: &Provider) -> io::Result<String> {
    make_read_as(provider, None)
}

/// The same for a secret whose key is read in this way, where it is not the record's.
///
/// # Errors
///
/// Those of [`make`].
pub fn make_read_as(provider: &Provider, coding: Option<SecretCoding>) -> io::Result<String> {
    let facts = provider.secret();
    let bytes = random(facts.bytes_min.max(SECRET_BYTES))?;
    let hexadecimal = format!("{}{}", facts.prefix, hex::encode(&bytes));
    let base64 = format!("{}{}", facts.prefix, STANDARD.encode(&bytes));
    let user_and_password = format!("hookstead:{}", hex::encode(&bytes));
    let forms = match facts.chosen_by {
        // A field in which one is entered may take letters and digits alone, as that of Telegram does.
        Some(ChosenBy::You) => [hexadecimal, base64, user_and_password],
        Some(ChosenBy::Provider) | None => [base64, hexadecimal, user_and_password],
    };
    let fits = |form: &String| {
        let secret = Secret::new(form.as_bytes()).map(|secret| secret.decoded_as(coding));
        secret.is_ok_and(|secret| provider.check_secret(&secret).is_ok())
    };
    let form = forms.into_iter().find(fits);
    form.ok_or_else(|| io::Error::other(format!("no form of secret fits `{}`", provider.name())))
}

/// Whether a data folder has dev secrets.
pub fn has_secrets(data: &Path) -> bool {
    fs::exists(data.join(DEV_SECRETS_FILE)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_gets_a_secret_that_it_accepts() {
        let data = tempfile::tempdir().unwrap();
        let secrets = DevSecrets::open(data.path()).unwrap();
        let again = DevSecrets::open(data.path()).unwrap();
        for provider in providers() {
            let secret = secrets.get(provider.name()).unwrap();
            assert_eq!(provider.check_secret(secret), Ok(()), "{}", provider.name());
            assert_eq!(again.get(provider.name()), Some(secret), "{} changed", provider.name());
        }
        assert!(secrets.get("none").is_none());
        let svix = String::from_utf8_lossy(secrets.get("svix").unwrap().expose()).into_owned();
        assert!(svix.starts_with("whsec_"), "svix");
        let plain = |byte: &u8| byte.is_ascii_alphanumeric();
        assert!(secrets.get("telegram").unwrap().expose().iter().all(plain), "letters and digits alone");
    }

    #[test]
    fn the_environment_wins_unless_its_secret_is_none() {
        let data = tempfile::tempdir().unwrap();
        let secrets = DevSecrets::open(data.path()).unwrap();
        let stripe = Registry::builtin().get("stripe").unwrap();
        let used = |value: &str| {
            let environment = [("STRIPE_WEBHOOK_SECRET", value)].into_iter().collect();
            secret_for(stripe, &secrets, &environment).unwrap().0
        };
        assert_eq!(used("whsec_from_the_environment").expose(), b"whsec_from_the_environment");
        assert_eq!(Some(&used("sk_live_notasecret")), secrets.get("stripe"));
        assert_eq!(Some(&used("")), secrets.get("stripe"));
    }
}
