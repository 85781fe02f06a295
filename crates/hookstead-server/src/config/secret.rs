//! Secrets by reference: an environment variable, a file, or a systemd credential. A secret never stands in
//! the configuration itself, so that the file can be shown, copied and committed.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookstead_verify::{SECRET_BYTES_MAX, Secret, SecretCoding};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::environment::Environment;
use super::keys::KEYS;
use super::reader::{Section, kind};

const FORMS: &str = "write { env = \"NAME\" }, { file = \"/path\" } or { credential = \"NAME\" }";

/// The key beside a reference that says how the key is read from the secret.
const DECODE: &str = "decode";

/// The keys of a source whose texts are no secrets, even where they are wrong.
const HARMLESS: [&str; 12] = [
    "provider",
    "scheme",
    "tolerance",
    "identity",
    "type",
    "on_conflict",
    "body_reuse",
    "body",
    "rate",
    "success_status",
    "success_body",
    "success_type",
];

/// The keys of a destination whose texts are no secrets, even where they are wrong.
const HARMLESS_OF_DESTINATIONS: [&str; 15] = [
    "pull",
    "exec",
    "sources",
    "types",
    "equals",
    "timeout",
    "allow_private",
    "ca_file",
    "retry",
    "max_attempts",
    "max_age",
    "concurrency",
    "rate",
    "lease",
    "on_410",
];

/// The tables of the file, beside those of sources and destinations, whose texts are no secrets.
const HARMLESS_TABLES: [&str; 4] = ["server", "store", "limits", "observability"];

/// The places of all texts that may be secrets: they stand where none should, under `secret` or under a key
/// that nobody knows.
pub(crate) fn suspects(root: &DeTable<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (name, value) in root {
        match (name.get_ref().as_ref(), value.get_ref()) {
            (name, _) if HARMLESS_TABLES.contains(&name) => {}
            ("sources", DeValue::Table(sources)) => {
                sources.values().for_each(|source| suspects_of_table(source, &HARMLESS, &mut found));
            }
            ("destinations", DeValue::Table(destinations)) => {
                let suspects = |destination| {
                    suspects_of_table(destination, &HARMLESS_OF_DESTINATIONS, &mut found);
                };
                destinations.values().for_each(suspects);
            }
            _ => texts(value, &mut found),
        }
    }
    found
}

fn suspects_of_table(value: &Spanned<DeValue<'_>>, harmless: &[&str], found: &mut Vec<Range<usize>>) {
    let DeValue::Table(table) = value.get_ref() else { return texts(value, found) };
    for (key, value) in table {
        match (key.get_ref().as_ref(), value.get_ref()) {
            (key, _) if harmless.contains(&key) => {}
            // An address is shown, unless a password or a token may stand in it.
            ("push", DeValue::String(url)) if !url.contains(['@', '?']) => {}
            (_, DeValue::Table(_)) if entry(value).is_ok() => {}
            (_, DeValue::Array(items)) => {
                let wrong = items.iter().filter(|item| entry(item).is_err());
                wrong.for_each(|item| texts(item, found));
            }
            _ => texts(value, found),
        }
    }
}

/// Every text in a value, but for the names in references.
fn texts(value: &Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            let named = |key: &str| matches!(key, "env" | "file" | "credential");
            let others = table.iter().filter(|(key, _)| !named(key.get_ref().as_ref()));
            others.for_each(|(_, value)| texts(value, found));
        }
        DeValue::Array(items) => items.iter().for_each(|item| texts(item, found)),
        DeValue::String(_) => found.push(value.span()),
        _ => {}
    }
}

/// The values of all lines that are no TOML and not plainly harmless: a secret without quotation marks.
pub(crate) fn suspects_of_text(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let value = |line: &str| {
        let begin = at;
        at += line.len();
        let (key, _) = line.split_once('=')?;
        let is_secret = |key: &str| key == "secret" || key == "secrets";
        let harmless = KEYS.iter().any(|known| known.name == key.trim() && !is_secret(known.name));
        (!harmless).then(|| begin + key.len() + 1..begin + line.trim_end().len())
    };
    text.split_inclusive('\n').filter_map(value).collect()
}

/// Where a secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretReference {
    /// In an environment variable.
    Environment(String),
    /// In a file; relative paths count from the folder of the configuration.
    File(PathBuf),
    /// In a file of `$CREDENTIALS_DIRECTORY`, as systemd's `LoadCredential=` makes them.
    Credential(String),
}

