//! `hookstead sources add`: into the configuration file and into the running server; a person is asked for the secret,
//! told how to connect the provider, and shown what comes of it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use hookstead_server::Config;
use hookstead_server::config::source_url;
use hookstead_verify::{Provider, SecretCoding};
use serde::Serialize;
use toml::Value;

use super::first_event::FirstEvent;
use super::reference::{ReferenceArgs, Wanted, written};
use super::{configured, first_event, other_file, reference};
use crate::cmd::providers;
use crate::config_file::{Changed, ConfigFile};
use crate::config_text::with_section;
use crate::failure::{Exit, Failure};
use crate::output::{self, printable};
use crate::place::PlaceArgs;
use crate::running::Running;

const EXAMPLES: &str = "\
Examples:
  hookstead sources add stripe                   asks for the secret, and waits for the first event
  hookstead sources add stripe --env STRIPE_WEBHOOK_SECRET
  hookstead sources add shop --provider shopify --file /etc/hookstead/shop
  hookstead sources add gitea --secret-generate
  hookstead sources add stripe --secret-stdin --wait --timeout 10m < secret
  hookstead sources add plaid --identity body
  hookstead sources add aws-sns --conf topic_arn=any";

const JSON: &str = "\
JSON: {\"source\", \"provider\", \"address\", \"file\", \"reloaded\", \"written\", \"generated\", \"warning\"}; written is the new \
file that holds the secret, generated the same if the secret was made. The configuration file gets a table \
[sources.NAME], and a running server takes it over at once. Exit code 5 if it would be wrong, such as an API key in the \
place of a signing secret: nothing is changed then. With --wait, exit code 6 if no server runs, before anything is \
changed, and 7 if no event came; the source stays, also if you interrupt it (130).";

/// Add a source: who may send, and the secret that they sign with
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Add {
    /// What you call it; its address is /in/NAME.
    name: String,
    /// Who sends [default: the provider of that name].
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    #[command(flatten)]
    reference: ReferenceArgs,
    /// How the key is read from the secret: utf8 (the text as it is), base64 or hex [default: as the provider's record says].
    #[arg(long, value_name = "WORD", value_parser = reference::coding)]
    decode: Option<SecretCoding>,
    /// What makes an event the same, where the provider names none: body, none or a template.
    #[arg(long, value_name = "RULE")]
    identity: Option<String>,
    /// What the provider asks for beside the secret, such as a topic; once for each value.
    #[arg(long, value_name = "KEY=VALUE", value_parser = conf_value)]
    conf: Vec<(String, String)>,
    /// Wait for the first event, and tell what is refused until then [default: at a terminal].
    #[arg(long, conflicts_with_all = ["no_wait", "json"])]
    wait: bool,
    /// Do not wait.
    #[arg(long)]
    no_wait: bool,
    /// The longest wait, at most 1h.
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = first_event::wait)]
    timeout: Duration,
    /// Print one JSON document, and do not wait.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    source: &'a str,
    provider: &'a str,
    address: String,
    file: String,
    reloaded: bool,
    written: Option<String>,
    generated: Option<String>,
    warning: Option<String>,
    /// Whether a secret is here that the provider has too.
    #[serde(skip)]
    is_shared: bool,
}

pub(super) fn run(args: &Add) -> Result<()> {
    let config = configured(args.place.load()?)?;
    if config.sources.iter().any(|known| known.name.as_str() == args.name) {
        return Err(exists(&args.name).into());
    }
    let provider = providers::named(args.provider.as_deref().unwrap_or(&args.name))?;
    if let Some(failure) = args.conf_given_twice().or_else(|| args.missing_conf(provider)) {
        return Err(failure.into());
    }
    let first = args.first_event(&config)?;
    let document = add(args, provider, config)?;
    if args.json {
        return output::json(&document);
    }
    print(&document, provider)?;
    first.map_or(Ok(()), |first| wait(first, &args.name, args.timeout))
}

impl Add {
    /// The first event, if it is to be waited for. A person without a server is told to start one, and need not wait.
    fn first_event(&self, config: &Config) -> Result<Option<FirstEvent>> {
        let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if self.wait {
            return FirstEvent::from_now_on(config).map(Some);
        }
        if self.no_wait || self.json || !at_terminal || Running::find(config)?.is_none() {
            return Ok(None);
        }
        FirstEvent::from_now_on(config).map(Some)
    }

    /// Of two values one would be lost, and nobody said which.
    fn conf_given_twice(&self) -> Option<Failure> {
        let mut later = self.conf.iter().enumerate();
        let (_, (key, _)) =
            later.find(|(at, (key, _))| self.conf[..*at].iter().any(|(name, _)| name == key))?;
        let message = format!("`{key}` is given twice; nothing was changed");
        Some(Failure::new(Exit::Refused, "conf-twice", message).fix(format!("give --conf {key}=VALUE once")))
    }

