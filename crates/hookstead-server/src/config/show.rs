//! The configuration as text: a file to begin with, and what is in force with where each value came from.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use hookstead::OnConflict;
use hookstead::core::BodyReuse;
use hookstead::verify::IdentityRule;

use super::keys::KEYS;
use super::settings::{Config, Origin};
use super::units::{format_duration, format_size};

const HEAD: &str = "\
# The configuration of hookstead. Every key may be left out; what stands behind a `#` is its default, or an
# example where it has none. Check this file with `hookstead config check`.
#
# Durations and sizes have a unit: \"30s\", \"5m\", \"2h\", \"30d\"; \"512 KiB\", \"10 MiB\", \"1 GiB\".
";

const SOURCES: &str = "
# One table for each source. Its address is /in/<name>, and its name is its provider unless `provider` says
# otherwise. Secrets are named by where they are kept; they never stand in this file.
#
# [sources.stripe]
# secret = { env = \"STRIPE_WEBHOOK_SECRET\" }
#
# [sources.partner]
# scheme = { hmac = \"sha256\", header = \"x-signature\", encoding = \"hex\", prefix = \"sha256=\" }
# secret = { file = \"/run/secrets/partner\" }
# identity = \"{json:/id}\"
#
# All keys of a source:
";

const DESTINATIONS: &str = "
# One table for each destination: who gets the events. Without one, events are stored and wait.
#
# [destinations.app]
# push = \"https://app.example.com/webhooks\"
#
# [destinations.worker]
# pull = true
# types = [\"invoice.*\"]
#
# All keys of a destination:
";

/// A commented file in which nothing is set: it reads like the documentation and checks clean.
pub fn default_text() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for key in KEYS.iter().filter(|key| !key.section.contains('*')) {
        if key.section != section {
            section = key.section;
            push(&mut text, format_args!("\n[{section}]\n"));
        }
        push(&mut text, format_args!("# {}\n# {} = {}\n", key.help, key.name, key.value));
    }
    for (section, head) in [("sources.*", SOURCES), ("destinations.*", DESTINATIONS)] {
        text.push_str(head);
        push_table(&mut text, section);
    }
    text
}

