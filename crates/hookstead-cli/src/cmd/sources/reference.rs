//! Where the secret of a source is kept, from the command line: an environment variable, a file, or a file with a
//! secret that is made now. The secret itself is never an argument: those can be read by every user of a machine.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use hookstead_server::dev;
use hookstead_verify::{ChosenBy, Provider};
use toml::{Table, Value};

use crate::failure::{Exit, Failure};

/// Where the secret is.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct ReferenceArgs {
    /// The environment variable that holds the secret, also here and now.
    #[arg(long, value_name = "VARIABLE")]
    env: Option<String>,
    /// The file that holds the secret.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Make a random secret and write it to this new file, for providers that take one of yours.
    #[arg(long, value_name = "FILE", visible_alias = "secret-generate")]
    generate: Option<PathBuf>,
}

/// A reference for the configuration. Until it is kept, a file that was made for it is removed again.
pub(super) struct Reference {
    pub(super) value: Option<Value>,
    made: Option<PathBuf>,
}

impl ReferenceArgs {
    /// The reference, with its secret made if that is asked for.
    pub(super) fn make(&self, provider: &Provider) -> Result<Reference> {
        let entry =
            |key: &str, text: String| Value::Table(Table::from_iter([(key.to_owned(), Value::from(text))]));
        if let Some(variable) = &self.env {
            return Ok(Reference { value: Some(entry("env", variable.clone())), made: None });
        }
        if let Some(file) = &self.file {
            return Ok(Reference { value: Some(entry("file", absolute(file)?)), made: None });
        }
        let Some(file) = &self.generate else { return Ok(Reference { value: None, made: None }) };
        write(file, &made_up(provider)?)?;
        Ok(Reference { value: Some(entry("file", absolute(file)?)), made: Some(file.clone()) })
    }
}

impl Reference {
    /// The file that was made; it stays from now on.
    pub(super) fn keep(mut self) -> Option<PathBuf> {
        self.made.take()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        if let Some(file) = &self.made {
            // It was made a moment ago, for a change that was refused; the refusal is what is reported.
            drop(fs::remove_file(file));
        }
    }
}

/// A random secret of a provider's form; refused where it signs with a key that only it has.
pub(super) fn made_up(provider: &Provider) -> Result<String> {
    if !provider.shares_secret() {
        let message = format!("{} signs with a key of its own: nobody can make one up", provider.title());
        return Err(Failure::new(Exit::Usage, "no-secret", message)
            .fix("give its public key, in a file or by --stdin")
            .into());
    }
    if provider.secret().chosen_by == Some(ChosenBy::Provider) {
        return Err(given_by(provider).into());
    }
    Ok(dev::make(provider)?)
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

/// The configuration may stand elsewhere than we do.
fn absolute(file: &Path) -> Result<String> {
    Ok(std::path::absolute(file)?.display().to_string())
}

fn write(file: &Path, secret: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| {
        opened.write_all(secret.as_bytes())?;
        opened.sync_all()
    });
    written.map_err(|error| {
        let message = format!("cannot write the new secret to {}: {error}", file.display());
        Failure::new(Exit::Failed, "not-written", message).fix("name a file that is not there yet").into()
    })
}
