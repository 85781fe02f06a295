//! The tables `[destinations.NAME]`: from text to a destination that an inbox can be opened with, but for the
//! signing secrets that are made and kept elsewhere.

use std::num::NonZeroU16;
use std::ops::Range;
use std::time::Duration;

use hookstead::core::lease::LEASE_MAX;
use hookstead::core::{DestinationName, QueryError};
use hookstead::destination::CONCURRENCY_MAX;
use hookstead::sink::exec::EXEC_TIMEOUT_MAX;
use hookstead::sink::push::{
    PUSH_TIMEOUT_DEFAULT, PUSH_TIMEOUT_MAX, PushUrl, Reach, SIGNING_SECRETS_MAX, SigningSecret,
};
use hookstead::{
    Destination, DestinationKind, DestinationOptions, ExecOptions, Filter, OnGone, PushOptions, SourceName,
};
use toml::Spanned;
use toml::de::DeValue;

use super::keys::names;
use super::problem::did_you_mean;
use super::reader::{At, Section, kind};
use super::schedule;
use super::secret::{FoundSecret, Lookup, SecretReference};
use super::settings::Mode;
use super::values::rate;

/// The shortest time that an attempt can be given: enough for a name, a connection and an answer nearby.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// The most parts of a program's command.
const COMMAND_PARTS_MAX: usize = 256;

/// The most variables that a program is given beside hookstead's own.
const VARIABLES_MAX: usize = 64;

/// The keys that say how a destination is reached; one of them stands in each table.
const KINDS: [&str; 3] = ["push", "pull", "exec"];

/// The keys that have a meaning for some kinds only.
const KEYS_OF_KINDS: [(&str, &[&str]); 8] = [
    ("secret", &["push"]),
    ("secrets", &["push"]),
    ("allow_private", &["push"]),
    ("ca_file", &["push"]),
    ("on_410", &["push"]),
    ("environment", &["exec"]),
    ("timeout", &["push", "exec"]),
    ("concurrency", &["push", "exec"]),
];

/// One destination, checked.
#[derive(Clone, Debug)]
pub struct DestinationConfig {
    /// Its name.
    pub name: DestinationName,
    /// How it is reached. The secrets of a push destination are those that the file names; of none named, one is
    /// made and kept in the data folder.
    pub kind: DestinationKind,
    /// What it wants, and how much of it at once.
    pub options: DestinationOptions,
    /// Where its secrets are kept, in the order of the secrets.
    pub secret_references: Vec<SecretReference>,
}

impl DestinationConfig {
    /// Whether its secret is made and kept by the server.
    pub fn needs_secret(&self) -> bool {
        matches!(&self.kind, DestinationKind::Push(push) if push.secrets.is_empty())
    }

    /// The destination, signed with `secret` where the file names none.
    pub(crate) fn made(&self, secret: Option<&SigningSecret>) -> Destination {
        let name = self.name.clone();
        let destination = match &self.kind {
            DestinationKind::Push(push) => {
                let mut push = push.clone();
                if push.secrets.is_empty() {
                    push.secrets.extend(secret.cloned());
                }
                Destination::push(name, push)
            }
            DestinationKind::Exec(exec) => Destination::exec(name, exec.clone()),
            DestinationKind::Pull(_) => Destination::pull(name),
            // No table of the file describes one.
            _ => Destination::consumed(name),
        };
        destination.with(self.options.clone())
    }
}

/// What a destination's table depends on beside itself.
pub(super) struct Surroundings<'a> {
    pub(super) lookup: Lookup<'a>,
    /// The names of all sources, also of those that are wrong in another way.
    pub(super) sources: &'a [&'a str],
    pub(super) mode: Mode,
}

impl Surroundings<'_> {
    /// How far a push may reach: in dev mode the machine itself is where the application is.
    fn reach(&self, allow_private: bool) -> Reach {
        match (allow_private, self.mode) {
            (true, _) => Reach::Private,
            (false, Mode::Dev) => Reach::Loopback,
            (false, Mode::Configured) => Reach::Public,
        }
    }
}

