//! The sentences that pages and `providers show` say of a provider, made from the facts of its record.
//!
//! One place, so that the terminal and docs/providers/ say the same. It prints nothing.

use hookstead_verify::{ChosenBy, KeyFacts, Provider, SchemeFacts};

/// What a good signature proves, one sentence each.
pub(super) fn verified(provider: &Provider) -> Vec<String> {
    let mut said = Vec::new();
    for scheme in provider.schemes() {
        said.push(proof(&scheme));
        said.extend(scheme.each.iter().map(|each| format!("every item of `{each}` carries its own proof")));
        said.extend(scheme.claims.iter().map(claim));
        said.extend(scheme.checks.iter().map(|(left, right)| format!("`{left}` equals `{right}`")));
        said.extend(time(&scheme));
    }
    if provider.has_id() && provider.id_covered() {
        said.push("the event id is covered by the signature".to_owned());
    }
    deduplicated(said)
}

/// What it does not prove, one sentence each.
pub(super) fn not_verified(provider: &Provider) -> Vec<String> {
    let schemes: Vec<SchemeFacts> = provider.schemes().collect();
    if !provider.checks_requests() {
        return vec![
            "who sent it: any request is taken, so say so on purpose or use another provider".into(),
        ];
    }
    let mut said = Vec::new();
    if schemes.iter().any(|scheme| !scheme.covers_body) {
        said.push(if schemes.iter().any(|scheme| scheme.covers_body) {
            "the body as a whole, in some of its schemes: see what is signed above"
        } else {
            "the body as a whole: bytes that are not named above can be changed without notice"
        });
    }
    if !provider.has_timestamp() {
        said.push(
            "when it was signed: a recorded request can be sent again, and is then a duplicate of its id",
        );
    } else if !provider.limits_time() {
        said.push("how old it is: the time is signed, and the provider sets no limit for it");
    }
    if !provider.has_id() {
        said.push("which event it is: the provider names none, so the source needs an `identity`");
    } else if !provider.id_covered() {
        said.push("the event id: whoever can repeat a request can give it another id");
    }
    if !provider.needs_url() {
        said.push("the address that was called");
    }
    said.into_iter().map(str::to_owned).collect()
}

/// How to connect it, three steps, where it is not known yet at which address.
pub(super) fn steps(provider: &Provider) -> Vec<String> {
    let address = format!("the public address of the intake, then `/in/{}`", provider.name());
    steps_at(provider, &address).to_vec()
}

/// How to connect it, three steps: the secret, the source, the address.
pub(crate) fn steps_at(provider: &Provider, address: &str) -> [String; 3] {
    let title = provider.title();
    let place = &provider.secret().place;
    let at = if place.is_empty() { String::new() } else { format!(" ({place})") };
    let first = match key(provider) {
        KeyFacts::Shared => shared_secret(provider, &at),
        KeyFacts::Public => format!("Get the public key with which {title} signs{at}."),
        KeyFacts::Published => format!("{title} publishes its keys: there is no secret to copy."),
        KeyFacts::None => "Nothing is signed: there is no secret to copy.".to_owned(),
    };
    let register = format!("Register the address at {title}: {address}.");
    [first, "Add the source to hookstead.toml.".to_owned(), register]
}

/// The first step, where both sides share a secret.
fn shared_secret(provider: &Provider, at: &str) -> String {
    let title = provider.title();
    match provider.secret().chosen_by {
        _ if provider.hands_over_secret() => {
            format!("{title} hands over the secret when it first calls: there is none to copy.")
        }
        Some(ChosenBy::You) => format!("Make up a secret, to be entered at {title} as well{at}."),
        Some(ChosenBy::Provider) | None => format!("Get the signing secret of {title}{at}."),
    }
}

/// The source in hookstead.toml.
pub(super) fn source(provider: &Provider) -> String {
    let name = provider.name();
    let mut text = String::new();
    if provider.needs_url() {
        text += "[server]\npublic_url = \"https://hooks.example.com\"   # what the provider signs\n\n";
    }
    text += &format!("[sources.{name}]\nprovider = \"{name}\"\n");
    if provider.needs_secret() {
        text += &format!("secret = {{ env = \"{}\" }}\n", variable(provider));
    }
    let needed = provider.conf().filter(|(_, _, is_needed)| *is_needed);
    let needed: Vec<_> =
        needed.map(|(name, _, _)| format!("{name} = \"{}\"", name.to_ascii_uppercase())).collect();
    if !needed.is_empty() {
        text += &format!("conf = {{ {} }}\n", needed.join(", "));
    }
    if !provider.has_id() {
        text += "identity = \"body\"   # or \"none\": the provider names no event\n";
    }
    text
}

