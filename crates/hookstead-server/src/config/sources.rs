//! The tables `[sources.NAME]`: from text to a provider, secrets and a policy that are known to work together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use hookstead::core::BodyReuse;
use hookstead::verify::{
    IdentityRule, KeySource, Provider, Registry, SchemeSpec, Secret, Template, Verifier, VerifierError,
    VerifyOptions,
};
use hookstead::{OnConflict, SourceName, SuccessBody, default_body_reuse};
use http::HeaderValue;

use super::conf;
use super::keys::{SCHEME_KEYS, names};
use super::problem::did_you_mean;
use super::reader::Section;
use super::secret::{FoundSecret, Lookup, SecretEntry};
use super::settings::RateLimit;
use super::values::rate;
use crate::given_keys::GivenKeys;
use crate::limits::{BODY_BYTES_CEILING, SUCCESS_BODY_BYTES_MAX};

/// The largest tolerance that a source may ask for.
const TOLERANCE_MAX: Duration = Duration::from_secs(hookstead::verify::TOLERANCE_S_MAX as u64);

/// One source, checked: an inbox can be opened with it.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// Its name; its address is `/in/<name>`.
    pub name: SourceName,
    /// Who sends, or the scheme that stands in the source itself.
    pub provider: Arc<Provider>,
    /// The secrets; any of them may have signed.
    pub secrets: Vec<Secret>,
    /// Where the secrets are kept and how they are read, in the same order.
    pub secret_entries: Vec<SecretEntry>,
    /// What the provider's record asks for beside secrets.
    pub conf: BTreeMap<String, String>,
    /// Public keys by their ids, for a provider that shows them only to its customers.
    pub keys: BTreeMap<String, String>,
    /// Instead of the provider's tolerance, in seconds.
    pub tolerance_s: Option<u32>,
    /// What identifies its events.
    pub identity: IdentityRule,
    /// Where the type of an event is, instead of where the provider says.
    pub event_type: Option<Template>,
    /// What a sender is told of a conflict.
    pub on_conflict: OnConflict,
    /// What is made of a body that came before under another id; `None`: what its provider's signature calls for.
    pub body_reuse: Option<BodyReuse>,
    /// The largest body in bytes.
    pub body_bytes_max: u64,
    /// How many requests it takes in a time; `None`: as many as come.
    pub rate: Option<RateLimit>,
    /// One status for every success.
    pub success_status: Option<u16>,
    /// One body for every success.
    pub success_body: Option<SuccessBody>,
}

/// What a source needs to know of the rest of the configuration.
pub(crate) struct Surroundings<'a> {
    pub(crate) lookup: Lookup<'a>,
    /// `[limits] body`.
    pub(crate) body_bytes_max: u64,
    /// `[server] public_url`, without a slash at its end.
    pub(crate) public_url: Option<&'a str>,
}

/// Reads every table of `[sources]`. What is wrong goes to the findings; such a source is left out.
pub(crate) fn read(sources: &Section<'_>, surroundings: &Surroundings<'_>) -> Vec<SourceConfig> {
    let read_one = |(name, span, _): (&str, Range<usize>, _)| {
        let section = sources.section(name);
        match name.parse::<SourceName>() {
            Ok(name) => source(name, &section?, surroundings),
            Err(error) => {
                sources.findings.at(&span, &sources.key(name), error.to_string(), "");
                None
            }
        }
    };
    sources.entries().filter_map(read_one).collect()
}