/// Reads every table of `[destinations]`. What is wrong goes to the findings; such a destination is left out.
pub(super) fn read(destinations: &Section<'_>, surroundings: &Surroundings<'_>) -> Vec<DestinationConfig> {
    let read_one = |(name, span, _): (&str, Range<usize>, _)| {
        let section = destinations.section(name);
        match name.parse::<DestinationName>() {
            Ok(name) => destination(name, &section?, surroundings),
            Err(error) => {
                destinations.findings.at(&span, &destinations.key(name), error.to_string(), "");
                None
            }
        }
    };
    destinations.entries().filter_map(read_one).collect()
}

fn destination(
    name: DestinationName,
    section: &Section<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<DestinationConfig> {
    section.check_keys(&names("destinations.*"));
    // Everything is read before anything is given up, so that all mistakes are told at once.
    let word = kind_word(section);
    check_keys_of_kind(section, word);
    let found = surroundings.lookup.secrets(section);
    let secrets = match (word, &found) {
        (Some("push"), Some(found)) => secrets(section, found),
        _ => Some(Vec::new()),
    };
    let kind = word.and_then(|word| kind_of(section, word, surroundings));
    let filter = filter(section, surroundings.sources);
    let retry = schedule::retry(section);
    let concurrency = section.integer("concurrency", 1..=CONCURRENCY_MAX.into());
    let rate = section.parsed("rate", rate_per_s);
    let lease = section.duration("lease", Duration::from_secs(1)..=LEASE_MAX);
    let defaults = DestinationOptions::default();
    let options = DestinationOptions {
        filter: filter?,
        retry: retry?,
        concurrency: concurrency.and_then(|at| small(at.value)).unwrap_or(defaults.concurrency),
        lease_for: lease.map(|at| at.value),
        rate_per_s: rate.map(|at| at.value),
    };
    let (mut kind, found) = (kind?, found?);
    if let DestinationKind::Push(push) = &mut kind {
        push.secrets = secrets?;
    }
    let secret_references = found.into_iter().map(|found| found.entry.reference).collect();
    Some(DestinationConfig { name, kind, options, secret_references })
}

/// `"50/s"`: attempts are counted by the second.
fn rate_per_s(text: &str) -> Result<NonZeroU16, String> {
    let asked = rate(text)?;
    let per_second = asked.per == Duration::from_secs(1);
    per_second
        .then(|| small(asked.requests.into()))
        .flatten()
        .ok_or_else(|| format!("is no rate of a destination; write \"1/s\" to \"{}/s\"", u16::MAX))
}

fn small(value: u64) -> Option<NonZeroU16> {
    u16::try_from(value).ok().and_then(NonZeroU16::new)
}

/// Which of the kinds a table is: exactly one stands in it.
fn kind_word(section: &Section<'_>) -> Option<&'static str> {
    let mut given = KINDS.into_iter().filter(|kind| section.value(kind).is_some());
    match (given.next(), given.next()) {
        (Some(one), None) => Some(one),
        (Some(one), Some(other)) => {
            let what = format!("both `{one}` and `{other}`");
            section.findings.at(&section.key_span(other), &section.key(other), what, "keep one");
            None
        }
        (None, _) => {
            let what = "nothing says how this destination is reached";
            let fix =
                "write push = \"https://HOST/PATH\", pull = true, or exec = [\"PROGRAM\", \"ARGUMENT\"]";
            section.findings.at(&section.span, &section.path, what, fix);
            None
        }
    }
}

fn check_keys_of_kind(section: &Section<'_>, word: Option<&str>) {
    let Some(word) = word else { return };
    for (key, kinds) in KEYS_OF_KINDS {
        if section.value(key).is_some() && !kinds.contains(&word) {
            let what = format!(
                "`{key}` has no meaning for {} {word} destination",
                if word == "exec" { "an" } else { "a" }
            );
            section.findings.at(&section.key_span(key), &section.key(key), what, "remove it");
        }
    }
}

/// What pushes are signed with.
fn secrets(section: &Section<'_>, found: &[FoundSecret]) -> Option<Vec<SigningSecret>> {
    if found.len() > SIGNING_SECRETS_MAX {
        let what = format!("a push is signed with at most {SIGNING_SECRETS_MAX} secrets");
        section.findings.at(&section.key_span("secrets"), &section.key("secrets"), what, "remove the oldest");
        return None;
    }
    let read = |found: &FoundSecret| {
        if found.entry.decode.is_some() {
            let what = "the secrets of a destination are all read in one way";
            section.findings.at(&found.span, &section.key("secret"), what, "remove `decode` beside it");
            return None;
        }
        let text = String::from_utf8_lossy(found.secret.expose());
        match SigningSecret::parse(&text) {
            Ok(secret) => Some(secret),
            Err(error) => {
                section.findings.at(&found.span, &section.key("secret"), error.to_string(), error.fix());
                None
            }
        }
    };
    // All of them, so that all mistakes are told.
    let secrets: Vec<_> = found.iter().map(read).collect();
    secrets.into_iter().collect()
}

fn kind_of(section: &Section<'_>, word: &str, surroundings: &Surroundings<'_>) -> Option<DestinationKind> {
    let timeout_max = if word == "exec" { EXEC_TIMEOUT_MAX } else { PUSH_TIMEOUT_MAX };
    let timeout = section.duration("timeout", TIMEOUT_MIN..=timeout_max).map(|at| at.value);
    match word {
        "push" => {
            let reach = surroundings.reach(section.boolean("allow_private").unwrap_or(false));
            let on_gone = section.parsed("on_410", on_gone);
            let ca_file = section.text("ca_file").map(|at| surroundings.lookup.folder.join(at.value));
            Some(DestinationKind::Push(PushOptions {
                url: push_url(section, reach)?,
                secrets: Vec::new(),
                timeout: timeout.unwrap_or(PUSH_TIMEOUT_DEFAULT),
                ca_file,
                on_gone: on_gone.map_or(OnGone::Hold, |at| at.value),
            }))
        }
        "exec" => {
            let environment = environment(section);
            let mut exec = ExecOptions::new(command(section)?);
            exec.timeout = timeout.unwrap_or(exec.timeout);
            exec.environment = environment?;
            Some(DestinationKind::Exec(exec))
        }
        _ => pull(section),
    }
}

/// Where events are pushed to, as far as it can be checked without asking a name server.
fn push_url(section: &Section<'_>, reach: Reach) -> Option<PushUrl> {
    let url = section.text("push")?;
    match PushUrl::parse(url.value, reach) {
        Ok(url) => Some(url),
        Err(error) => {
            section.findings.at(&url.span, &section.key("push"), error.to_string(), error.fix());
            None
        }
    }
}

fn on_gone(text: &str) -> Result<OnGone, String> {
    match text {
        "hold" => Ok(OnGone::Hold),
        "dead" => Ok(OnGone::Dead),
        "retry" => Ok(OnGone::Retry),
        _ => Err("is not \"hold\", \"dead\" or \"retry\"".to_owned()),
    }
}

fn command(section: &Section<'_>) -> Option<Vec<String>> {
    let parts = section.texts("exec")?;
    let fault = match parts.as_slice() {
        [] => Some("names no program".to_owned()),
        [first, ..] if first.value.is_empty() => Some("the program has no name".to_owned()),
        parts if parts.len() > COMMAND_PARTS_MAX => Some(format!("more than {COMMAND_PARTS_MAX} parts")),
        parts if parts.iter().any(|part| part.value.contains('\0')) => Some("a part holds a NUL".to_owned()),
        _ => None,
    };
    if let Some(what) = fault {
        let fix = "write exec = [\"PROGRAM\", \"ARGUMENT\", ..]; no shell reads it";
        section.findings.at(&section.key_span("exec"), &section.key("exec"), what, fix);
        return None;
    }
    Some(parts.into_iter().map(|part| part.value.to_owned()).collect())
}

/// `environment = { NAME = "value" }`.
fn environment(section: &Section<'_>) -> Option<Vec<(String, String)>> {
    if section.value("environment").is_none() {
        return Some(Vec::new());
    }
    let table = section.section("environment")?;
    let variable = |(name, span, value): (&str, Range<usize>, &Spanned<DeValue<'_>>)| {
        let fault = match value.get_ref() {
            DeValue::String(text) if is_variable(name) && !text.contains('\0') => {
                return Some((name.to_owned(), text.to_string()));
            }
            DeValue::String(_) if name.starts_with(OURS) => format!("`{OURS}..` says what hookstead knows"),
            DeValue::String(_) => "no program can be given this variable".to_owned(),
            other => format!("the value of a variable is a text, and not {}", kind(other)),
        };
        let fix = "write environment = { MODE = \"production\" }";
        section.findings.at(&span, &table.key(name), fault, fix);
        None
    };
    // All of them, so that all mistakes are told.
    let variables: Vec<_> = table.entries().map(variable).collect();
    if variables.len() > VARIABLES_MAX {
        let what = format!("more than {VARIABLES_MAX} variables");
        section.findings.at(
            &section.key_span("environment"),
            &section.key("environment"),
            what,
            "remove some",
        );
        return None;
    }
    variables.into_iter().collect()
}

/// What the names of hookstead's own variables begin with; a program must be able to believe them.
const OURS: &str = "HOOKSTEAD_";

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !name.starts_with(OURS)
}

fn pull(section: &Section<'_>) -> Option<DestinationKind> {
    if section.boolean("pull")? {
        return Some(DestinationKind::Pull(Default::default()));
    }
    let fix = "write pull = true, or remove the whole table";
    section.findings.at(&section.key_span("pull"), &section.key("pull"), "pull is false", fix);
    None
}

fn filter(section: &Section<'_>, sources: &[&str]) -> Option<Filter> {
    let wanted = list(section, "sources", |name| source(section, name, sources));
    let types = list(section, "types", |pattern| {
        let parsed = pattern.value.parse().map_err(|error: QueryError| error.to_string());
        refused(section, "types", &pattern.span, parsed)
    });
    let equals = equals(section, Filter::default());
    let place = |key| section.key_span(key);
    let filter = equals?.sources(wanted?).map_err(|error| error.to_string());
    let filter = refused(section, "sources", &place("sources"), filter)?;
    refused(section, "types", &place("types"), filter.types(types?).map_err(|error| error.to_string()))
}

/// A list of texts, each read by `read`; empty if it is absent, `None` if anything in it is wrong.
fn list<T>(section: &Section<'_>, key: &str, read: impl Fn(&At<&str>) -> Option<T>) -> Option<Vec<T>> {
    if section.value(key).is_none() {
        return Some(Vec::new());
    }
    // All of them, so that all mistakes are told.
    let items: Vec<_> = section.texts(key)?.iter().map(read).collect();
    items.into_iter().collect()
}

pub(super) fn refused<T>(
    section: &Section<'_>,
    key: &str,
    span: &Range<usize>,
    result: Result<T, String>,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(what) => {
            section.findings.at(span, &section.key(key), what, "");
            None
        }
    }
}