    /// Told before a secret is asked for: what the provider needs and was not given, if anything.
    fn missing_conf(&self, provider: &Provider) -> Option<Failure> {
        let given = |key: &str| self.conf.iter().any(|(name, _)| name == key);
        let (key, what, _) = provider.conf().find(|(key, _, is_needed)| *is_needed && !given(key))?;
        let message = format!("{} needs `{key}`: {what}; nothing was changed", provider.title());
        let again = format!("hookstead sources add {} .. --conf {key}=VALUE", self.name);
        Some(Failure::new(Exit::Refused, "no-conf", message).fix(again))
    }

    fn conf(&self) -> Option<Value> {
        let values = self.conf.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        (!self.conf.is_empty()).then(|| Value::Table(values.collect()))
    }
}

fn conf_value(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Changes the file and has the running server take it over.
fn add<'a>(args: &'a Add, provider: &'a Provider, config: Config) -> Result<Document<'a>> {
    let file = ConfigFile::of(config)?;
    let wanted = Wanted { source: &args.name, provider, folder: &file.folder()?, decode: args.decode };
    let reference = args.reference.make(&wanted)?;
    let keys = [
        Some(("provider", Value::from(provider.name()))),
        reference.entry.as_ref().map(|entry| ("secret", written(entry))),
        args.identity.as_deref().map(|rule| ("identity", Value::from(rule))),
        args.conf().map(|conf| ("conf", conf)),
    ];
    let keys: Vec<_> = keys.into_iter().flatten().collect();
    let path = file.path().display().to_string();
    let text = with_section(&file.text, &format!("sources.{}", args.name), &keys);
    let (made_up, warning) = (reference.made_up, reference.warning.clone());
    // One that was made has still to be entered there.
    let is_shared = reference.entry.is_some() && !made_up;
    let (Changed { config, reloaded }, written) = reference.put_in(file, &text)?;
    let written = written.map(|file| file.display().to_string());
    if reloaded.as_ref().is_some_and(|reloaded| !reloaded.sources.contains(&args.name)) {
        return Err(other_file(&path).into());
    }
    Ok(Document {
        source: &args.name,
        provider: provider.name(),
        address: address(&args.name, &config)?,
        file: path,
        reloaded: reloaded.is_some(),
        generated: written.clone().filter(|_| made_up),
        written,
        warning,
        is_shared,
    })
}

/// Where requests come in: as the provider sees it, else where the running server listens, else where one will.
fn address(name: &str, config: &Config) -> Result<String> {
    let public = config.server.public_url.as_deref();
    Ok(match (public, Running::find(config)?) {
        (None, Some(running)) => source_url(name, Some(&running.intake), config.server.intake),
        _ => source_url(name, public, config.server.intake),
    })
}

fn exists(name: &str) -> Failure {
    let message = format!("there is a source `{name}` already; nothing was changed");
    Failure::new(Exit::Refused, "exists", message)
        .fix(format!("give it another secret: hookstead sources rotate {name} --env VARIABLE"))
}

fn wait(first: FirstEvent, source: &str, within: Duration) -> Result<()> {
    let event = first.of(source, within)?;
    let event_type = printable(event.event_type.as_deref().unwrap_or("no type"));
    output::labelled("event", format_args!("{}   {event_type}", event.short_id))?;
    output::labelled("see", format_args!("hookstead events show {}", event.short_id))
}

fn print(added: &Document<'_>, provider: &Provider) -> Result<()> {
    let title = provider.title();
    output::labelled("added", format_args!("{} ← {title}   ({})", added.source, added.file))?;
    match (&added.generated, &added.written) {
        (Some(file), _) => output::labelled("secret", format_args!("in {file}: enter it at {title}"))?,
        (None, Some(file)) => output::labelled("secret", format_args!("in {file}, for its owner alone"))?,
        (None, None) => {}
    }
    if let Some(warning) = &added.warning {
        output::labelled("warning", warning)?;
    }
    if !added.reloaded {
        output::labelled("next", "no server runs on this store: it is taken over when one starts")?;
    }
    output::labelled("address", &added.address)?;
    output::labelled("connect", connect(added, provider))?;
    output::labelled("try", format_args!("hookstead send {} --source {}", added.provider, added.source))
}

/// The provider's steps, with those that are done.
fn connect(added: &Document<'_>, provider: &Provider) -> String {
    let [secret, source, address] = providers::steps_at(provider, &added.address);
    let done = match (added.is_shared, &added.generated) {
        (true, _) => " (done)",
        (false, Some(_)) => " (made; it has still to be entered there)",
        (false, None) => "",
    };
    format!("1. {secret}{done}\n2. {source} (done)\n3. {address}")
}