fn source(name: SourceName, section: &Section<'_>, surroundings: &Surroundings<'_>) -> Option<SourceConfig> {
    section.check_keys(&names("sources.*"));
    // Everything is read before anything is given up, so that all mistakes are told at once.
    let provider = provider(&name, section);
    let found = surroundings.lookup.secrets(section);
    let conf = conf::texts(section, "conf", &surroundings.lookup);
    let keys = conf::texts(section, "keys", &surroundings.lookup);
    let tolerance = section.duration("tolerance", Duration::ZERO..=TOLERANCE_MAX);
    let identity = section.parsed("identity", identity_rule);
    let event_type = section.parsed("type", |text| {
        Template::from_selector(text).map_err(|error| format!("is no place of a type: {error}"))
    });
    let on_conflict = section.parsed("on_conflict", on_conflict);
    let body_reuse = section.parsed("body_reuse", body_reuse);
    let body = section.size("body", 1..=BODY_BYTES_CEILING);
    let rate = section.parsed("rate", rate);
    let success = section.integer("success_status", 200..=299);
    let success_body = success_body(section);
    let (provider, found, conf, keys) = (provider?, found?, conf?, keys?);
    let record_max = provider.body_bytes_max();
    let source = SourceConfig {
        name,
        secrets: found.iter().map(|found| found.secret.clone()).collect(),
        secret_entries: found.iter().map(|found| found.entry.clone()).collect(),
        conf,
        keys,
        tolerance_s: tolerance.and_then(|at| u32::try_from(at.value.as_secs()).ok()),
        identity: identity.map_or(IdentityRule::Provider, |at| at.value),
        event_type: event_type.map(|at| at.value),
        on_conflict: on_conflict.map_or(OnConflict::Refuse, |at| at.value),
        body_reuse: body_reuse.map(|at| at.value),
        body_bytes_max: body.map(|at| at.value).or(record_max).unwrap_or(surroundings.body_bytes_max),
        rate: rate.map(|at| at.value),
        success_body,
        success_status: success.and_then(|at| u16::try_from(at.value).ok()),
        provider,
    };
    check_together(&source, &found, section, surroundings).then_some(source)
}

/// The provider that a source names, or has the name of, or describes.
fn provider(name: &SourceName, section: &Section<'_>) -> Option<Arc<Provider>> {
    let registry = Registry::builtin();
    let findings = section.findings;
    if section.value("scheme").is_some() {
        if section.value("provider").is_some() {
            findings.at(
                &section.key_span("scheme"),
                &section.key("scheme"),
                "both `provider` and `scheme`",
                "keep one",
            );
        }
        return own_scheme(name, section);
    }
    let (wanted, span) = match section.value("provider") {
        Some(_) => section.text("provider").map(|at| (at.value.to_owned(), at.span))?,
        None => (name.to_string(), section.span.clone()),
    };
    let implicit = section.value("provider").is_none();
    match registry.get(&wanted) {
        Some(provider) if implicit && !provider.checks_requests() => {
            let what = format!("source `{name}` checks no signature");
            findings.at(
                &span,
                &section.path,
                what,
                format!("if that is meant, write provider = \"{wanted}\""),
            );
            None
        }
        Some(provider) => Some(provider.clone()),
        None => {
            // Never towards less: nobody is led from a typing mistake to a source that checks nothing.
            let checking = registry.iter().filter(|provider| provider.checks_requests());
            let what = match did_you_mean(&wanted, checking.map(|provider| provider.name())) {
                Some(close) => format!("there is no provider `{wanted}`; did you mean `{close}`?"),
                None => format!("there is no provider `{wanted}`"),
            };
            let count = registry.names().count();
            let fix = format!(
                "write provider = \"..\", one of {count} (hookstead send --list); or scheme = {{ hmac = .. }}"
            );
            findings.at(&span, &section.key("provider"), what, fix);
            None
        }
    }
}

/// A provider made of `scheme = { hmac = "sha256", header = "..", .. }`.
fn own_scheme(name: &SourceName, section: &Section<'_>) -> Option<Arc<Provider>> {
    let scheme = section.section("scheme")?;
    scheme.check_keys(SCHEME_KEYS);
    let text = |key: &str| scheme.text(key).map(|at| at.value.to_owned());
    // Where the identity is a template, the scheme is told, so that it knows whether the signature covers it.
    let identity = section.value("identity").and_then(|value| value.get_ref().as_str().map(str::to_owned));
    let spec = SchemeSpec {
        hmac: text("hmac"),
        token: text("token"),
        basic: scheme.boolean("basic").unwrap_or(false),
        header: text("header"),
        encoding: text("encoding"),
        prefix: text("prefix"),
        signed: text("signed"),
        timestamp: text("timestamp"),
        timestamp_unit: text("timestamp_unit"),
        key: text("key"),
        id: identity.filter(|identity| matches!(identity_rule(identity), Ok(IdentityRule::Template(_)))),
        ..SchemeSpec::default()
    };
    match spec.provider(name.as_str()) {
        Ok(provider) => Some(Arc::new(provider)),
        Err(error) => {
            let span = section.value("scheme").map_or_else(|| section.span.clone(), |value| value.span());
            section.findings.at(&span, &section.key("scheme"), error.to_string(), "");
            None
        }
    }
}