fn push_table(text: &mut String, section: &str) {
    for key in KEYS.iter().filter(|key| key.section == section) {
        push(text, format_args!("#   {:<15} {}\n", key.name, key.help));
        push(text, format_args!("#   {:<15} {} = {}\n", "", key.name, key.value));
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = text.write_fmt(arguments);
}

/// One value that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownKey {
    /// Its full name, such as `server.intake`.
    pub key: String,
    /// Its value as it would stand in the file; for a secret, where it is kept.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Config {
    /// Every value that is in force, by table. Secrets are named by their place and never shown.
    pub fn show(&self) -> Vec<ShownKey> {
        let (server, limits) = (&self.server, &self.limits);
        let quoted = |text: &str| format!("{text:?}");
        let duration = |value| format!("\"{}\"", format_duration(value));
        let size = |value| format!("\"{}\"", format_size(value));
        let mut shown = vec![
            ("server.intake", quoted(&server.intake.to_string())),
            ("server.admin", quoted(&server.admin.to_string())),
            ("server.public_url", quoted(server.public_url.as_deref().unwrap_or_default())),
            ("server.intake_hosts", format!("{:?}", server.intake_hosts)),
            ("server.trusted_proxies", format!("{:?}", texts(&server.trusted_proxies))),
            ("server.proxy_header", quoted(server.proxy_header.as_str())),
            ("server.admin_hosts", format!("{:?}", server.admin_hosts)),
            ("server.drain", duration(server.drain)),
            ("server.failstop_linger", duration(server.failstop_linger)),
            ("store.url", quoted(&self.store.url)),
            ("store.min_free", size(self.store.min_free)),
            ("store.upgrade_copy", self.store.upgrade_copy.to_string()),
            ("limits.body", size(limits.body)),
            ("limits.body_memory", size(limits.body_memory)),
            ("limits.header_time", duration(limits.header_time)),
            ("limits.body_time", duration(limits.body_time)),
            ("limits.idle_time", duration(limits.idle_time)),
            ("limits.write_time", duration(limits.write_time)),
            ("limits.connections", limits.connections.to_string()),
            ("limits.connections_per_address", limits.connections_per_address.to_string()),
            ("observability.log_format", quoted(self.observability.log_format.as_str())),
            ("observability.log_level", quoted(&self.observability.log_level)),
        ]
        .into_iter()
        .map(|(key, value)| ShownKey { key: key.to_owned(), value, origin: self.origin(key) })
        .collect::<Vec<_>>();
        shown.extend(self.sources.iter().flat_map(|source| self.show_source(source)));
        shown.extend(self.destinations.iter().flat_map(|known| self.show_destination(known)));
        shown
    }

    fn show_source(&self, source: &super::SourceConfig) -> Vec<ShownKey> {
        let secrets = secrets(&source.secret_entries);
        let tolerance = source.tolerance_s.map(|seconds| Duration::from_secs(seconds.into()));
        let quoted = |text: &str| format!("{text:?}");
        let entries = [
            Some(("provider", quoted(source.provider.name()))),
            secrets,
            names_of("conf", &source.conf),
            names_of("keys", &source.keys),
            tolerance.map(|tolerance| ("tolerance", quoted(&format_duration(tolerance)))),
            Some(("identity", quoted(&identity(&source.identity)))),
            source.event_type.as_ref().map(|place| ("type", quoted(&place.to_string()))),
            Some(("on_conflict", quoted(on_conflict(source.on_conflict)))),
            Some(("body_reuse", quoted(body_reuse(source.body_reuse())))),
            Some(("body", quoted(&format_size(source.body_bytes_max)))),
            source.rate.map(|rate| ("rate", quoted(&rate.to_string()))),
            source.success_status.map(|status| ("success_status", status.to_string())),
            source.success_body.as_ref().map(|body| ("success_body", quoted(&body.text))),
            source.success_body.as_ref().map(|body| ("success_type", quoted(&body.content_type))),
        ];
        let shown = |(name, value): (&str, String)| {
            let key = format!("sources.{}.{name}", source.name);
            let origin = self.origin(&key);
            ShownKey { key, value, origin }
        };
        entries.into_iter().flatten().map(shown).collect()
    }
}

fn texts(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// Where secrets are kept, as in the file.
pub(super) fn secrets(references: &[impl ToString]) -> Option<(&'static str, String)> {
    match texts(references).as_slice() {
        [] => None,
        [one] => Some(("secret", one.clone())),
        several => Some(("secrets", format!("[{}]", several.join(", ")))),
    }
}

/// Only which values there are: some of them are as good as secrets.
fn names_of(key: &'static str, values: &BTreeMap<String, String>) -> Option<(&'static str, String)> {
    let names: Vec<_> = values.keys().map(|name| format!("{name:?} = ..")).collect();
    (!names.is_empty()).then(|| (key, format!("{{ {} }}", names.join(", "))))
}

fn identity(rule: &IdentityRule) -> String {
    match rule {
        IdentityRule::Provider => "provider".to_owned(),
        IdentityRule::Template(template) => template.to_string(),
        IdentityRule::Body => "body".to_owned(),
        IdentityRule::None => "none".to_owned(),
    }
}

fn body_reuse(policy: BodyReuse) -> &'static str {
    match policy {
        BodyReuse::Ignore => "off",
        BodyReuse::Flag => "flag",
        BodyReuse::Refuse => "refuse",
    }
}

fn on_conflict(policy: OnConflict) -> &'static str {
    match policy {
        OnConflict::Refuse => "refuse",
        OnConflict::Hold => "hold",
    }
}
