//! A secret that a source is to have from now on: typed by a person, read from stdin, or made up here, and known to be
//! of its provider's form, or of the coding that is named beside it. It is never an argument: those can be read by every user of a machine. Knows nothing of
//! where the secret is put.

use anyhow::Result;
use hookstead_server::dev;
use hookstead_verify::{ChosenBy, Provider, Secret, SecretCoding, SecretError};

use super::entered;
use crate::failure::{Exit, Failure};

/// A secret that its provider's record takes.
pub(super) struct NewSecret {
    pub(super) secret: Secret,
    /// Whether it was made up here, so that it has still to be entered at the provider.
    pub(super) made_up: bool,
}

/// Asks for the secret of `source` at the terminal, and shows nothing of it. Where its owner chooses it, nothing typed
/// means that one is made up.
pub(super) fn ask(source: &str, provider: &Provider, decode: Option<SecretCoding>) -> Result<NewSecret> {
    let place = match provider.secret().place.as_str() {
        "" => String::new(),
        place => format!(" ({place})"),
    };
    let is_ours = provider.secret().chosen_by == Some(ChosenBy::You);
    let offer = if is_ours { ", empty to have one made" } else { "" };
    let typed = entered::at_terminal(&format!("new secret of `{source}`{place}{offer}, not shown:"))?;
    if typed.is_empty() && is_ours { make_up(provider, decode) } else { checked(typed, provider, decode) }
}

/// All of stdin is the secret.
pub(super) fn from_stdin(provider: &Provider, decode: Option<SecretCoding>) -> Result<NewSecret> {
    checked(entered::from_stdin()?, provider, decode)
}

/// A random secret of the provider's form; refused where it signs with a key that only it has, or makes the secret.
pub(super) fn make_up(provider: &Provider, decode: Option<SecretCoding>) -> Result<NewSecret> {
    if !provider.shares_secret() {
        let message = format!("{} signs with a key of its own: nobody can make one up", provider.title());
        return Err(Failure::new(Exit::Usage, "no-secret", message)
            .fix("give its public key, in a file or by --stdin")
            .into());
    }
    if provider.secret().chosen_by == Some(ChosenBy::Provider) {
        return Err(given_by(provider).into());
    }
    let made = checked(dev::make_read_as(provider, decode)?.into_bytes(), provider, decode)?;
    Ok(NewSecret { made_up: true, ..made })
}

/// What is odd about a secret that may be one all the same.
pub(super) fn warning(provider: &Provider, secret: &Secret) -> Option<String> {
    let prefix = provider.secret().prefix.as_str();
    let odd = !secret.expose().starts_with(prefix.as_bytes());
    odd.then(|| format!("it does not begin with `{prefix}`, as secrets of {} do", provider.title()))
}

fn checked(bytes: Vec<u8>, provider: &Provider, decode: Option<SecretCoding>) -> Result<NewSecret> {
    let secret = Secret::new(bytes)
        .map(|secret| secret.decoded_as(decode))
        .and_then(|secret| provider.check_secret(&secret).map(|()| secret));
    match secret {
        Ok(secret) => Ok(NewSecret { secret, made_up: false }),
        Err(error) => Err(no_secret(&error, provider).into()),
    }
}

fn no_secret(error: &SecretError, provider: &Provider) -> Failure {
    let failure = Failure::new(Exit::Refused, "no-secret", format!("{error}; nothing was changed"));
    match provider.secret().place.as_str() {
        "" => failure.fix(error.fix()),
        place => failure.fix(format!("{}\nat {}: {place}", error.fix(), provider.title())),
    }
}

/// A secret that is made here is of no use where the provider makes it: nothing can be entered there.
fn given_by(provider: &Provider) -> Failure {
    let title = provider.title();
    let message = format!("{title} makes the secret itself: none that is made here can be entered there");
    let fix = match provider.secret().place.as_str() {
        _ if provider.hands_over_secret() => format!("name none: {title} hands it over when it first calls"),
        "" => format!("copy it from {title}"),
        place => format!("copy it from {title}: {place}"),
    };
    Failure::new(Exit::Refused, "given-by-provider", message).fix(fix)
}