/// The environment variable of its secret.
pub(super) fn variable(provider: &Provider) -> String {
    match provider.secret().env.as_str() {
        "" => format!("{}_WEBHOOK_SECRET", provider.name().to_ascii_uppercase().replace('-', "_")),
        named => named.to_owned(),
    }
}

/// What is known of retries, one sentence each.
pub(super) fn retries(provider: &Provider) -> Vec<String> {
    let retry = provider.retry();
    let known = [
        (retry.automatic, "it tries again by itself", "it does not try again by itself"),
        (retry.same_id, "a retry keeps the event id", "a retry has another event id"),
        (retry.same_bytes, "a retry keeps the bytes of the body", "a retry may have other bytes"),
        (retry.resigned, "a retry is signed anew", "a retry keeps its signature"),
    ];
    let mut said: Vec<String> = known
        .into_iter()
        .filter_map(|(fact, yes, no)| fact.map(|fact| (if fact { yes } else { no }).to_owned()))
        .collect();
    said.extend(retry.horizon_s.map(|seconds| format!("retries come for {}", span(seconds))));
    said.extend(
        provider.volatile().iter().map(|(pointer, confidence)| {
            format!("`{pointer}` may change on a retry ({})", confidence.as_str())
        }),
    );
    if !retry.note.is_empty() {
        said.push(retry.note.clone());
    }
    if said.is_empty() {
        said.push("nothing is known of its retries".to_owned());
    }
    said
}

/// The answer that it wants, one sentence each.
pub(super) fn answers(provider: &Provider) -> Vec<String> {
    let ack = provider.ack();
    let mut said = Vec::new();
    match &ack.success[..] {
        [] => said.push("every 2xx is success".to_owned()),
        codes => {
            let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
            said.push(format!("success is {}; hookstead answers so by itself", codes.join(" or ")));
        }
    }
    said.extend(ack.body.iter().map(|body| format!("the answer's body is `{body}`")));
    said.extend(ack.timeout_s.map(|seconds| format!("it waits {} for an answer", span(seconds.into()))));
    said.extend(ack.reject.filter(|status| *status != 401).map(|status| {
        format!("it wants {status} for a signature that does not hold; hookstead answers 401, so that it comes again")
    }));
    said.extend(ack.reject_body.iter().map(|body| match body.as_str() {
        "" => "a signature that does not hold is answered without a body".to_owned(),
        text => format!("a signature that does not hold is answered with `{text}`"),
    }));
    let handshakes: Vec<&str> = provider.handshakes().collect();
    if !handshakes.is_empty() {
        said.push(format!("answered at once, and no event: {}", handshakes.join(", ")));
    }
    if !ack.note.is_empty() {
        said.push(ack.note.clone());
    }
    said
}

/// What makes two of its requests the same event.
pub(super) fn identity(provider: &Provider) -> String {
    if !provider.has_id() {
        return "none by itself: the source says `identity = \"body\"`, `\"none\"` or a template".to_owned();
    }
    let ids = provider.id_templates().iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", else ");
    match provider.scope_template() {
        Some(scope) => format!("{ids}, unique within `{scope}`"),
        None => ids,
    }
}

fn proof(scheme: &SchemeFacts) -> String {
    let places = scheme.places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(" or ");
    let key = match scheme.key {
        KeyFacts::Public => ", by a public key that the source has",
        KeyFacts::Published => ", by a key that the provider publishes",
        KeyFacts::Shared | KeyFacts::None => "",
    };
    let algorithm = &scheme.algorithm;
    match &scheme.contents[..] {
        _ if scheme.key == KeyFacts::None => "nothing".to_owned(),
        [] => format!("{algorithm} in {places}{key}"),
        contents => {
            let contents =
                contents.iter().map(|content| format!("`{content}`")).collect::<Vec<_>>().join(" or ");
            format!("{algorithm} in {places} over {contents}{key}")
        }
    }
}

fn claim((name, values): &(String, Vec<String>)) -> String {
    let name = name.trim_end_matches('?');
    let values = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    format!("the token's `{name}` is {values}")
}