fn identity_rule(text: &str) -> Result<IdentityRule, String> {
    match text {
        "provider" => Ok(IdentityRule::Provider),
        "body" => Ok(IdentityRule::Body),
        "none" => Ok(IdentityRule::None),
        _ if text.starts_with('/') || text.starts_with("header:") || text.contains('{') => {
            let template = Template::from_selector(text);
            template.map(IdentityRule::Template).map_err(|error| format!("is no identity: {error}"))
        }
        _ => {
            Err("is no identity; write \"provider\", \"body\", \"none\" or a template such as \"{json:/id}\""
                .into())
        }
    }
}

/// The answer's text, and its type beside it.
fn success_body(section: &Section<'_>) -> Option<SuccessBody> {
    let text = section.parsed("success_body", |text| match text.len() {
        ..=SUCCESS_BODY_BYTES_MAX => Ok(text.to_owned()),
        bytes => Err(format!("has {bytes} bytes; a success has at most {SUCCESS_BODY_BYTES_MAX}")),
    });
    let content_type = section.parsed("success_type", |text| match HeaderValue::from_str(text) {
        Ok(_) if text.contains('/') => Ok(text.to_owned()),
        _ => Err("is no content type; write one such as \"text/xml\"".to_owned()),
    });
    if let (None, Some(at)) = (section.value("success_body"), &content_type) {
        let what = "a type without a text";
        section.findings.at(&at.span, &section.key("success_type"), what, "add success_body, or remove it");
    }
    let content_type = content_type.map_or_else(|| "text/plain; charset=utf-8".to_owned(), |at| at.value);
    Some(SuccessBody { text: text?.value, content_type })
}

fn on_conflict(text: &str) -> Result<OnConflict, String> {
    match text {
        "refuse" => Ok(OnConflict::Refuse),
        "hold" => Ok(OnConflict::Hold),
        _ => Err("is not \"refuse\" or \"hold\"".to_owned()),
    }
}

fn body_reuse(text: &str) -> Result<BodyReuse, String> {
    match text {
        "flag" => Ok(BodyReuse::Flag),
        "refuse" => Ok(BodyReuse::Refuse),
        "off" => Ok(BodyReuse::Ignore),
        _ => Err("is not \"flag\", \"refuse\" or \"off\"".to_owned()),
    }
}

/// Why nothing can be made of a body that comes under another id; `None` if something can.
fn useless_body_reuse(source: &SourceConfig) -> Option<String> {
    let title = source.provider.title();
    match source.body_reuse? {
        BodyReuse::Ignore => None,
        _ if !source.provider.body_covered() => Some(format!("the signature of {title} covers no body")),
        _ if source.provider.covers_identity(&source.identity) => {
            Some(format!("the signature of {title} covers what identifies its events"))
        }
        BodyReuse::Flag | BodyReuse::Refuse => None,
    }
}