/// A source that stands in this file.
fn source(section: &Section<'_>, name: &At<&str>, sources: &[&str]) -> Option<SourceName> {
    if sources.contains(&name.value) {
        return name.value.parse().ok();
    }
    let what = match did_you_mean(name.value, sources.iter().copied()) {
        Some(close) => format!("there is no source `{}`; did you mean `{close}`?", name.value),
        None => format!("there is no source `{}`", name.value),
    };
    let fix = match sources {
        [] => format!("add [sources.{}]", name.value),
        known => format!("known sources: {}", known.join(", ")),
    };
    section.findings.at(&name.span, &section.key("sources"), what, fix);
    None
}

/// `equals = { "/pointer" = value }`.
fn equals(section: &Section<'_>, mut filter: Filter) -> Option<Filter> {
    if section.value("equals").is_none() {
        return Some(filter);
    }
    let table = section.section("equals")?;
    let mut sound = true;
    for (pointer, span, value) in table.entries() {
        let added = match scalar(value) {
            Ok(wanted) => filter.clone().equals(pointer, &wanted).map_err(|error| error.to_string()),
            Err(what) => Err(what),
        };
        match added {
            Ok(added) => filter = added,
            Err(what) => {
                let fix = "write equals = { \"/data/status\" = \"paid\" }";
                section.findings.at(&span, &table.key(pointer), what, fix);
                sound = false;
            }
        }
    }
    sound.then_some(filter)
}

/// A value that can be compared with one in a JSON body.
fn scalar(value: &Spanned<DeValue<'_>>) -> Result<serde_json::Value, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(boolean) => Ok((*boolean).into()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            parsed.map(Into::into).map_err(|_| "is no whole number of 64 bits".to_owned())
        }
        DeValue::Float(number) => {
            serde_json::from_str(number.as_str()).map_err(|_| "is no number that JSON can hold".to_owned())
        }
        other => {
            Err(format!("can be compared with a text, a number, true or false, and not with {}", kind(other)))
        }
    }
}
