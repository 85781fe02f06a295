//! Where the secret of a source is kept, from the command line: an environment variable, a file that is there, or a new
//! file beside the configuration for a secret that is entered or made now. The secret itself is never an argument.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use hookstead_server::config::{SecretEntry, SecretReference};
use hookstead_verify::{ChosenBy, Provider, Secret, SecretCoding};
use toml::Value;

use super::new_secret::{self, NewSecret};
use crate::config_file::{Changed, ConfigFile};
use crate::failure::{Exit, Failure};
use crate::replace::{Left, folder_of, sync_folder};

/// The most files of earlier secrets of a source beside its configuration, before one has to be named.
const FILES_MAX: usize = 99;

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
    /// Read the secret from stdin and write it to a new file beside the configuration.
    #[arg(long, visible_alias = "secret-stdin")]
    stdin: bool,
    /// Make a random secret and write it to this new file, or one beside the configuration; where you choose it.
    #[arg(long, value_name = "FILE", num_args = 0..=1, visible_alias = "secret-generate")]
    #[expect(clippy::option_option, reason = "the option may be absent, bare, or with a file")]
    generate: Option<Option<PathBuf>>,
}

/// For which source a secret is wanted.
pub(super) struct Wanted<'a> {
    pub(super) source: &'a str,
    pub(super) provider: &'a Provider,
    /// The folder of the configuration, where new files go.
    pub(super) folder: &'a Path,
    /// How the key is read from the secret, instead of as the record says.
    pub(super) decode: Option<SecretCoding>,
}

/// A word of `--decode`.
pub(super) fn coding(word: &str) -> Result<SecretCoding, String> {
    let words = || SecretCoding::ALL.map(SecretCoding::word).join(", ");
    SecretCoding::from_word(word).ok_or_else(|| format!("write one of {}", words()))
}

/// A reference for the configuration. Until it is [put in](Self::put_in), a file that was written for it is removed again.
#[derive(Default)]
pub(super) struct Reference {
    pub(super) entry: Option<SecretEntry>,
    /// Whether the secret was made up here.
    pub(super) made_up: bool,
    /// What is odd about the secret.
    pub(super) warning: Option<String>,
    written: Option<PathBuf>,
}

impl ReferenceArgs {
    /// The reference, with its secret made or asked for. Where a source can do without one, nothing may be named.
    pub(super) fn make(&self, wanted: &Wanted<'_>) -> Result<Reference> {
        if let Some(variable) = &self.env {
            return Ok(wanted.kept_in(SecretReference::Environment(variable.clone())));
        }
        if let Some(file) = &self.file {
            return Ok(wanted.kept_in(SecretReference::File(absolute(file)?)));
        }
        let Wanted { provider, decode, .. } = *wanted;
        if let Some(file) = &self.generate {
            return wanted.keep(&new_secret::make_up(provider, decode)?, file.clone());
        }
        if self.stdin {
            return wanted.keep(&new_secret::from_stdin(provider, decode)?, None);
        }
        if !provider.needs_secret() || provider.hands_over_secret() {
            return Ok(Reference::default());
        }
        if !io::stdin().is_terminal() {
            return Err(none_named(wanted).into());
        }
        wanted.keep(&new_secret::ask(wanted.source, provider, decode)?, None)
    }
}

impl Wanted<'_> {
    /// The secret that is there already.
    fn kept_in(&self, reference: SecretReference) -> Reference {
        let entry = Some(SecretEntry { reference, decode: self.decode });
        Reference { entry, made_up: false, warning: None, written: None }
    }

    /// Writes a secret to a new file.
    fn keep(&self, new: &NewSecret, file: Option<PathBuf>) -> Result<Reference> {
        let file = match file {
            Some(file) => file,
            None => self.new_file()?,
        };
        let reference = SecretReference::File(absolute(&file)?);
        write(&file, &new.secret)?;
        let warning = new_secret::warning(self.provider, &new.secret);
        let mut reference = self.kept_in(reference);
        (reference.written, reference.made_up, reference.warning) = (Some(file), new.made_up, warning);
        Ok(reference)
    }

    /// A file beside the configuration that is not there yet: `NAME.secret`, `NAME-2.secret` and so on.
    fn new_file(&self) -> Result<PathBuf> {
        let source = self.source;
        let names = (2..=FILES_MAX).map(|number| format!("{source}-{number}.secret"));
        let mut files = std::iter::once(format!("{source}.secret")).chain(names);
        // A name that cannot be one of a source must not lead out of the folder; what is wrong with it is told later.
        let is_name = !source.contains(['/', '\\']) && !source.starts_with('.');
        let free = files.find(|name| is_name && !self.folder.join(name).exists());
        free.map(|name| self.folder.join(name)).ok_or_else(|| {
            let message = format!("no new file for the secret of `{source}` beside the configuration");
            Failure::new(Exit::Usage, "no-file", message)
                .fix("write the secret to a file of yours, and name it: --file FILE")
                .into()
        })
    }
}