fn time(scheme: &SchemeFacts) -> Option<String> {
    let time = scheme.time.as_ref()?;
    let past = time.past_s.map(|seconds| format!("at most {} old", span(seconds.into())));
    let future = time.future_s.map(|seconds| format!("at most {} ahead", span(seconds.into())));
    let limits: Vec<String> = past.into_iter().chain(future).collect();
    let limits = if limits.is_empty() { "without a limit".to_owned() } else { limits.join(", ") };
    Some(format!("the signed time `{}`: {limits}", time.from))
}

/// The key of the first scheme that needs one.
fn key(provider: &Provider) -> KeyFacts {
    let mut keys = provider.schemes().map(|scheme| scheme.key);
    keys.find(|key| *key != KeyFacts::None).unwrap_or(KeyFacts::None)
}

/// Seconds as a person says them: `5 minutes`, `3 days`.
pub(super) fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let exact = |&&(unit, _): &&(u64, &str)| seconds >= unit && seconds.is_multiple_of(unit);
    let (unit, name) = UNITS.iter().find(exact).copied().unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

fn deduplicated(said: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for sentence in said {
        if !kept.contains(&sentence) {
            kept.push(sentence);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use hookstead_server::Config;
    use hookstead_server::config::{ConfigSource, Overrides};
    use hookstead_server::dev::DevSecrets;
    use hookstead_verify::Registry;

    use super::*;
    use crate::cmd::providers::named;

    /// What a page tells people to write is a configuration that starts.
    #[test]
    fn every_source_is_a_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = DevSecrets::open(folder.path()).unwrap();
        let file = folder.path().join("hookstead.toml");
        let mut checked = 0;
        for provider in Registry::builtin().iter() {
            let secret = secrets.get(provider.name()).map(|secret| String::from_utf8_lossy(secret.expose()));
            // A public key cannot be made up, and keys that are published are looked for where the server runs.
            let secret = match key(provider) {
                KeyFacts::Published if provider.conf().any(|(_, _, is_needed)| is_needed) => Some("".into()),
                KeyFacts::Shared => secret,
                _ => None,
            };
            let Some(secret) = secret else { continue };
            std::fs::write(&file, source(provider)).unwrap();
            let loaded = Config::load(&ConfigSource {
                overrides: Overrides::default(),
                environment: [(variable(provider), secret.into_owned())].into_iter().collect(),
                folder: folder.path().to_owned(),
            });
            let sources = loaded.map(|config| config.sources.len()).map_err(|error| error.to_string());
            assert_eq!(sources, Ok(1), "{}", source(provider));
            checked += 1;
        }
        assert!(checked > 150, "only {checked} providers");
    }

    #[test]
    fn what_is_said_is_what_the_record_does() {
        let stripe = named("stripe").unwrap();
        let said = verified(stripe).join("\n");
        assert!(said.contains("HMAC-SHA256 in `header.Stripe-Signature` over `{sig.t}.{body}`"), "{said}");
        assert!(said.contains("at most 5 minutes old, at most 1 hour ahead"), "{said}");
        assert!(!not_verified(stripe).join("\n").contains("event id"));
        assert!(retries(stripe).contains(&"retries come for 3 days".to_owned()));

        let github = not_verified(named("github").unwrap()).join("\n");
        assert!(github.contains("the event id") && github.contains("when it was signed"), "{github}");
        assert!(not_verified(named("ms-graph").unwrap()).join("\n").contains("the body as a whole"));
        assert!(not_verified(named("none").unwrap()).join("\n").contains("who sent it"));
        let first = |name: &str| steps(named(name).unwrap()).remove(0);
        assert!(first("github").starts_with("Make up a secret") && first("stripe").starts_with("Get the"));
        assert!(first("razorpay").starts_with("Make up") && first("gitlab").starts_with("Get the"));
        assert!(first("asana").contains("none to copy"));
        assert!(source(named("twilio").unwrap()).contains("public_url"));
        let sns = source(named("aws-sns").unwrap());
        assert!(!sns.contains("secret") && sns.contains("conf = { topic_arn = \"TOPIC_ARN\" }"), "{sns}");
        assert!(!source(named("meta").unwrap()).contains("conf"), "only its handshake asks for it");
    }

    #[test]
    fn times_read_well() {
        for (seconds, text) in [(1, "1 second"), (90, "90 seconds"), (300, "5 minutes"), (259_200, "3 days")]
        {
            assert_eq!(span(seconds), text);
        }
        assert_eq!(span(0), "0 seconds");
    }
}