/// What only shows when the parts come together.
fn check_together(
    source: &SourceConfig,
    found: &[FoundSecret],
    section: &Section<'_>,
    surroundings: &Surroundings<'_>,
) -> bool {
    let findings = section.findings;
    let provider = &source.provider;
    let mut sound = true;
    if provider.needs_url() && surroundings.public_url.is_none() {
        let what = format!("{} signs the public address of the source", provider.title());
        findings.at(&section.span, &section.path, what, "set public_url in [server]");
        sound = false;
    }
    if let Some(most) = provider.body_bytes_max().filter(|most| source.body_bytes_max > *most) {
        let what = format!("{} sends at most {}", provider.title(), super::format_size(most));
        let span = section.value("body").map_or_else(|| section.span.clone(), |value| value.span());
        findings.at(&span, &section.key("body"), what, "");
        sound = false;
    }
    if let Some(what) = useless_body_reuse(source) {
        findings.at(&section.key_span("body_reuse"), &section.key("body_reuse"), what, "remove it");
        sound = false;
    }
    if !source.keys.is_empty() && !provider.publishes_keys() {
        let what = format!("{} signs with no keys of its own", provider.title());
        findings.at(&section.key_span("keys"), &section.key("keys"), what, "remove it");
        sound = false;
    }
    for (id, key) in source.keys.iter().filter(|_| provider.publishes_keys()) {
        if let Err(error) = provider.check_given_key(key.as_bytes()) {
            let what = format!("the key `{id}` cannot be used: {error}");
            let fix = "give it whole and unchanged: PEM, or DER in base64, or a JWK set where the provider shows one";
            findings.at(&section.key_span("keys"), &section.key("keys"), what, fix);
            sound = false;
        }
    }
    let options = source.verify_options(None, None);
    let verifier = if source.awaits_secret() {
        Verifier::awaiting_secret(provider.clone(), options)
    } else {
        Verifier::new(provider.clone(), &source.secrets, options)
    };
    if let Err(error) = verifier {
        report(&error, found, section);
        sound = false;
    }
    sound
}

/// A verifier's refusal, at the key that it is about.
fn report(error: &VerifierError, found: &[FoundSecret], section: &Section<'_>) {
    let value = |key: &str| section.value(key).map_or_else(|| section.span.clone(), |value| value.span());
    let facts = |key: &str, span: Range<usize>, fix: String| {
        section.findings.at(&span, &section.key(key), error.to_string(), fix);
    };
    match error {
        VerifierError::NoSecret(_) => {
            facts("secret", section.span.clone(), "add secret = { env = \"NAME\" }".to_owned());
        }
        VerifierError::Secret { index, error: secret, .. } => {
            let span = found.get(*index).map_or_else(|| value("secret"), |found| found.span.clone());
            section.findings.at(&span, &section.key("secret"), secret.to_string(), secret.fix());
        }
        VerifierError::UselessSecret(_) => {
            facts("secret", section.key_span("secret"), "remove it".to_owned());
        }
        VerifierError::UselessTolerance(_) => {
            facts("tolerance", section.key_span("tolerance"), "remove it".to_owned());
        }
        VerifierError::NoConf { key, .. } => {
            facts("conf", section.span.clone(), format!("add conf = {{ {key} = \"..\" }}"));
        }
        VerifierError::UnknownConf { .. } => facts("conf", section.key_span("conf"), "remove it".to_owned()),
        VerifierError::NoIdentity(_) => facts("identity", section.span.clone(), String::new()),
        _ => facts("", section.span.clone(), String::new()),
    }
}

impl SourceConfig {
    /// What is made of a body that came before under another id.
    pub fn body_reuse(&self) -> BodyReuse {
        self.body_reuse.unwrap_or_else(|| default_body_reuse(&self.provider, &self.identity))
    }

    /// Whether its provider has to hand over the secret: it does that, and none is configured.
    pub(crate) fn awaits_secret(&self) -> bool {
        self.secrets.is_empty() && self.provider.hands_over_secret()
    }

    /// The options of its verifier; `url` is its public address, for providers that sign it, and `published` has
    /// the keys of those that publish them.
    pub(crate) fn verify_options(
        &self,
        url: Option<String>,
        published: Option<Arc<dyn KeySource>>,
    ) -> VerifyOptions {
        let keys = || Arc::new(GivenKeys::new(self.keys.clone(), published)) as Arc<dyn KeySource>;
        VerifyOptions {
            conf: self.conf.clone(),
            key_source: self.provider.publishes_keys().then(keys),
            tolerance_s: self.tolerance_s,
            url,
            identity: self.identity.clone(),
            event_type: self.event_type.clone(),
        }
    }
}