impl fmt::Display for SecretReference {
    /// As in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "{{ env = {name:?} }}"),
            Self::File(path) => write!(f, "{{ file = {:?} }}", path.display().to_string()),
            Self::Credential(name) => write!(f, "{{ credential = {name:?} }}"),
        }
    }
}

/// A secret as it is written in a source: where it is kept, and how its key is read where that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    /// Where it is kept.
    pub reference: SecretReference,
    /// How its key is read from its text, instead of as the provider's record says.
    pub decode: Option<SecretCoding>,
}

impl From<SecretReference> for SecretEntry {
    /// Read as the provider's record says.
    fn from(reference: SecretReference) -> Self {
        Self { reference, decode: None }
    }
}

impl fmt::Display for SecretEntry {
    /// As in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reference = self.reference.to_string();
        match self.decode {
            None => f.write_str(&reference),
            Some(coding) => {
                let open = reference.strip_suffix(" }").unwrap_or(&reference);
                write!(f, "{open}, decode = {:?} }}", coding.word())
            }
        }
    }
}

/// A secret, where it came from, and where that is written.
#[derive(Clone, Debug)]
pub(crate) struct FoundSecret {
    pub(crate) entry: SecretEntry,
    pub(crate) secret: Secret,
    pub(crate) span: Range<usize>,
}

/// What secrets are looked up in.
pub(crate) struct Lookup<'a> {
    pub(crate) environment: &'a Environment,
    /// The folder of the configuration file.
    pub(crate) folder: &'a Path,
}

/// Why a reference gives no secret: what, and the fix.
struct Fault {
    what: String,
    fix: String,
    /// Where it is, if that is only a part of the reference.
    span: Option<Range<usize>>,
}

fn fault(what: impl Into<String>, fix: impl Into<String>) -> Fault {
    Fault { what: what.into(), fix: fix.into(), span: None }
}

impl Lookup<'_> {
    /// The secrets of a source or destination: those of `secret` and `secrets`. `None` if there was a problem with any.
    pub(crate) fn secrets(&self, section: &Section<'_>) -> Option<Vec<FoundSecret>> {
        let mut values = Vec::new();
        if let Some(value) = section.value("secret") {
            values.push(value);
        }
        if let Some(value) = section.value("secrets") {
            match value.get_ref() {
                DeValue::Array(items) => values.extend(items.iter()),
                other => {
                    let what = format!("expected a list of secrets, found {}", kind(other));
                    section.findings.at(
                        &value.span(),
                        &section.key("secrets"),
                        what,
                        "write secret = { env = .. } for one",
                    );
                    return None;
                }
            }
        }
        if section.value("secret").is_some() && section.value("secrets").is_some() {
            let fix = "write all of them in `secrets = [..]`";
            section.findings.at(
                &section.key_span("secrets"),
                &section.key("secrets"),
                "both `secret` and `secrets`",
                fix,
            );
        }
        let found: Vec<_> = values.into_iter().map(|value| self.secret(section, value)).collect();
        found.into_iter().collect()
    }

    fn secret(&self, section: &Section<'_>, value: &Spanned<DeValue<'_>>) -> Option<FoundSecret> {
        let result = entry(value).and_then(|entry| {
            let secret = self.resolve(&entry.reference)?.decoded_as(entry.decode);
            Ok(FoundSecret { entry, secret, span: value.span() })
        });
        match result {
            Ok(found) => Some(found),
            Err(Fault { what, fix, span }) => {
                let span = span.unwrap_or_else(|| value.span());
                section.findings.at(&span, &section.key("secret"), what, fix);
                None
            }
        }
    }

    /// A text that may stand in the configuration itself, or where a reference says.
    pub(crate) fn text(
        &self,
        section: &Section<'_>,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<String> {
        if let DeValue::String(text) = value.get_ref() {
            return Some(text.to_string());
        }
        let resolved = reference(value.get_ref()).and_then(|reference| self.resolve(&reference));
        let text = resolved.and_then(|secret| {
            let text = std::str::from_utf8(secret.expose()).map(str::to_owned);
            text.map_err(|_| fault("this is no text", ""))
        });
        text.map_err(|Fault { what, fix, .. }| {
            section.findings.at(&value.span(), &section.key(name), what, fix);
        })
        .ok()
    }

    fn resolve(&self, reference: &SecretReference) -> Result<Secret, Fault> {
        let bytes = match reference {
            SecretReference::Environment(name) => self.of_variable(name)?,
            SecretReference::File(path) => from_file(&self.folder.join(path))?,
            SecretReference::Credential(name) => {
                let folder = self.environment.path("CREDENTIALS_DIRECTORY").ok_or_else(|| {
                    let fix = format!("in the unit: LoadCredential={name}:/path/of/the/secret");
                    fault("there are no credentials: $CREDENTIALS_DIRECTORY is not set", fix)
                })?;
                from_file(&folder.join(name))?
            }
        };
        Secret::new(bytes).map_err(|error| fault(error.to_string(), error.fix()))
    }

    fn of_variable(&self, name: &str) -> Result<Vec<u8>, Fault> {
        match self.environment.raw(name) {
            Some(value) => Ok(value.as_bytes().to_vec()),
            None => Err(fault(
                format!("the environment variable `{name}` is not set"),
                format!("export {name}=... before the server starts"),
            )),
        }
    }
}

