//! From a case's sketch of a source to a table of our configuration. A key that is not known here is an error,
//! so that no wish of a case is passed over in silence.

use hookstead_verify::Registry;
use serde_json::{Map, Value};

use super::case::text;

/// A table `[sources.NAME]` and the environment that holds its secrets.
pub(crate) struct Table {
    pub(crate) toml: String,
    pub(crate) secrets: Vec<(String, String)>,
}

/// What is known of a sketch; every key is taken once.
struct Sketch(Map<String, Value>);

impl Sketch {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    fn take_text(&mut self, key: &str) -> Option<String> {
        self.take(key).map(|value| text(&value).to_owned())
    }
}

/// Writes the table.
pub(crate) fn table(sketch: &Value) -> Table {
    let mut sketch = Sketch(sketch.as_object().expect("a sketch is an object").clone());
    let name = sketch.take_text("name").expect("a source has a name");
    let mut lines = vec![format!("[sources.{name}]")];
    let preset = sketch.take_text("preset").expect("a source has a preset");
    match preset.as_str() {
        "hmac" => lines.push(scheme(&mut sketch)),
        known => {
            lines.push(format!("provider = {}", quoted(provider(known))));
            // A sketch does not say whose requests it takes.
            let pins = Registry::builtin().get(provider(known)).into_iter().flat_map(|known| known.pins());
            lines.extend(pins.take(1).map(|name| format!("conf = {{ {name} = \"any\" }}")));
        }
    }
    // The address of a source follows from that of the server.
    if let Some(url) = sketch.take_text("public_url") {
        assert_eq!(url, format!("https://hook.example/in/{name}"));
    }
    if let Some(token) = sketch.take_text("verify_token") {
        lines.push(format!("conf = {{ verify_token = {} }}", quoted(&token)));
    }
    let (references, secrets) = secrets(&name, &mut sketch);
    lines.extend(references);
    if let Some(seconds) = sketch.take("tolerance_s") {
        lines.push(format!("tolerance = \"{seconds}s\""));
    }
    lines.extend(identity(&mut sketch).map(|identity| format!("identity = {}", quoted(&identity))));
    if let Some(policy) = sketch.take_text("on_conflict") {
        // Our word for "tell the sender that all is well".
        let policy = if policy == "ack" { "hold" } else { &policy };
        lines.push(format!("on_conflict = {}", quoted(policy)));
    }
    if let Some(rule) = sketch.take_text("body_reuse") {
        lines.push(format!("body_reuse = {}", quoted(&rule)));
    }
    if let Some(bytes) = sketch.take("max_body_bytes") {
        lines.push(format!("body = \"{bytes} B\""));
    }
    if let Some(status) = sketch.take("ack_status") {
        lines.push(format!("success_status = {status}"));
    }
    let mut answer = |ours: &str, theirs: &str| {
        lines.extend(sketch.take_text(theirs).map(|text| format!("{ours} = {}", quoted(&text))));
    };
    answer("success_body", "ack_body");
    answer("success_type", "ack_content_type");
    assert!(sketch.0.is_empty(), "keys of a sketch that are not understood: {:?}", sketch.0);
    Table { toml: lines.join("\n") + "\n\n", secrets }
}

fn provider(preset: &str) -> &str {
    match preset {
        "standard-webhooks" => "standardwebhooks",
        "hubspot-v3" => "hubspot",
        "sns" => "aws-sns",
        same => same,
    }
}

/// `scheme = { hmac = .. }` for senders without a record.
fn scheme(sketch: &mut Sketch) -> String {
    let hash = sketch.take_text("algorithm").unwrap_or_else(|| "sha256".to_owned());
    let mut keys = vec![format!("hmac = {}", quoted(&hash))];
    let mut add = |key: &str, value: Option<String>| {
        keys.extend(value.map(|value| format!("{key} = {}", quoted(&value))));
    };
    add("header", sketch.take_text("signature_header"));
    add("encoding", sketch.take_text("encoding"));
    add("prefix", sketch.take_text("signature_prefix"));
    let timestamp = sketch.take_text("timestamp_header");
    let signed = sketch.take_text("signed");
    if let Some(header) = &timestamp {
        add("signed", signed.map(|signed| signed.replace(&format!("{{header:{header}}}"), "{timestamp}")));
    } else {
        add("signed", signed);
    }
    add("timestamp", timestamp);
    add("timestamp_unit", sketch.take_text("timestamp_unit"));
    format!("scheme = {{ {} }}", keys.join(", "))
}

fn secrets(name: &str, sketch: &mut Sketch) -> (Option<String>, Vec<(String, String)>) {
    let secrets = sketch.take("secrets").or_else(|| sketch.take("public_keys")).unwrap_or_default();
    let variable = |number: usize| format!("CASE_{}_{number}", name.to_uppercase());
    let secrets: Vec<_> = secrets.as_array().into_iter().flatten().enumerate().collect();
    let reference = |(number, value): &(usize, &Value)| {
        let coding = value["encoding"].as_str().map(coding).map(|word| format!(", decode = \"{word}\""));
        format!("{{ env = \"{}\"{} }}", variable(*number), coding.unwrap_or_default())
    };
    let references: Vec<_> = secrets.iter().map(reference).collect();
    let line = (!references.is_empty()).then(|| format!("secrets = [{}]", references.join(", ")));
    let secret = |(number, value): (usize, &Value)| {
        (variable(number), text(value.get("value").unwrap_or(value)).to_owned())
    };
    (line, secrets.into_iter().map(secret).collect())
}

/// Our words, which are those of the records.
fn coding(theirs: &str) -> &str {
    if theirs == "literal" { "utf8" } else { theirs }
}

/// `event_key`, a list of parts, stands above `event_id`.
fn identity(sketch: &mut Sketch) -> Option<String> {
    let id = sketch.take_text("event_id");
    let part = |selector: &Value| {
        let (kind, place) = text(selector).split_once(':').expect("a selector");
        if kind == "json" { format!("{{json:{place}}}") } else { format!("{{{kind}.{place}}}") }
    };
    if let Some(parts) = sketch.take("event_key") {
        let parts: Vec<_> = parts.as_array().expect("a list of parts").iter().map(part).collect();
        return Some(parts.join(":"));
    }
    let id = id?;
    Some(if id == "body_sha256" { "body".to_owned() } else { part(&Value::String(id)) })
}

/// A basic string of TOML, whose escapes are those of JSON for what stands in sketches.
pub(crate) fn quoted(value: &str) -> String {
    Value::from(value).to_string()
}
