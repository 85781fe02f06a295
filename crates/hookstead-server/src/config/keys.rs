//! Every key of the configuration, once: its name, what it holds, its default, what it does. The check for
//! unknown keys, `config init` and `config show` read this table.

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its table: `server`, `sources.*`.
    pub section: &'static str,
    /// Its name within the table.
    pub name: &'static str,
    /// A value as it is written in the file: the default if it has one, else an example.
    pub value: &'static str,
    /// Whether [`Key::value`] is the default.
    pub has_default: bool,
    /// What it does, in one line.
    pub help: &'static str,
}

const fn key(section: &'static str, name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { section, name, value, has_default: true, help }
}

const fn example(section: &'static str, name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { section, name, value, has_default: false, help }
}

/// All keys, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    key(
        "server",
        "intake",
        "\"127.0.0.1:4665\"",
        "where providers' requests arrive; the only address to expose",
    ),
    key("server", "admin", "\"127.0.0.1:4666\"", "API and health for people; never expose it"),
    example(
        "server",
        "public_url",
        "\"https://hooks.example.com\"",
        "how providers reach the intake; some sign it",
    ),
    example(
        "server",
        "intake_hosts",
        "[\"hooks\"]",
        "further Host names of the intake; with these or public_url, any other is answered 421",
    ),
    example(
        "server",
        "trusted_proxies",
        "[\"10.0.0.0/8\"]",
        "your own proxies: their word for whom they ask is believed, and they may have any number of connections",
    ),
    key(
        "server",
        "proxy_header",
        "\"x-forwarded-for\"",
        "where trusted proxies say for whom they ask; or \"forwarded\"",
    ),
    example(
        "server",
        "admin_hosts",
        "[\"hooks-admin.internal\"]",
        "further Host names that the admin listener answers to",
    ),
    key("server", "drain", "\"20s\"", "how long a stop waits for what is in flight"),
    key(
        "server",
        "failstop_linger",
        "\"10s\"",
        "how long a server with a poisoned store answers 503 before it ends",
    ),
    key(
        "store",
        "url",
        "\"sqlite:hookstead.db\"",
        "relative paths count from the data folder; or \"files:DIR\", or \"memory:\" (kept nowhere)",
    ),
    key(
        "store",
        "upgrade_copy",
        "true",
        "a newer hookstead keeps a copy of the database as it was before it changes the schema",
    ),
    key("store", "min_free", "\"1 GiB\"", "with less free space on the disk: 503 and Retry-After"),
    key(
        "limits",
        "body",
        "\"1 MiB\"",
        "largest body, unless the provider's record or the source says otherwise",
    ),
    key("limits", "body_memory", "\"32 MiB\"", "memory for all bodies in flight; 503 above it"),
    key("limits", "header_time", "\"5s\"", "time for the head of a request"),
    key("limits", "body_time", "\"10s\"", "time for a body, plus its length at 64 KiB a second"),
    key("limits", "idle_time", "\"75s\"", "how long a connection may stay open between requests"),
    key("limits", "write_time", "\"10s\"", "time in which a client must take some of its answer"),
    key("limits", "connections", "4096", "connections of the intake, all together"),
    key(
        "limits",
        "connections_per_address",
        "64",
        "connections of one address (IPv6: one /64); loopback and trusted proxies are exempt",
    ),
    key(
        "observability",
        "log_format",
        "\"auto\"",
        "\"text\", \"json\", or \"auto\": text on a terminal, JSON lines otherwise",
    ),
    key(
        "observability",
        "log_level",
        "\"info\"",
        "\"error\", \"warn\", \"info\", \"debug\", \"trace\", or by target: \"info,hyper=warn\"",
    ),
    example("sources.*", "provider", "\"stripe\"", "who sends; taken from the source's name if absent"),
    example(
        "sources.*",
        "scheme",
        "{ hmac = \"sha256\", header = \"x-signature\" }",
        "instead of provider: how a sender of your own signs",
    ),
    example(
        "sources.*",
        "secret",
        "{ env = \"STRIPE_WEBHOOK_SECRET\" }",
        "the signing secret: { env = .. }, { file = .. } or { credential = .. }",
    ),
    example(
        "sources.*",
        "secrets",
        "[{ env = \"NEW\" }, { env = \"OLD\", decode = \"utf8\" }]",
        "several, any of which may have signed; decode: how a key is read from one, if not as the record says",
    ),
    example(
        "sources.*",
        "conf",
        "{ verify_token = \"the one that I entered there\" }",
        "what the provider's record asks for beside secrets; each a text or a reference as of a secret",
    ),
    example(
        "sources.*",
        "keys",
        "{ KEY-ID = { file = \"key.pem\" } }",
        "public keys by their ids, for a provider that shows them only to its customers",
    ),
    example(
        "sources.*",
        "tolerance",
        "\"5m\"",
        "how far a signed time may be from ours; the provider's own if absent",
    ),
    example(
        "sources.*",
        "identity",
        "\"provider\"",
        "what makes an event the same: \"provider\", a template such as \"{json:/id}\", \"body\" or \"none\"",
    ),
    example(
        "sources.*",
        "type",
        "\"/event/name\"",
        "where the type is: a JSON pointer, \"header:NAME\" or a template",
    ),
    key(
        "sources.*",
        "on_conflict",
        "\"refuse\"",
        "same id, other bytes: \"refuse\" (409) or \"hold\" (success); both keep the bytes for review",
    ),
    example(
        "sources.*",
        "body_reuse",
        "\"flag\"",
        "same signed body, other id: \"flag\" (stored, marked), \"refuse\" (409) or \"off\"; flag if absent, where the signature leaves the id open",
    ),
    example("sources.*", "body", "\"1 MiB\"", "largest body of this source"),
    example(
        "sources.*",
        "rate",
        "\"100/s\"",
        "most requests in a time: \"100/s\", \"600/m\" or \"5000/h\"; 429 above it, no limit if absent",
    ),
    example("sources.*", "success_status", "200", "one status for every success, instead of 202 and 200"),
    example(
        "sources.*",
        "success_body",
        "\"<ok>true</ok>\"",
        "one text for every success; @outcome@ and @event@ in it are filled",
    ),
    example(
        "sources.*",
        "success_type",
        "\"text/xml\"",
        "the Content-Type of success_body; text/plain if absent",
    ),
    example(
        "destinations.*",
        "push",
        "\"https://app.example.com/webhooks\"",
        "events are sent there by HTTP, signed as Standard Webhooks; or pull, or exec",
    ),
    example(
        "destinations.*",
        "pull",
        "true",
        "its consumer claims events by the API, with a token of its own",
    ),
    example(
        "destinations.*",
        "exec",
        "[\"/usr/local/bin/on-event\", \"--quiet\"]",
        "a program is run for each event, its body on stdin; no shell reads it",
    ),
    example(
        "destinations.*",
        "environment",
        "{ MODE = \"production\" }",
        "variables for the program of exec, beside those that docs/delivery.md names",
    ),
    example(
        "destinations.*",
        "sources",
        "[\"stripe\"]",
        "only events of these sources; every source if absent",
    ),
    example(
        "destinations.*",
        "types",
        "[\"invoice.*\"]",
        "only events whose type one of these matches; every type if absent",
    ),
    example(
        "destinations.*",
        "equals",
        "{ \"/livemode\" = true }",
        "only events in whose JSON body these values stand at these JSON pointers",
    ),
    example(
        "destinations.*",
        "secret",
        "{ env = \"APP_WEBHOOK_SECRET\" }",
        "what a push is signed with (whsec_..); made, and kept in the data folder, if absent",
    ),
    example(
        "destinations.*",
        "secrets",
        "[{ env = \"NEW\" }, { env = \"OLD\" }]",
        "several secrets: each push is signed with all of them",
    ),
    key("destinations.*", "timeout", "\"30s\"", "how long one attempt of push or exec may take"),
    key(
        "destinations.*",
        "allow_private",
        "false",
        "whether a push may go to private and loopback addresses; metadata services never",
    ),
    example(
        "destinations.*",
        "ca_file",
        "\"/etc/ssl/internal-ca.pem\"",
        "certificates to trust beside the system's, for a push to a private CA",
    ),
    key(
        "destinations.*",
        "retry",
        "\"standard\"",
        "the wait before each attempt: \"standard\" (10 in 3 days), or a list such as [\"0s\", \"5s\", \"5m\"]",
    ),
    key(
        "destinations.*",
        "max_attempts",
        "10",
        "after so many attempts a delivery is dead; of a list: its length",
    ),
    key("destinations.*", "max_age", "\"7d\"", "so long after it was made a delivery is dead"),
    key("destinations.*", "concurrency", "16", "how many deliveries of push or exec are worked at once"),
    example(
        "destinations.*",
        "rate",
        "\"50/s\"",
        "how many attempts may begin in a second; as many as there are if absent",
    ),
    example(
        "destinations.*",
        "lease",
        "\"60s\"",
        "how long a consumer has before its claim expires; for push and exec the timeout and a margin",
    ),
    key(
        "destinations.*",
        "on_410",
        "\"hold\"",
        "when a push is answered 410: \"hold\" until a person decides, \"dead\", or \"retry\"",
    ),
];

/// The keys of `scheme = { .. }`.
pub(crate) const SCHEME_KEYS: &[&str] = &[
    "hmac",
    "token",
    "basic",
    "header",
    "encoding",
    "prefix",
    "signed",
    "timestamp",
    "timestamp_unit",
    "key",
];

/// The tables of the file.
pub(crate) const SECTIONS: &[&str] =
    &["server", "store", "limits", "observability", "sources", "destinations"];

/// The names of a table's keys.
pub(crate) fn names(section: &str) -> Vec<&'static str> {
    KEYS.iter().filter(|key| key.section == section).map(|key| key.name).collect()
}