/// A secret as it is written in the configuration.
pub(super) fn written(entry: &SecretEntry) -> Value {
    let (place, text) = match &entry.reference {
        SecretReference::Environment(name) => ("env", name.clone()),
        SecretReference::File(path) => ("file", path.display().to_string()),
        SecretReference::Credential(name) => ("credential", name.clone()),
    };
    let decode = entry.decode.map(|coding| ("decode", coding.word().to_owned()));
    let keys = [(place, text)].into_iter().chain(decode);
    Value::Table(keys.map(|(key, text)| (key.to_owned(), Value::from(text))).collect())
}

impl Reference {
    /// Changes the configuration so that it names this: what became of it, and the file that was written for the secret.
    /// If the change fails, that file stays where the configuration may name it all the same: a start without it would
    /// refuse the whole configuration.
    pub(super) fn put_in(mut self, config: ConfigFile, text: &str) -> Result<(Changed, Option<PathBuf>)> {
        let failed = match config.change(text) {
            Ok(changed) => return Ok((changed, self.written.take())),
            Err(failed) => failed,
        };
        if failed.file == Left::Unknown
            && let Some(file) = self.written.take()
        {
            let kept = format!("the new secret is in {}, which the configuration may name", file.display());
            return Err(failed.noting("kept", kept).into());
        }
        Err(failed.into())
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        if let Some(file) = &self.written {
            // It was written a moment ago, for a change that was refused; the refusal is what is reported.
            drop(fs::remove_file(file));
        }
    }
}

/// There is no secret, and nobody to ask.
fn none_named(wanted: &Wanted<'_>) -> Failure {
    let Wanted { source, provider, .. } = wanted;
    let message = format!("no secret of `{source}` is named, and there is no terminal to ask at");
    let failure = Failure::new(Exit::Usage, "no-secret", message);
    let failure = match provider.secret().place.as_str() {
        "" => failure,
        place => failure.line("where", format!("{}: {place}", provider.title())),
    };
    let make = match provider.secret().chosen_by {
        Some(ChosenBy::Provider) => "",
        _ if !provider.shares_secret() => "",
        _ => "\nor have one made:           --secret-generate",
    };
    failure.fix(format!(
        "pipe it in:                 --secret-stdin < FILE\n\
         or say where it is kept:    --file FILE, or --env VARIABLE{make}"
    ))
}

/// The configuration may stand elsewhere than we do.
fn absolute(file: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(file)?)
}

/// Makes a file for the secret, and has it on the disk under its name; of one that cannot be, nothing stays.
fn write(file: &Path, secret: &Secret) -> Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut made = made.map_err(|error| {
        not_written(file, &error).fix("name a file that is not there yet, where you may write")
    })?;
    let written = made.write_all(secret.expose()).and_then(|()| made.sync_all());
    // Its name is to be on the disk before the configuration is, which may be in another folder.
    written.and_then(|()| sync_folder(folder_of(file))).map_err(|error| half_written(file, &error).into())
}

/// The file was made here, for nothing.
fn half_written(file: &Path, error: &io::Error) -> Failure {
    let failure = not_written(file, error);
    match fs::remove_file(file) {
        Ok(()) => failure.fix("see that there is room on a disk that works; nothing was left behind"),
        Err(left) => failure.fix(format!("remove what is left of it, which could not be: {left}")),
    }
}

fn not_written(file: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write the new secret to {}: {error}", file.display());
    Failure::new(Exit::Failed, "not-written", message)
}