fn reference(value: &DeValue<'_>) -> Result<SecretReference, Fault> {
    let table = match value {
        DeValue::Table(table) => table,
        DeValue::String(_) => {
            return Err(fault("a secret does not stand in the configuration itself", FORMS));
        }
        other => {
            return Err(fault(format!("expected a reference to a secret, found {}", kind(other)), FORMS));
        }
    };
    place(table.iter())
}

/// A reference, and beside it how the key is read from what is there.
fn entry(value: &Spanned<DeValue<'_>>) -> Result<SecretEntry, Fault> {
    let DeValue::Table(table) = value.get_ref() else {
        return reference(value.get_ref()).map(SecretEntry::from);
    };
    let reference = place(table.iter().filter(|(key, _)| key.get_ref() != DECODE))?;
    let decode = table.get(DECODE).map(coding).transpose()?;
    Ok(SecretEntry { reference, decode })
}

/// The word is not repeated: it may be a secret that was put in the wrong place.
fn coding(value: &Spanned<DeValue<'_>>) -> Result<SecretCoding, Fault> {
    let coding = value.get_ref().as_str().and_then(SecretCoding::from_word);
    coding.ok_or_else(|| {
        let words = SecretCoding::ALL.map(|coding| format!("{:?}", coding.word())).join(", ");
        let fix = format!("write one of {words}, or leave it out: then the provider's record says it");
        let what = "this is no way to read a key from a secret";
        Fault { span: Some(value.span()), ..fault(what, fix) }
    })
}

/// The one place that is named.
fn place<'t, 'd: 't>(
    mut entries: impl Iterator<Item = (&'t Spanned<DeString<'d>>, &'t Spanned<DeValue<'d>>)>,
) -> Result<SecretReference, Fault> {
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        return Err(fault("a reference names one place", FORMS));
    };
    let DeValue::String(name) = value.get_ref() else {
        return Err(fault(format!("expected a text, found {}", kind(value.get_ref())), FORMS));
    };
    match key.get_ref().as_ref() {
        "env" => Ok(SecretReference::Environment(name.to_string())),
        "file" => Ok(SecretReference::File(PathBuf::from(name.as_ref()))),
        "credential" if !name.is_empty() && !name.contains('/') && !name.starts_with('.') => {
            Ok(SecretReference::Credential(name.to_string()))
        }
        "credential" => Err(fault("a credential is a name, not a path", "use { file = .. } for a path")),
        other => Err(fault(format!("a secret is kept in no `{other}`"), FORMS)),
    }
}

/// The content of a secret file, without the one line end that editors and `echo` put at the end of a file.
fn from_file(path: &Path) -> Result<Vec<u8>, Fault> {
    let unreadable = |error: &io::Error| fault(format!("cannot read `{}`: {error}", path.display()), "");
    let file = fs::File::open(path).map_err(|error| unreadable(&error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if metadata.permissions().mode() & 0o007 != 0 {
        let what = format!("`{}` can be read or written by every user of this machine", path.display());
        return Err(fault(what, format!("chmod o= '{}', or mount it with mode 0400", path.display())));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, and a line end: then Secret::new() sees that it is too long.
    file.take(SECRET_BYTES_MAX as u64 + 3).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}
