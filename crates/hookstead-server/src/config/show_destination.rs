//! A destination as text: what is in force of it, key by key.

use std::time::Duration;

use hookstead::core::RetryPolicy;
use hookstead::sink::push::Reach;
use hookstead::{DestinationKind, Filter, OnGone};

use super::DestinationConfig;
use super::settings::Config;
use super::show::{ShownKey, secrets};
use super::units::format_duration;

impl Config {
    pub(super) fn show_destination(&self, destination: &DestinationConfig) -> Vec<ShownKey> {
        let options = &destination.options;
        let mut entries = kind(&destination.kind);
        entries.extend(match secrets(&destination.secret_references) {
            None if destination.needs_secret() => Some(("secret", "made and kept by the server".to_owned())),
            named => named,
        });
        entries.extend(filter(&options.filter));
        entries.extend(retry(&options.retry));
        if !matches!(destination.kind, DestinationKind::Pull(_)) {
            entries.push(("concurrency", options.concurrency.to_string()));
        }
        entries.extend(options.rate_per_s.map(|rate| ("rate", quoted(&format!("{rate}/s")))));
        let lease_for = destination.made(None).lease_for();
        entries.push(("lease", duration(lease_for)));
        let shown = |(name, value): (&str, String)| {
            let key = format!("destinations.{}.{name}", destination.name);
            let origin = self.origin(&key);
            ShownKey { key, value, origin }
        };
        entries.into_iter().map(shown).collect()
    }
}

fn kind(kind: &DestinationKind) -> Vec<(&'static str, String)> {
    match kind {
        DestinationKind::Push(push) => {
            let ca_file = push.ca_file.as_ref().map(|file| ("ca_file", quoted(&file.display().to_string())));
            let always = [
                ("push", quoted(&push.url.to_string())),
                ("timeout", duration(push.timeout)),
                ("allow_private", (push.url.reach() == Reach::Private).to_string()),
                ("on_410", quoted(on_gone(push.on_gone))),
            ];
            always.into_iter().chain(ca_file).collect()
        }
        DestinationKind::Exec(exec) => {
            let mut shown =
                vec![("exec", format!("{:?}", exec.command)), ("timeout", duration(exec.timeout))];
            // Their values are left out: people put secrets there.
            let names: Vec<_> = exec.environment.iter().map(|(name, _)| format!("{name} = ..")).collect();
            if !names.is_empty() {
                shown.push(("environment", format!("{{ {} }}", names.join(", "))));
            }
            shown
        }
        DestinationKind::Pull(_) => vec![("pull", "true".to_owned())],
        // No table of the file describes one.
        _ => Vec::new(),
    }
}

fn filter(filter: &Filter) -> Vec<(&'static str, String)> {
    let names = filter.source_names().into_iter().map(|name| quoted(name.as_str()));
    let types = filter.type_patterns().iter().map(|pattern| quoted(pattern.as_str()));
    let equals = filter.comparisons().map(|(pointer, value)| format!("{} = {value}", quoted(pointer)));
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let (names, types, equals): (Vec<_>, Vec<_>, Vec<_>) =
        (names.collect(), types.collect(), equals.collect());
    let mut shown = Vec::new();
    if !names.is_empty() {
        shown.push(("sources", list(names)));
    }
    if !types.is_empty() {
        shown.push(("types", list(types)));
    }
    if !equals.is_empty() {
        shown.push(("equals", format!("{{ {} }}", equals.join(", "))));
    }
    shown
}

fn retry(policy: &RetryPolicy) -> [(&'static str, String); 3] {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let schedule = if policy.schedule_s == RetryPolicy::default().schedule_s {
        quoted("standard")
    } else {
        let waits: Vec<_> = policy.schedule_s.iter().map(|wait| duration(seconds(*wait))).collect();
        format!("[{}]", waits.join(", "))
    };
    [
        ("retry", schedule),
        ("max_attempts", policy.attempts_max.to_string()),
        ("max_age", duration(seconds(policy.age_max_s))),
    ]
}

fn on_gone(policy: OnGone) -> &'static str {
    match policy {
        OnGone::Hold => "hold",
        OnGone::Dead => "dead",
        OnGone::Retry => "retry",
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn duration(duration: Duration) -> String {
    quoted(&format_duration(duration))
}
